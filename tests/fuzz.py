"""`python -m tests.fuzz --seconds N --seed S`: reads changed files, and stops at the first that breaks a rule.

The changes and the rules are those of `tests/parsers/mutations.py`. A seed makes the same changes in the same order
each time; the bytes that broke a rule are kept, to become a test.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from service.errors import UnreadableDocument
from tests.parsers.mutations import FILES, MUTATIONS, examine, mutated


def main(*, seconds: float, seed: int) -> int:
    """Read changed files, print what came of them, and return 1 where one broke a rule."""
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)  # noqa: S311 - the same changes for one seed
    outcomes: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < ends:
        name = rng.choice(list(FILES))
        data = mutated(name, turn + rng.randrange(len(MUTATIONS)), rng)
        try:
            made = examine(data)
        except Exception:
            traceback.print_exc()
            file = Path(tempfile.mkdtemp(prefix="stallbudget-fuzz-")) / name
            file.write_bytes(data)
            print(f"seed {seed}, turn {turn}: {name} as changed is kept in {file}")
            return 1
        outcomes[made.code if isinstance(made, UnreadableDocument) else made.format] += 1
        turn += 1
    print(f"{turn} documents, and none that broke a rule:")
    for outcome, count in outcomes.most_common():
        print(f"{count:8} {outcome}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Read changed files until one breaks a rule, or the time is over."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    sys.exit(main(**vars(parser.parse_args())))
