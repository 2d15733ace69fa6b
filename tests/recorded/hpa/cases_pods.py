"""Scenarios of the HPA: pods that are unready, young, not measured, failed or going; and the target's scale."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recorded.hpa import world as w
from tests.recorded.replay import Json

_CPU_80 = w.resource(utilization=80)
_CPU_100M = w.resource(average="100m")


def _both(
    name: str, steps: list[Json], *, syncs: int = 3, settings: Mapping[str, float] = w.SETTINGS
) -> list[Json]:
    """The same pods under a target in percent and one in millicores."""
    return [
        w.scenario(f"{name}-utilization", [_CPU_80], steps, syncs=syncs, settings=settings),
        w.scenario(f"{name}-average", [_CPU_100M], steps, syncs=syncs, settings=settings),
    ]


def readiness() -> list[Json]:
    """The initialization period, the readiness delay, and the age of metrics."""
    made: list[Json] = []
    load = w.cpu(w.names(5, 180))
    three_and = w.pods(3)
    starting = [
        *three_and,
        w.pod("p3", ready=False, started=-20, since=-20),
        w.pod("p4", phase="Pending", ready=None),
    ]
    made += _both("unready-pods-scaling-out", [w.begin(5, starting, load)])
    made += _both("unready-pods-little-load", [w.begin(5, starting, w.cpu(w.names(5, 30)))], syncs=23)
    made += _both("unready-pods-stop-scaling-out", [w.begin(5, starting, w.cpu(w.names(5, 118)))])
    # A pod that started at second 0 leaves its initialization period at second 300.
    late = [*three_and, w.pod("p3", ready=False, started=0, since=10)]
    made += _both("initialization-period-ends", [w.begin(4, late, load)], syncs=22)
    flapped = [*three_and, w.pod("p3", ready=False, started=0, since=200)]
    made += _both(
        "unready-after-the-delay-counts", [w.begin(4, flapped, load), w.step(210, pods=flapped)], syncs=22
    )
    edge = [
        *three_and,
        w.pod("p3", ready=False, started=-400, since=-370),
        w.pod("p4", ready=False, started=-400, since=-371),
    ]
    made += _both("readiness-delay-to-the-second", [w.begin(5, edge, load)])
    fresh = [*three_and, w.pod("p3", started=-60, since=0)]
    # A window of 15 s measured at second t - 5 counts where the pod was ready by t - 20.
    made += _both("metric-older-than-readiness", [w.begin(4, fresh, load)], syncs=4)
    made += _both(
        "flags-of-initialization",
        [w.begin(4, late, load)],
        syncs=8,
        settings={"cpuInitializationPeriod": 60, "initialReadinessDelay": 5},
    )
    bare = [w.pod("p0"), w.pod("p1", ready=None), w.pod("p2", started=None), w.pod("p3")]
    made += _both("no-condition-or-start-time", [w.begin(4, bare, load)])
    memory = w.readings(resource=[w.measured("memory", w.names(4, 200 * 2**20 * 1000))])
    made.append(
        w.scenario(
            "readiness-does-not-matter-for-memory",
            [w.resource("memory", average="100Mi")],
            [w.begin(4, late, memory)],
        )
    )
    none_ready = w.pods(3, ready=False, started=0, since=0)
    made += _both("nobody-ready", [w.begin(3, none_ready, load), w.step(45, pods=w.pods(3))], syncs=4)
    return made


def missing() -> list[Json]:
    """Pods without metrics, failed ones, ones that are being deleted."""
    five = w.pods(5)
    made: list[Json] = []
    made += _both("missing-scaling-out", [w.begin(5, five, w.cpu(w.names(3, 200)))])
    made += _both("missing-scaling-in", [w.begin(5, five, w.cpu(w.names(3, 10)))], syncs=23)
    made += _both("missing-turns-the-direction-up", [w.begin(5, five, w.cpu(w.names(3, 95)))])
    made += _both("missing-turns-the-direction-down", [w.begin(5, five, w.cpu(w.names(1, 150)))])
    made += _both("missing-at-target", [w.begin(5, five, w.cpu(w.names(3, 100)))])
    made += _both(
        "missing-and-unready",
        [
            w.begin(
                5,
                [*w.pods(4), w.pod("p4", ready=False, started=0, since=0)],
                w.cpu({"p0": 400, "p1": 400, "p4": 900}),
            )
        ],
    )
    made += _both("no-readings", [w.begin(5, five, w.readings())])
    made += _both("empty-readings", [w.begin(5, five, w.cpu({}))])
    high = w.resource(utilization=140)
    made.append(
        w.scenario(
            "missing-under-a-target-above-100", [high], [w.begin(5, five, w.cpu(w.names(3, 60)))], syncs=23
        )
    )
    gone = [
        w.pod("p0"),
        w.pod("p1"),
        w.pod("p2", phase="Failed", ready=False),
        w.pod("p3", deleted=-5),
        w.pod("p4", phase="Succeeded", ready=False),
    ]
    made += _both("failed-deleted-succeeded", [w.begin(5, gone, w.cpu(w.names(5, 170)))])
    made += _both("failed-deleted-little-load", [w.begin(5, gone, w.cpu(w.names(5, 20)))], syncs=23)
    ended = [w.pod("p0", phase="Failed", ready=False), w.pod("p1", deleted=-5)]
    made += _both("nobody-left", [w.begin(2, ended, w.cpu(w.names(2, 170)))])
    made += _both("no-pods", [w.begin(2, [], w.cpu(w.names(2, 170)))])
    more = w.pods(8)
    made += _both("more-pods-than-replicas", [w.begin(4, more, w.cpu(w.names(8, 95)))])
    made += _both("more-pods-than-replicas-scaling-in", [w.begin(4, more, w.cpu(w.names(7, 62)))], syncs=23)
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
    made = [w.pod(f"p{number}") for number in range(3)]
    made[0]["metadata"]["labels"] |= {"n": "7", "in": "in"}
    made[1]["metadata"]["labels"] |= {"n": "seven", "big": str(2**63), "notin": "in"}
    made[2]["metadata"]["labels"] |= {"n": "-7", "app": ""}
    steps = [w.begin(3, made, w.cpu(w.names(3, 100)))]
    steps += [w.step(15 * number, selector=text) for number, text in enumerate(_SELECTORS, 2)]
    return w.scenario("selectors-of-every-kind", [_CPU_80], steps, syncs=len(_SELECTORS) + 1)


def target() -> list[Json]:
    """The target's scale: its replicas and selector; what people change meanwhile."""
    three = w.pods(3)
    busy = w.cpu(w.names(10, 100))
    back = [
        w.begin(3, three, busy, selector=""),
        w.step(45, selector=w.SELECTOR),
        w.step(75, selector="app in (web"),
        w.step(105, selector="app notin (db),!gone"),
        w.step(135, selector="app=other"),
    ]
    zero = [
        w.begin(0, three, busy),
        w.step(45, replicas=2),
        w.step(75, replicas=0),
        w.step(105, replicas=1),
    ]
    by_hand = [
        w.begin(3, three, busy),
        w.step(45, replicas=15),
        w.step(75, replicas=1, current=4),
        w.step(105, replicas=6),
    ]
    changed = [
        w.begin(3, three, busy),
        w.step(45, spec=w.spec([_CPU_80], most=2)),
        w.step(75, spec=w.spec([_CPU_80], least=5, most=9)),
        w.step(105, spec=w.spec([_CPU_100M], most=9, behavior=w.behavior(up=w.rules(window=60)))),
        w.step(150, spec=w.spec([_CPU_80], most=9)),
    ]
    return [
        w.scenario("selector-missing-bad-and-back", [_CPU_80], back, syncs=11),
        w.scenario("replicas-zero-switches-off", [_CPU_80], zero, syncs=9),
        w.scenario("replicas-changed-by-hand", [_CPU_80], by_hand, syncs=10),
        w.scenario(
            "replicas-changed-by-hand-with-behaviour", [_CPU_80], by_hand, syncs=10, behavior=w.behavior()
        ),
        w.scenario("spec-changed-meanwhile", [_CPU_80], changed, syncs=14),
        w.scenario("below-the-minimum", [_CPU_80], [w.begin(2, three, busy)], least=4, syncs=4),
        w.scenario(
            "minimum-missing", [_CPU_80], [w.begin(3, three, w.cpu(w.names(3)))], least=None, syncs=23
        ),
        w.scenario("minimum-equals-maximum", [_CPU_80], [w.begin(3, three, busy)], least=3, most=3, syncs=3),
        w.scenario(
            "little-load-at-the-minimum",
            [_CPU_80],
            [w.begin(3, three, w.cpu(w.names(3, 1)))],
            least=3,
            syncs=23,
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*readiness(), *missing(), selectors(), *target()]
