"""A tool's bytes in, measurements out. Pure."""
