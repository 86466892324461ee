"""The sizing model. Pure: no HTTP, SQL, clock, randomness or I/O, but for the presets read once."""
