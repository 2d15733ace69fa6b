"""The command line: finds the command, runs it, and turns whatever goes wrong into one line and an exit code.

Each command is a module with NAME, HELP, add_arguments and main; only the one that runs is imported,
since the operator's own modules take long.
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
from typing import Any, Final, NoReturn, Protocol, TextIO, cast

from hvpa.cli.errors import DONE, USAGE, WRONG, CommandError, one_line

COMMANDS: Final = {
    "run": "hvpa.cli.run",
    "crd": "hvpa.cli.crd",
    "validate": "hvpa.cli.validate.command",
    "explain": "hvpa.cli.explain.command",
    "status": "hvpa.cli.status.command",
    "history": "hvpa.cli.history.command",
    "pause": "hvpa.cli.mode.pause",
    "resume": "hvpa.cli.mode.resume",
    "report": "hvpa.cli.report.command",
    "simulate": "hvpa.cli.simulate",
}
"""Commands by name, in the order of the help."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells count it: 128 + SIGINT."""
_DEBUG_HELP: Final = "show tracebacks"


class Command(Protocol):
    """What a command's module offers."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's flags."""
        ...

    def main(self, args: argparse.Namespace) -> int:
        """Run the command; its exit code. A CommandError becomes one line and its own code."""
        ...


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(USAGE, f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Prints the version, which is looked up only for this flag."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **options: Any) -> NoReturn:
        """Exit with 0."""
        try:
            version = metadata.version("hvpa")
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"hvpa {version}")
        parser.exit(DONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) names; its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prog = _prog(sys.argv[0] if sys.argv else "")
    for stream in (sys.stdout, sys.stderr):
        _never_fail(stream)
    try:
        code = _run(_parser(prog, arguments), arguments)
        _flush()
        return code
    except BrokenPipeError:  # the reader of the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _report(prog, error, debug="--debug" in arguments)


def _run(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has printed why
        return end.code if isinstance(end.code, int) else USAGE
    code: int = args.run_command(args)
    return code


def _flush() -> None:
    """Bring out what was printed; a disk that is full is reported as any other mistake."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"standard output can't be written: {error.strerror}") from None


def _report(prog: str, error: Exception, *, debug: bool) -> int:
    """Print an error in one line; the code to exit with."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, CommandError):
        text, code = str(error), error.code
    else:
        hint = "" if debug else " (--debug shows where)"
        text, code = f"internal error: {type(error).__name__}: {error}{hint}", WRONG
    print(f"{prog}: error: {one_line(text)}", file=sys.stderr)
    return code


def _parser(prog: str, arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog=prog, description="Scales workloads horizontally and vertically.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument("--debug", action="store_true", help=_DEBUG_HELP)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked_for = next((one for one in arguments if not one.startswith("-")), "")
    for name in _wanted(asked_for, arguments):
        command = cast(Command, importlib.import_module(COMMANDS[name]))
        sub = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=_DEBUG_HELP)
        command.add_arguments(sub)
        sub.set_defaults(run_command=command.main)
    return parser


def _wanted(asked_for: str, arguments: Sequence[str]) -> Sequence[str]:
    """The commands that this command line needs to know."""
    if asked_for in COMMANDS:
        return [asked_for]
    return [] if "--version" in arguments else list(COMMANDS)


def _prog(called_as: str) -> str:
    """How the user called us: `hvpa`, or `kubectl hvpa` where kubectl did."""
    return "kubectl hvpa" if Path(called_as).name.startswith("kubectl-hvpa") else "hvpa"


def _never_fail(stream: TextIO) -> None:
    """Let a terminal that can't show a character not be a reason to fail."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
