"""`python -m demo`: options in, exit code out. Signals end everything in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType

from demo.background import HandOver, in_background
from demo.demo_cluster import DemoError, demo_cluster
from demo.options import HELP, OptionError, Options, options
from demo.scenario import Scenario
from demo.show import Screen, Show, conclude, go_on, introduce, tell_use
from localcluster.client.api import ApiError
from localcluster.controlplane.keeper import KeeperError
from localcluster.programs.toolchain import BuildError

_INTERRUPTED = 130
_NOT_STARTED = 3
# What building, starting and asking the control plane may end with; kubectl's refusals are AssertionErrors.
_FAILURES = (
    BuildError,
    DemoError,
    KeeperError,
    ApiError,
    RuntimeError,
    AssertionError,
    OSError,
    subprocess.SubprocessError,
)


def main(argv: list[str]) -> int:
    """Run the demo; see `options.HELP` for the exit codes."""
    if argv:
        print(HELP, file=sys.stdout if argv[0] in ("-h", "--help") else sys.stderr)
        return 0 if argv[0] in ("-h", "--help") else 2
    try:
        chosen = options(os.environ)
    except OptionError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # which is what nohup asks for
        signal.signal(signal.SIGHUP, _interrupt)
    # Also where the shell started us with it ignored (`make demo &`).
    signal.signal(signal.SIGINT, _interrupt)
    if chosen.keep:
        return in_background(lambda hand_over: _run(chosen, hand_over))
    return _run(chosen, None)


def _run(chosen: Options, hand_over: HandOver | None) -> int:
    screen = Screen(sys.stdout)
    try:
        return _play(chosen, screen, hand_over)
    except KeyboardInterrupt:
        screen.tell("")
        screen.tell("stopped; nothing is left running")
        return _INTERRUPTED
    except _FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return _NOT_STARTED


def _play(chosen: Options, screen: Screen, hand_over: HandOver | None) -> int:
    with demo_cluster(Scenario(seconds=chosen.seconds), chosen, screen.tell) as put_up:
        introduce(put_up, screen)
        put_up.await_recommendations(screen.tell)
        verdict = Show(put_up, screen).run()
        conclude(verdict, screen)
        if hand_over is not None:
            tell_use(put_up, screen)
            hand_over(verdict.exit_code, put_up.plane.logs / "demo.log")
            go_on(put_up)
    return verdict.exit_code


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Once is enough: what is being taken down must not be interrupted again.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
