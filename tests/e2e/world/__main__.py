"""`python -m tests.e2e.world`: the control plane by hand. See `--help`."""

from __future__ import annotations

import argparse
import shlex
import sys

from tests.e2e.world import keeper
from tests.e2e.world.build import build, build_replays
from tests.e2e.world.toolchain import BuildError


def main(arguments: list[str]) -> int:
    """Exit code: 0 done, 1 it did not work (told on stderr), 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.world", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs where they are not in the cache yet")
    for name, text in (
        ("up", "start a control plane that stays; prints its kubeconfig"),
        ("keep", argparse.SUPPRESS),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--bare", action="store_true", help="etcd and API server only")
    commands.add_parser("down", help="end it")
    commands.add_parser("env", help='print shell exports to use it with: eval "$(… env)"')
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (BuildError, keeper.KeeperError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "build":
            build()
            build_replays()
        case "up":
            build(full=not options.bare)
            started = keeper.up(full=not options.bare)
            print(started["kubeconfig"])
            if started["full"] == options.bare:
                print("another kind of control plane runs already: end it with `down` first", file=sys.stderr)
        case "keep":
            keeper.keep(full=not options.bare)
        case "down":
            print("ended" if keeper.down() else "no control plane runs", file=sys.stderr)
        case "env":
            state = keeper.running()
            if state is None:
                print("no control plane runs; start one with `up`", file=sys.stderr)
                return 1
            print(f"export KUBECONFIG={shlex.quote(state['kubeconfig'])}")
            print(f"export PATH={shlex.quote(state['programs'])}:$PATH")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
