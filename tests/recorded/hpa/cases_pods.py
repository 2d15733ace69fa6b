"""Scenarios of the HPA: pods that are unready, young, not measured, failed or going; and the target's scale."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recorded.hpa import build as b
from tests.recorded.replay import Json

_CPU_80 = b.resource(utilization=80)
_CPU_100M = b.resource(average="100m")


def _both(
    name: str, steps: list[Json], *, syncs: int = 3, settings: Mapping[str, float] = b.SETTINGS
) -> list[Json]:
    """The same pods under a target in percent and one in millicores."""
    return [
        b.scenario(f"{name}-utilization", [_CPU_80], steps, syncs=syncs, settings=settings),
        b.scenario(f"{name}-average", [_CPU_100M], steps, syncs=syncs, settings=settings),
    ]


def readiness() -> list[Json]:
    """The initialization period, the readiness delay, and the age of metrics."""
    made: list[Json] = []
    load = b.cpu(b.names(5, 180))
    three_and = b.pods(3)
    starting = [
        *three_and,
        b.pod("p3", ready=False, started=-20, since=-20),
        b.pod("p4", phase="Pending", ready=None),
    ]
    made += _both("unready-pods-scaling-out", [b.begin(5, starting, load)])
    made += _both("unready-pods-little-load", [b.begin(5, starting, b.cpu(b.names(5, 30)))], syncs=23)
    made += _both("unready-pods-stop-scaling-out", [b.begin(5, starting, b.cpu(b.names(5, 118)))])
    # A pod that started at second 0 leaves its initialization period at second 300.
    late = [*three_and, b.pod("p3", ready=False, started=0, since=10)]
    made += _both("initialization-period-ends", [b.begin(4, late, load)], syncs=22)
    flapped = [*three_and, b.pod("p3", ready=False, started=0, since=200)]
    made += _both(
        "unready-after-the-delay-counts", [b.begin(4, flapped, load), b.step(210, pods=flapped)], syncs=22
    )
    edge = [
        *three_and,
        b.pod("p3", ready=False, started=-400, since=-370),
        b.pod("p4", ready=False, started=-400, since=-371),
    ]
    made += _both("readiness-delay-to-the-second", [b.begin(5, edge, load)])
    fresh = [*three_and, b.pod("p3", started=-60, since=0)]
    # A window of 15 s measured at second t - 5 counts where the pod was ready by t - 20.
    made += _both("metric-older-than-readiness", [b.begin(4, fresh, load)], syncs=4)
    made += _both(
        "flags-of-initialization",
        [b.begin(4, late, load)],
        syncs=8,
        settings={"cpuInitializationPeriod": 60, "initialReadinessDelay": 5},
    )
    bare = [b.pod("p0"), b.pod("p1", ready=None), b.pod("p2", started=None), b.pod("p3")]
    made += _both("no-condition-or-start-time", [b.begin(4, bare, load)])
    memory = b.readings(resource=[b.measured("memory", b.names(4, 200 * 2**20 * 1000))])
    made.append(
        b.scenario(
            "readiness-does-not-matter-for-memory",
            [b.resource("memory", average="100Mi")],
            [b.begin(4, late, memory)],
        )
    )
    none_ready = b.pods(3, ready=False, started=0, since=0)
    made += _both("nobody-ready", [b.begin(3, none_ready, load), b.step(45, pods=b.pods(3))], syncs=4)
    return made


def missing() -> list[Json]:
    """Pods without metrics, failed ones, ones that are being deleted."""
    five = b.pods(5)
    made: list[Json] = []
    made += _both("missing-scaling-out", [b.begin(5, five, b.cpu(b.names(3, 200)))])
    made += _both("missing-scaling-in", [b.begin(5, five, b.cpu(b.names(3, 10)))], syncs=23)
    made += _both("missing-turns-the-direction-up", [b.begin(5, five, b.cpu(b.names(3, 95)))])
    made += _both("missing-turns-the-direction-down", [b.begin(5, five, b.cpu(b.names(1, 150)))])
    made += _both("missing-at-target", [b.begin(5, five, b.cpu(b.names(3, 100)))])
    made += _both(
        "missing-and-unready",
        [
            b.begin(
                5,
                [*b.pods(4), b.pod("p4", ready=False, started=0, since=0)],
                b.cpu({"p0": 400, "p1": 400, "p4": 900}),
            )
        ],
    )
    made += _both("no-readings", [b.begin(5, five, b.readings())])
    made += _both("empty-readings", [b.begin(5, five, b.cpu({}))])
    high = b.resource(utilization=140)
    made.append(
        b.scenario(
            "missing-under-a-target-above-100", [high], [b.begin(5, five, b.cpu(b.names(3, 60)))], syncs=23
        )
    )
    gone = [
        b.pod("p0"),
        b.pod("p1"),
        b.pod("p2", phase="Failed", ready=False),
        b.pod("p3", deleted=-5),
        b.pod("p4", phase="Succeeded", ready=False),
    ]
    made += _both("failed-deleted-succeeded", [b.begin(5, gone, b.cpu(b.names(5, 170)))])
    made += _both("failed-deleted-little-load", [b.begin(5, gone, b.cpu(b.names(5, 20)))], syncs=23)
    ended = [b.pod("p0", phase="Failed", ready=False), b.pod("p1", deleted=-5)]
    made += _both("nobody-left", [b.begin(2, ended, b.cpu(b.names(2, 170)))])
    made += _both("no-pods", [b.begin(2, [], b.cpu(b.names(2, 170)))])
    more = b.pods(8)
    made += _both("more-pods-than-replicas", [b.begin(4, more, b.cpu(b.names(8, 95)))])
    made += _both("more-pods-than-replicas-scaling-in", [b.begin(4, more, b.cpu(b.names(7, 62)))], syncs=23)
    return made


# The text of a selector comes from whoever serves the scale subresource; for a custom resource that is anybody. What is
# wrong with a label's name or value is not here: those errors have other words than Go's.
_SELECTORS = (
    *(
        "app==web",
        "app!=db",
        "app in (web, db)",
        "app notin (web)",
        "app",
        "!app",
        "!gone",
        " app = web , n ",
    ),
    *("n>5", "n<5", "n>9", "n<99", "app>5", "n>9223372036854775807", "n<9223372036854775808", "n>five", "n>"),
    *("big>5", "app in ()", "app in (,web)", "app in (web,,db)", "app=", "app=,n", "in in (in)", "notin=in"),
    *("=web", "!", "!=web", "app web", "app=web db", "!app=web", "app=web,", "app==)", "app in web"),
    *("app in (=", "app in (web", "app in (web,(", "app in (web db)", "app notin", ",", "(", "app=web,,n"),
)


def selectors() -> Json:
    """Selectors that can be read, and that can't, one in each sync."""
    made = [b.pod(f"p{number}") for number in range(3)]
    made[0]["metadata"]["labels"] |= {"n": "7", "in": "in"}
    made[1]["metadata"]["labels"] |= {"n": "seven", "big": str(2**63), "notin": "in"}
    made[2]["metadata"]["labels"] |= {"n": "-7", "app": ""}
    steps = [b.begin(3, made, b.cpu(b.names(3, 100)))]
    steps += [b.step(15 * number, selector=text) for number, text in enumerate(_SELECTORS, 2)]
    return b.scenario("selectors-of-every-kind", [_CPU_80], steps, syncs=len(_SELECTORS) + 1)


