"""`python -m demo`: options in, exit code out. Signals end everything in order. Work that continues after the command
has returned runs in its own process: the command waits for that process's result, not for its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from demo.demo_cluster import DemoError
from demo.options import HELP, OptionError, Options, options
from demo.real.run import run_on_real_nodes, why_simulated
from demo.show import Screen, SimulatedShow, conclude, describe_use, go_on, introduce
from demo.simulated import simulated_cluster
from hvpa_lab.simulate.engine import quiet
from localcluster.client.api import ApiError
from localcluster.controlplane.keeper import KeeperError
from localcluster.programs.toolchain import BuildError

HandOver = Callable[[int, Path], None]
"""Lets the command return with an exit code; later output goes to the end of a file. Raises `BrokenPipeError` when the
command is gone."""
_INTERRUPTED = 130
_NOT_STARTED = 3
# Exceptions of building, starting and calling the control plane; kubectl's refusals are AssertionErrors.
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
        is_help = argv[0] in ("-h", "--help")
        print(HELP, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    try:
        chosen = options(os.environ)
    except OptionError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    quiet()  # the simulated operator of the last screen
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup sets this
        signal.signal(signal.SIGHUP, _interrupt)
    # Also if the shell started us with the signal ignored (`make demo &`).
    signal.signal(signal.SIGINT, _interrupt)
    if chosen.keep:
        return in_background(lambda hand_over: _run(chosen, hand_over))
    return _run(chosen, None)


def _run(chosen: Options, hand_over: HandOver | None) -> int:
    screen = Screen(sys.stdout)
    try:
        reason = why_simulated(chosen)
        if not reason:
            return run_on_real_nodes(chosen, screen)
        if chosen.nodes == "real":
            print(f"demo: NODES=real: {reason}", file=sys.stderr)
            return _NOT_STARTED
        screen.report(f"nodes: simulated (KWOK): {reason}")
        with simulated_cluster(chosen, screen.report) as put_up:
            introduce(put_up, screen)
            put_up.await_recommendations(screen.report)
            verdict = SimulatedShow(put_up, screen).run()
            conclude(verdict, screen)
            if hand_over is not None:
                describe_use(put_up, screen)
                hand_over(verdict.exit_code, put_up.plane.logs / "demo.log")
                go_on(put_up)
        return verdict.exit_code
    except KeyboardInterrupt:
        screen.report("")
        screen.report("stopped; nothing is left running")
        return _INTERRUPTED
    except _FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return _NOT_STARTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Handle the signal only once: nothing must interrupt the shutdown again.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def in_background(work: Callable[[HandOver], int]) -> int:
    """Return the exit code that `work` hands over, or its result if it hands none over. It returns in both processes:
    in the command, and in the background when the work is done. The command forwards SIGTERM, and other causes of
    `KeyboardInterrupt`, to the work as SIGTERM."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        # Out of reach of the terminal's Ctrl-C and of its end.
        os.setsid()
        return work(lambda code, log: _hand_over(writing, code, log))
    os.close(writing)
    try:
        handed = os.read(reading, 1)
    except KeyboardInterrupt:
        os.kill(worker, signal.SIGTERM)
        handed = b""
    if handed:
        return handed[0]
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    return code if code >= 0 else 128 - code


def _hand_over(pipe: int, code: int, log: Path) -> None:
    sys.stdout.flush()
    with log.open("ab") as output, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.write(pipe, bytes([code]))
    os.close(pipe)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
