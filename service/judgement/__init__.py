"""Measured against needed. Pure: a sizing and measurements in, a gap report out."""
