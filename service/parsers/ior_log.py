"""The log lines that IOR prints among its JSON or CSV when both go to standard output."""

import re
from dataclasses import dataclass

_STARTS = (
    "WARNING:",
    "ior WARNING:",
    "ERROR:",
    "ior ERROR:",
    "INFO:",
    "stonewalling pairs",
    "Pairs deadline",
    "Commencing ",
    "Using ",
    "Participating tasks",
    "Verifying ",
    "task ",
    "Test ",
    "Writing output to",
    "Start time skew",
)
_OTHERS = re.compile(
    r"[0-9]{1,9}: stonewalling"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" [ 0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9] [0-9]{4}"
    r"|\[[\w.-]{1,80}:[0-9]{1,9}\]"
)


@dataclass(slots=True)
class LogLines:
    """How many lines were passed over, of which there may be millions, and which was the first."""

    count: int = 0
    first: int = 0

    def take(self, number: int) -> None:
        """Count a line."""
        self.first = self.first or number
        self.count += 1


def is_log_line(line: str) -> bool:
    """Tell whether a whole line, without white space around it, is a log line of IOR or its MPI."""
    return line.startswith(_STARTS) or _OTHERS.match(line) is not None
