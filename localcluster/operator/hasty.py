"""The operator with its waits and pages cut short, so that a test need not wait for minutes, nor make hundreds of
objects, to see what comes after them: `python -m localcluster.operator.hasty run …`, or `hasten` an `Operator` before
it starts."""

from __future__ import annotations

import sys

from hvpa.cli.main import main
from hvpa.kube.cache import reflector
from hvpa.kube.client import pages
from hvpa.reconcile.queue import Backoff
from localcluster.operator.operator import Operator

SILENCE = 4.0
"""Seconds without a byte after which a watch counts as dead."""
STALE = 5.0
"""Seconds of failures after which a cache counts as out of date."""
PAGE = 5
"""Objects per list request."""


def hasten(operator: Operator) -> Operator:
    """Let an operator that was not started yet run like this."""
    argv = operator.process.argv
    argv[argv.index("-m") + 1] = __name__
    return operator


def _shorten() -> None:
    limits = {
        (reflector, "SILENCE"): SILENCE,
        (reflector, "LONG_LIVED"): SILENCE / 4,  # a watch that was merely quiet has worked
        (reflector, "STALE"): STALE,
        (pages, "PAGE"): PAGE,
        (reflector, "RETRY"): Backoff(base=0.02, cap=0.2),
        (reflector, "NOT_SERVED_RETRY"): (0.5, 1.0),
        (reflector, "SECOND_LOOK"): 0.1,
    }
    for (module, name), value in limits.items():
        assert hasattr(module, name), name
        setattr(module, name, value)


if __name__ == "__main__":
    _shorten()
    sys.exit(main())
