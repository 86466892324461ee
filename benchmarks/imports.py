"""Seconds to import the service beside importing only the libraries that it imports, in fresh processes."""

import json
import subprocess
import sys
from statistics import median

SERVICE = "import service.app"
LIST = f"""
import sys
{SERVICE}
import json
own = ("service", "__main__")
print(json.dumps([name for name in sys.modules if name.split(".")[0] not in own]))
"""
TIMED = """
import time
started = time.perf_counter()
{statement}
print(time.perf_counter() - started)
"""
EACH = """
import importlib
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # a name that a library makes for itself, and nobody can import
"""


def seconds(*, rounds: int) -> tuple[float, float, float]:
    """Return the medians of the service's time and the libraries', and of their ratio. [s, s, 1]

    The libraries are every module that is loaded once the service is, in the same order.
    """
    names = json.loads(_python(LIST))
    libraries = EACH.format(names=names)
    whole, without = [], []
    for _ in range(rounds + 1):
        whole.append(float(_python(TIMED.format(statement=SERVICE))))
        without.append(float(_python(TIMED.format(statement=libraries))))
    # The first round reads the files from disk.
    pairs = list(zip(whole, without, strict=True))[1:]
    return (
        median(ours for ours, _ in pairs),
        median(theirs for _, theirs in pairs),
        median(ours / theirs for ours, theirs in pairs),
    )


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
