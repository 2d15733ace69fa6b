"""The command line: finds and runs the command, and turns each error into a line and an exit code.

Each command is a module with `add_arguments` and `main`. Only the selected module is imported, since the operator's
own modules take long to import.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, NoReturn, TextIO

from hvpa.cli import laboratory
from hvpa.cli.errors import DONE, USAGE, WRONG, CommandError, plain_line

COMMANDS: Final = {
    "run": ("hvpa.cli.run", "run the operator"),
    "crd": ("hvpa.cli.crd", "print the CustomResourceDefinition of Hvpa as YAML"),
    "validate": ("hvpa.cli.validate.command", "check Hvpa manifests without a cluster"),
    "explain": (
        "hvpa.cli.explain.command",
        "show the operator's last report of an Hvpa and the current decision, step by step; read-only",
    ),
    "status": (
        "hvpa.cli.status",
        "show an Hvpa and each of its pods: present size, desired size, and reason for waiting; or all Hvpas",
    ),
    "history": (
        "hvpa.cli.history",
        "show the changes of an Hvpa with times and reasons, newest last; read-only",
    ),
    "dashboard": (
        "hvpa_lab.dashboard.command",
        "serve a read-only web page: all Hvpas at a glance, each with live charts, reasons and simulated changes",
    ),
    "pause": (
        "hvpa.cli.write.mode",
        "set spec.mode of Hvpas to Paused; paused Hvpas do not change their workloads",
    ),
    "resume": (
        "hvpa.cli.write.mode",
        "restore the mode that paused Hvpas had before `hvpa pause`; Apply if it is unknown",
    ),
    "approve": (
        "hvpa.cli.write.approve",
        "approve the changes of requests that wait for it in Hvpas of mode Review",
    ),
    "undo": (
        "hvpa.cli.write.undo",
        "restore the requests and limits before the last change of a pod template, and pause the Hvpa",
    ),
    "report": (
        "hvpa_lab.report.command",
        "show the replicas, requests, cost and risks of each workload under an Hvpa; read-only",
    ),
    "diff": (
        "hvpa_lab.export.command",
        "print how the sizes that HVPA would set differ from the cluster's; read-only, for CI",
    ),
    "export": (
        "hvpa_lab.export.command",
        "write the sizes that HVPA would set into files for Git, as kustomize patches, Helm values or manifests",
    ),
    "init": (
        "hvpa_lab.init.command",
        "write an Hvpa for a workload from its history, and compare it with today's configuration by simulation",
    ),
    "simulate": (
        "hvpa_lab.simulate.command",
        "simulate a workload and compare policies by cost and unmet demand",
    ),
}
"""Module and help of each command, in the order of the help.

`add_arguments(parser)` declares the command's flags, `main(args)` runs it and returns the exit code; a CommandError
becomes a line and its own code.
"""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, by the convention of shells: 128 + SIGINT."""
_DEBUG_HELP: Final = "show tracebacks"


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(USAGE, f"{self.prog}: error: {plain_line(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the process's arguments); returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prog = _prog(sys.argv[0] if sys.argv else "")
    for stream in (sys.stdout, sys.stderr):
        _never_fail(stream)
    try:
        code = _run(_parser(prog, arguments), arguments)
        _flush()
        return code
    except BrokenPipeError:  # the reader has closed the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _report(prog, error, debug="--debug" in arguments)


def _run(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has printed the reason
        return end.code if isinstance(end.code, int) else USAGE
    code: int = args.run_command(args)
    return code


def _flush() -> None:
    """Flush the output; a full disk is reported like any other error."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"standard output can't be written: {error.strerror}") from None


def _report(prog: str, error: Exception, *, debug: bool) -> int:
    """Print an error in one line; returns the exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, CommandError):
        text, code = str(error), error.code
    else:
        hint = "" if debug else " (--debug shows where)"
        text, code = f"internal error: {type(error).__name__}: {error}{hint}", WRONG
    print(f"{prog}: error: {plain_line(text)}", file=sys.stderr)
    return code


def _parser(prog: str, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """A parser with the names of all commands, and the flags of the command in `arguments`."""
    parser = _Parser(prog=prog, description="Scales workloads horizontally and vertically.")
    version = (
        _version() if any(argument.startswith("--v") for argument in arguments) else ""
    )  # this takes 50 ms
    parser.add_argument("--version", action="version", version=version, help="show the version and exit")
    parser.add_argument("--debug", action="store_true", help=_DEBUG_HELP)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = next((argument for argument in arguments if not argument.startswith("-")), "")
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name == wanted:
            in_laboratory = module.startswith(f"{laboratory.PACKAGE}.")
            command = (
                laboratory.load_module(module, name) if in_laboratory else importlib.import_module(module)
            )
            sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=_DEBUG_HELP)
            command.add_arguments(sub)
            sub.set_defaults(run_command=command.main)
    return parser


def _version() -> str:
    try:
        return f"hvpa {metadata.version('hvpa')}"
    except metadata.PackageNotFoundError:
        return "hvpa (not installed)"


def _prog(called_as: str) -> str:
    """The name of the program as the user called it: `hvpa`, or `kubectl hvpa` if kubectl did."""
    return "kubectl hvpa" if Path(called_as).name.startswith("kubectl-hvpa") else "hvpa"


def _never_fail(stream: TextIO) -> None:
    """Escape characters that a terminal can't show, instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
