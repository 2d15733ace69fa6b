"""Faults of lists and watches as data: each is a function that brings one about on the proxy, for all that is watched
at once. Where answers differ, each resource gets another of them."""

from __future__ import annotations

from collections.abc import Callable

from localcluster.proxy.faults import Damage, Fault
from localcluster.proxy.proxy import Proxy

WATCHED = (
    "hvpas",
    "deployments",
    "statefulsets",
    "horizontalpodautoscalers",
    "verticalpodautoscalers",
    "pods",
    "hvpasizes",
)
WATCHES = len(WATCHED)
Injection = Callable[[Proxy, str], list[Fault]]
"""Brings a fault about, and gives the faults that must hit before it is over. The text is an address to redirect to."""


REFUSALS = (500, 403, 409, 410, 422, 429, 503)


def _refused(verb: str) -> Injection:
    def inject(line: Proxy, elsewhere: str) -> list[Fault]:
        faults = [
            line.fail(code, verb=verb, path=f"/{plural}$")
            for plural, code in zip(WATCHED, REFUSALS, strict=True)
        ]
        _begin_anew(line, verb)
        return faults

    return inject


def _damaged(verb: str, *ways: Damage) -> Injection:
    def inject(line: Proxy, elsewhere: str) -> list[Fault]:
        faults = [
            line.damage(ways[index % len(ways)], verb=verb, path=f"/{plural}$")
            for index, plural in enumerate(WATCHED)
        ]
        _begin_anew(line, verb)
        return faults

    return inject


def _reset(line: Proxy, elsewhere: str) -> list[Fault]:
    line.cut_in_event(how="reset")
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
    "watches that are refused": _refused("watch"),
    "watches that are damaged": _damaged(
        "watch", Damage.PAGE, Damage.OTHER, Damage.EMPTY, Damage.CHUNKED, Damage.HALF
    ),
    "lists that are refused": _refused("list"),
    "lists whose second page is gone": _torn,
    "lists that are damaged": _damaged(
        "list", Damage.HALF, Damage.SHORT, Damage.CHUNKED, Damage.OTHER, Damage.PAGE, Damage.EMPTY
    ),
    "redirects to another address": _redirected,
}
