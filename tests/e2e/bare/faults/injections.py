"""Faults of lists and watches as data: each is a function that brings one about on the proxy, for all that is watched
at once. Where answers differ, each resource gets another of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localcluster.proxy.faults import Damage, Fault
from localcluster.proxy.proxy import Proxy

WATCHED = (
    "hvpas",
    "deployments",
    "statefulsets",
    "horizontalpodautoscalers",
    "verticalpodautoscalers",
    "pods",
)
WATCHES = len(WATCHED)
Injection = Callable[[Proxy, str], list[Fault]]
"""Brings a fault about, and gives the faults that must hit before it is over. The text is an address to redirect to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A code, and what its Retry-After header says."""

    code: int
    retry_after: str | None = None


REFUSALS = (Answer(500), Answer(403), Answer(409), Answer(410), Answer(422), Answer(429))
OVERLOADS = (
    Answer(503),
    Answer(503, "1"),
    Answer(429, "nan"),
    Answer(503, "-7"),
    Answer(429, "Sat, 21 Nov 2026 10:00:00 GMT"),
    Answer(503, "nan"),
)


def _answered(verb: str, answers: Iterable[Answer]) -> Injection:
    def inject(line: Proxy, elsewhere: str) -> list[Fault]:
        faults = [
            line.fail(one.code, verb=verb, path=f"/{plural}$", retry_after=one.retry_after)
            for plural, one in zip(WATCHED, answers, strict=False)
        ]
        _begin_anew(line, verb)
        return faults

    return inject


def _damaged(verb: str, *ways: Damage, seconds: float = 0.2) -> Injection:
    def inject(line: Proxy, elsewhere: str) -> list[Fault]:
        faults = [
            line.damage(ways[index % len(ways)], verb=verb, path=f"/{plural}$", seconds=seconds)
            for index, plural in enumerate(WATCHED)
        ]
        _begin_anew(line, verb)
        return faults

    return inject


def _reset(line: Proxy, elsewhere: str) -> list[Fault]:
    line.cut_in_event(how="reset")
    return []


def _ended(line: Proxy, elsewhere: str) -> list[Fault]:
    line.cut_in_event(how="end")
    return []


def _redirected(line: Proxy, elsewhere: str) -> list[Fault]:
    faults = [line.fail(307, times=WATCHES, verb=verb, location=elsewhere) for verb in ("list", "watch")]
    line.fail(302, verb="patch", path="/deployments/", location=elsewhere)
    line.expire_watches()
    return faults


def _torn(line: Proxy, elsewhere: str) -> list[Fault]:
    """Lists that are longer than a page expire in the middle, as after a compaction."""
    fault = line.fail(410, times=3, verb="list", query="continue=")
    line.expire_watches()
    return [fault]


def _begin_anew(line: Proxy, verb: str) -> None:
    (line.expire_watches if verb == "list" else line.end_watches)()


OUTAGES: dict[str, Injection] = {
    "watches that are reset in the middle of an event": _reset,
    "watches that end in the middle of an event": _ended,
    "watches that are refused": _answered("watch", REFUSALS),
    "watches that are to wait": _answered("watch", OVERLOADS),
    "watches that are damaged": _damaged(
        "watch", Damage.PAGE, Damage.OTHER, Damage.EMPTY, Damage.CHUNKED, Damage.HALF
    ),
    "slow watches": _damaged("watch", Damage.SLOW, seconds=0.05),
    "lists that are refused": _answered("list", REFUSALS),
    "lists that are to wait": _answered("list", OVERLOADS),
    "lists whose second page is gone": _torn,
    "lists that are damaged": _damaged(
        "list", Damage.HALF, Damage.SHORT, Damage.CHUNKED, Damage.OTHER, Damage.PAGE, Damage.EMPTY
    ),
    "slow lists": _damaged("list", Damage.SLOW),
    "redirects to another address": _redirected,
}
