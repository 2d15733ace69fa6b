"""`python -m demo`: options in, exit code out. Signals end everything in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType

from demo.options import HELP, OptionError, Options, options
from demo.scenario import Scenario
from demo.show import Screen, Show, conclude, introduce, keep
from demo.stage import HOUR_SECONDS, KEPT_SECONDS, StageError, stage
from tests.e2e.world.kube import ApiError
from tests.e2e.world.toolchain import BuildError

_INTERRUPTED = 130
_NOT_STARTED = 3
# What building, starting and asking the control plane may end with; kubectl's refusals are AssertionErrors.
_FAILURES = (
    BuildError,
    StageError,
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
    signal.signal(
        signal.SIGINT, _interrupt
    )  # also where the shell started us with it ignored (`make demo &`)
    screen = Screen(sys.stdout)
    try:
        return _run(chosen, screen)
    except KeyboardInterrupt:
        screen.tell("")
        screen.tell("stopped; everything is removed")
        return _INTERRUPTED
    except _FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return _NOT_STARTED


def _run(chosen: Options, screen: Screen) -> int:
    scenario = Scenario(seconds=chosen.seconds)
    token_seconds = KEPT_SECONDS if chosen.keep else HOUR_SECONDS
    with stage(scenario, chosen.mode, token_seconds, screen.tell) as put_up:
        introduce(put_up, screen)
        put_up.await_recommendations(screen.tell)
        verdict = Show(put_up, screen).run()
        conclude(verdict, screen)
        if chosen.keep:
            keep(put_up, screen)
    return verdict.exit_code


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Once is enough: what is being taken down must not be interrupted again.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
