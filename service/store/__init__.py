"""The store: every table, every query."""
