"""PURE: a sizing → the tests that prove it, as commands, scripts and pages."""
