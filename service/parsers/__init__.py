"""A tool's bytes in, measurements out. Pure. `register.py` lists the formats, and reads a document by the right one."""
