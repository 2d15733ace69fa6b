"""`python -m tests.e2e.kubelets`: what kubelets do with running pods, real and simulated. Prints a table; `--write`
puts it into the page. Exit code: 0 all was observed, 1 something was not, 2 this machine has no real nodes."""

from __future__ import annotations

import argparse
import sys

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.node.node import why_not
from tests.e2e.kubelets.facts import FACTS
from tests.e2e.kubelets.observe import observe
from tests.e2e.kubelets.simulator import answer
from tests.e2e.kubelets.table import PAGE, Seen, table, write


def main(arguments: list[str]) -> int:
    """Observe both kinds of nodes, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.kubelets", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write the table into docs/{PAGE.name}")
    options = parser.parse_args(arguments)
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    with ControlPlane(nodes="real") as cluster:
        real = observe(cluster)
    with ControlPlane() as cluster:
        simulated = observe(cluster)
    rows = {name: Seen(str(real[name]), str(simulated[name]), answer(name)) for name in FACTS}
    print(table(rows), end="")
    errors = [outcome for outcome in (*real.values(), *simulated.values()) if isinstance(outcome, Exception)]
    for error in errors:
        print(f"not observed: {error}", file=sys.stderr)
    if options.write and not errors:
        write(rows)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