def target() -> list[Json]:
    """The target's scale: its replicas and selector; what people change meanwhile."""
    three = b.pods(3)
    busy = b.cpu(b.names(10, 100))
    back = [
        b.begin(3, three, busy, selector=""),
        b.step(45, selector=b.SELECTOR),
        b.step(75, selector="app in (web"),
        b.step(105, selector="app notin (db),!gone"),
        b.step(135, selector="app=other"),
    ]
    zero = [
        b.begin(0, three, busy),
        b.step(45, replicas=2),
        b.step(75, replicas=0),
        b.step(105, replicas=1),
    ]
    by_hand = [
        b.begin(3, three, busy),
        b.step(45, replicas=15),
        b.step(75, replicas=1, current=4),
        b.step(105, replicas=6),
    ]
    changed = [
        b.begin(3, three, busy),
        b.step(45, spec=b.spec([_CPU_80], most=2)),
        b.step(75, spec=b.spec([_CPU_80], least=5, most=9)),
        b.step(105, spec=b.spec([_CPU_100M], most=9, behavior=b.behavior(up=b.rules(window=60)))),
        b.step(150, spec=b.spec([_CPU_80], most=9)),
    ]
    return [
        b.scenario("selector-missing-bad-and-back", [_CPU_80], back, syncs=11),
        b.scenario("replicas-zero-switches-off", [_CPU_80], zero, syncs=9),
        b.scenario("replicas-changed-by-hand", [_CPU_80], by_hand, syncs=10),
        b.scenario(
            "replicas-changed-by-hand-with-behaviour", [_CPU_80], by_hand, syncs=10, behavior=b.behavior()
        ),
        b.scenario("spec-changed-meanwhile", [_CPU_80], changed, syncs=14),
        b.scenario("below-the-minimum", [_CPU_80], [b.begin(2, three, busy)], least=4, syncs=4),
        b.scenario(
            "minimum-missing", [_CPU_80], [b.begin(3, three, b.cpu(b.names(3)))], least=None, syncs=23
        ),
        b.scenario("minimum-equals-maximum", [_CPU_80], [b.begin(3, three, busy)], least=3, most=3, syncs=3),
        b.scenario(
            "little-load-at-the-minimum",
            [_CPU_80],
            [b.begin(3, three, b.cpu(b.names(3, 1)))],
            least=3,
            syncs=23,
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*readiness(), *missing(), selectors(), *target()]
