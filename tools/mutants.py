"""Mutation tests of the decision: mutmut changes `hvpa/core` at random places, and runs the tests that reach a change.

`make mutants` prints the share of changes that a test notices, and the others with their difference. Some changes are
equivalent: they alter nothing that a caller could notice. Only a reader can tell.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "mutants"
FIRST: Final = "hvpa.core.workload.selector.*"
"""A few mutants: with their run, mutmut writes all mutants, and finds the tests that reach each function."""
NOTICED: Final = frozenset({"killed", "timeout", "segfault", "caught by type check"})
SHOWN: Final = 4000
"""Characters of the output of a mutmut that failed."""
_RESULT: Final = re.compile(r"^\s*(hvpa\.core\.\S+): (.+)$", re.MULTILINE)


def mutmut(*arguments: str) -> str:
    """Runs mutmut and returns its output. Ends the process with the end of that output if mutmut fails."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout[-SHOWN:]}\nmutmut {arguments[0]} failed")
    return done.stdout


def results() -> dict[str, str]:
    """Returns the status of each mutant by its name."""
    return dict(_RESULT.findall(mutmut("results", "--all", "true")))


def sample(names: list[str], number: int, seed: int) -> list[str]:
    """Draws this many names. The same names and seed give the same draw."""
    return sorted(random.Random(seed).sample(sorted(names), min(number, len(names))))


def summary(statuses: dict[str, str]) -> str:
    """Returns the share of mutants that a test noticed, in words."""
    noticed = sum(status in NOTICED for status in statuses.values())
    return f"{noticed} of {len(statuses)} mutants are noticed ({100 * noticed / max(1, len(statuses)):.1f} percent)"


def main() -> int:
    """Returns 0 whatever the result: which mutants are equivalent is for a reader to say."""
    parser = argparse.ArgumentParser(description="Change hvpa/core at random places, and run its tests.")
    parser.add_argument("--number", type=int, default=300, help="number of mutants (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the draw (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="tests of this many mutants at once (default: 2)")
    args = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    children = ("--max-children", str(args.jobs))
    mutmut("run", *children, FIRST)
    names = sample(list(results()), args.number, args.seed)
    mutmut("run", *children, *names)
    statuses = results()
    drawn = {name: statuses[name] for name in names}
    for name, status in drawn.items():
        if status not in NOTICED:
            print(f"{status}: {mutmut('show', name)}")
    print(summary(drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
