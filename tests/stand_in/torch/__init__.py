"""What the recorder needs of torch, where no torch is installed: replays what torch 2.13 was recorded to log."""

__version__ = "2.13.0+standin"
IS_STAND_IN = True
