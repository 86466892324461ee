"""What launchers and loggers put before every line, such as a rank or a time."""

import re

_KNOWN = re.compile(
    r"\[[0-9]{1,9},[0-9]{1,9}\]<std(?:out|err|diag)>: ?|[ \t]{0,8}[0-9]{1,9}: |\[[0-9]{1,9}\] "
)
"""What Open MPI, srun and other launchers write on request."""

_LONGEST = 80
_DIGITS = frozenset("0123456789")


def line_prefix(before: str) -> re.Pattern[str] | None:
    """Return a pattern for what stands before every line, as seen before a known one; numbers may differ.

    Nothing but white space is no prefix.
    """
    if not before.strip() or len(before) > _LONGEST:
        return None
    pattern = "".join(
        r"[0-9]{1,20}" if part[:1] in _DIGITS else re.escape(part)
        for part in re.split(r"([0-9]+)", before)
        if part
    )
    return re.compile(pattern.replace("stdout", "std(?:out|err|diag)"))


def without_known_prefix(line: str) -> str:
    """Return the line without what a known launcher puts before it."""
    found = _KNOWN.match(line)
    return line[found.end() :] if found else line


def unprefixed(line: str, prefix: re.Pattern[str] | None) -> str:
    """Return the line without the prefix, where it has one."""
    if prefix is None:
        return line
    found = prefix.match(line)
    return line[found.end() :] if found else without_known_prefix(line)
