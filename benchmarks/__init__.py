"""What `make benchmark` measures. It writes README.md beside this file; no test depends on a time."""
