"""`hvpa approve`: approve the sizes that Hvpas in mode Review want, until a time. It writes an annotation, which may
also come from Git (docs/review.md)."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
import re
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from hvpa.api.hvpa.status import read_status
from hvpa.api.values.duration import parse_duration
from hvpa.api.values.text import one_line
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.errors import UsageError
from hvpa.cli.input.live import Reader
from hvpa.cli.overview import change, waiting
from hvpa.cli.write.hvpas import Decide, HvpaChange, WrittenHvpa, add_selection, change_selected
from hvpa.core.gates.approval import ANNOTATION, LONGEST_NAME, Approval
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import JSON, Body
from hvpa.kube.clock import SystemClock

UNTIL: Final = "1d"
LONGEST: Final = dt.timedelta(days=90)
_DAYS: Final = re.compile(r"([0-9]{1,4})d\Z", re.ASCII)
_REVIEW: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _User(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _SelfReview(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_selection(parser)
    add = parser.add_argument
    add("--until", metavar="DURATION", type=_duration, default=UNTIL,
        help=f"how long the approval holds, such as 12h or 7d, at most 90d (default {UNTIL})")  # fmt: skip
    add("--up-only", action="store_true", help="approve raises only")
    add("--revoke", action="store_true", help="remove the approval instead")


def main(args: argparse.Namespace) -> int:
    """Approve the sizes of the selected Hvpas. Raises CommandError."""
    if args.revoke and args.up_only:
        raise UsageError("use either --revoke or --up-only, not both")

    async def decider(reader: Reader) -> Decide:
        if args.revoke:
            return revoked
        until = SystemClock().now().replace(microsecond=0) + args.until
        return partial(_approved, by=await who(reader), until=until, up_only=args.up_only)

    return change_selected(args, decider)


def _duration(text: str) -> dt.timedelta:
    days = _DAYS.match(text)
    try:
        duration = dt.timedelta(days=int(days[1])) if days is not None else parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not dt.timedelta(0) < duration <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text}: must be more than 0, and at most 90d")
    return duration


async def who(reader: Reader) -> str:
    """The user as the API server sees them; with API servers older than 1.28, the local user's name, if any."""
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await reader.transport.request(
            "POST", _REVIEW, None, Body(msgspec.json.encode(document), JSON)
        )
    except ApiError:
        with suppress(KeyError, OSError, ImportError):  # a container's user may have no name
            return one_line(getpass.getuser(), LONGEST_NAME)
        return ""
    return one_line(msgspec.json.decode(answer, type=_SelfReview).status.user_info.username, LONGEST_NAME)


def revoked(hvpa: WrittenHvpa) -> HvpaChange | str:
    """Decide to revoke the approval of an Hvpa."""
    if ANNOTATION not in hvpa.metadata.annotations:
        return "has no approval"
    return HvpaChange("revoked its approval", {ANNOTATION: None})


def _approved(hvpa: WrittenHvpa, by: str, until: dt.datetime, *, up_only: bool) -> HvpaChange | str:
    """The approval of the changes that wait for it, as the status shows them."""
    if hvpa.spec.mode != "Review":
        return f"needs no approval: its mode is {hvpa.spec.mode}"
    sizes: dict[str, dict[str, str]] = {}
    texts = []
    for entry in waiting(read_status(bytes(hvpa.status))[0]):
        if up_only and entry.direction != "up":
            continue
        sizes.setdefault(entry.container or "", {})[entry.resource or ""] = entry.wanted or "0"
        texts.append(change(entry))
    if not sizes:
        return f"no {'raise' if up_only else 'change'} waits for approval"
    approval = Approval(until=until, sizes=sizes, by=by, only="up" if up_only else None)  # type: ignore[arg-type]
    text = msgspec.json.encode(approval, order="sorted").decode()
    return HvpaChange(f"approved until {readable_timestamp(until)}: {', '.join(texts)}", {ANNOTATION: text})
