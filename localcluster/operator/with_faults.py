"""The operator with what tests do to it from inside, which the product knows nothing of:
`python -m localcluster.operator.with_faults run …` is `hvpa run …`, but that it dies at HVPA_FAULT_POINT
(`fault_points.py`) and that its clock is shifted by HVPA_CLOCK_OFFSET_FILE (`shifted_clock.py`)."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from hvpa.cli import run
from hvpa.operator.operator import Parts
from localcluster.operator import fault_points
from localcluster.operator.fault_points import FaultPointError, parse_point, transport_with_faults
from localcluster.operator.shifted_clock import clock_of


def main() -> int:
    """As `hvpa run`; 2 also for a fault point that there is not."""
    parser = argparse.ArgumentParser()
    run.add_arguments(parser.add_subparsers(required=True).add_parser("run"))
    args = parser.parse_args()
    setting = os.environ.get(fault_points.VARIABLE)
    try:
        parse_point(setting)
    except FaultPointError as error:
        print(error, file=sys.stderr)
        return 2
    return run.main(args, Parts(partial(transport_with_faults, setting=setting), clock_of(os.environ)))


if __name__ == "__main__":
    sys.exit(main())
