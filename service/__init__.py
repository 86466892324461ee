"""stallbudget: size checkpoint storage for training clusters, and judge what was measured against it."""

__version__ = "0.1.0"
