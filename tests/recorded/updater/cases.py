"""Scenarios of the VPA's updater and webhook, each for something they do: priorities, the bounds of a recommendation,
ages, OOMs, how many pods at once, resizes in place that wait or fail, policies, limits."""

from __future__ import annotations

from tests.recorded.replay import Json
from tests.recorded.updater import build as b
from tests.recorded.vpa.build import NANOSECONDS

_ALL: Json = {"EvictionToleranceFraction": 1.0}
_NEARLY: Json = {"EvictionToleranceFraction": 0.75}
_WIDE = b.cpu("100m", "1m", "100")
"""Recommends what `b.pods` have, in bounds that nothing leaves."""


def priorities() -> list[Json]:
    """Which pods are changed, in which order."""
    sizes = {"shrinks": "1000", "grows": "8", "grows-more": "2", "same": "8", "fits": "10"}
    ages = {"old": b.OLD, "just-old": -12 * b.HOUR, "young": b.YOUNG, "not-started": None}
    inside = [b.pod(name, cpu="8", started=started) for name, started in ages.items()]
    changes = [
        b.pod(name, cpu=name) for name in ("9", "9050m", "9090m", "9091m", "9100m", "11", "11112m", "12")
    ]
    bounds = [
        b.pod(name, cpu=name, started=b.YOUNG) for name in ("5", "5999m", "6", "6001m", "13999m", "14", "15")
    ]
    two = [
        b.pod("both", b.container("app", {"cpu": "6"}), b.container("log", {"cpu": "4"})),
        b.pod("one-way", b.container("app", {"cpu": "10"}), b.container("log", {"cpu": "5"})),
        b.pod("even-out", b.container("app", {"cpu": "9"}), b.container("log", {"cpu": "6"})),
        b.pod("no-request", b.container("app", {"memory": "1"}), b.container("log", {"cpu": "7"})),
        b.pod("other", b.container("proxy", {"cpu": "1"})),
    ]
    memory = [
        b.pod(name, b.container(requests={"cpu": "4", "memory": name}))
        for name in ("10M", "20M", "20000001", "2500M")
    ]
    both = b.recommended(
        {"cpu": "2", "memory": "20M"}, {"cpu": "1", "memory": "5M"}, {"cpu": "3", "memory": "30M"}
    )
    recommendations = [b.recommended({"cpu": "8"}), b.recommended({"cpu": "7"}, name="log")]
    return [
        b.scenario(
            "in-order-of-priority",
            [b.loop([b.pod(n, cpu=c) for n, c in sizes.items()], b.cpu("10"))],
            flags=_ALL,
        ),
        b.scenario("inside-the-bounds-by-age", [b.loop(inside, b.cpu("10", "6", "14"))], flags=_ALL),
        b.scenario("inside-the-bounds-by-change", [b.loop(changes, b.cpu("10", "6", "14"))], flags=_ALL),
        b.scenario("outside-the-bounds", [b.loop(bounds, b.cpu("10", "6", "14"))], flags=_ALL),
        b.scenario(
            "bounds-of-one-side",
            [b.loop(bounds, b.cpu("10", "6")), b.loop(bounds, b.cpu("10", None, "14"), at=60)],
            flags=_ALL,
        ),
        b.scenario("two-containers", [b.loop(two, *recommendations)], flags=_ALL),
        b.scenario("cpu-and-memory", [b.loop(memory, both)], flags=_ALL),
        b.scenario("nothing-recommended", [b.loop(b.pods(3)), b.loop(b.pods(3), at=60)], flags=_ALL),
        b.scenario(
            "other-thresholds",
            [b.loop([*changes, *inside], b.cpu("10", "6", "14"))],
            flags={
                **_ALL,
                "DefaultUpdateThreshold": 0.01,
                "PodLifetimeUpdateThreshold": 12 * b.HOUR * NANOSECONDS + 1,
            },
        ),
    ]


def ooms() -> list[Json]:
    """Containers that were OOMKilled."""

    def killed(name: str, ran: float, ago: float, cpu: str = "9900m", container: str = "app") -> Json:
        own = b.container(container, {"cpu": cpu}, oom=(-ago - ran, -ago))
        return b.pod(name, own, started=b.YOUNG)

    pods = [
        killed("quick", 60, 60),
        killed("quick-and-fits", 60, 60, cpu="10"),
        killed("ran-long", 600, 60),
        killed("ran-nearly-long", 599, 60),
        killed("long-ago", 60, 600),
        killed("nearly-long-ago", 60, 599),
        killed("other-container", 60, 60, container="log"),
    ]
    off = [b.policy("app", mode="Off")]
    shorter = {**_ALL, "EvictAfterOOMThreshold": 60 * NANOSECONDS}
    recommendation = b.cpu("10", "6", "14")
    return [
        b.scenario("quick-ooms", [b.loop(pods, recommendation)], flags=_ALL),
        b.scenario(
            "quick-ooms-where-the-policy-is-off", [b.loop(pods, recommendation)], flags=_ALL, policies=off
        ),
        b.scenario("quick-ooms-with-another-threshold", [b.loop(pods, recommendation)], flags=shorter),
        b.scenario(
            "quick-ooms-in-place", [b.loop(pods, recommendation)], flags=_ALL, mode="InPlaceOrRecreate"
        ),
    ]


def budgets(mode: str) -> list[Json]:
    """How many at once: by running pods, replicas and tolerance."""
    cases = [
        (running, replicas, tolerance)
        for running, replicas in ((1, 1), (2, 2), (3, 3), (5, 5), (4, 5), (3, 5), (6, 5), (3, 0), (12, 10))
        for tolerance in (0.0, 0.1, 0.5, 0.8, 1.0)
    ]
    gone = [
        *b.pods(2),
        b.pod("deleted", cpu="1m", deleted=-1),
        b.pod("unscheduled", cpu="1m", node="", started=None),
    ]
    return [
        *(
            b.scenario(
                f"{mode}-{running}-of-{replicas}-tolerance-{tolerance}",
                [b.loop(b.pods(running), b.cpu("1"), replicas=replicas)],
                mode=mode,
                flags={"EvictionToleranceFraction": tolerance},
            )
            for running, replicas, tolerance in cases
        ),
        b.scenario(f"{mode}-pods-that-do-not-count", [b.loop(gone, b.cpu("1"), replicas=2)], mode=mode),
        *(
            b.scenario(
                f"{mode}-min-replicas-{least}",
                [b.loop(b.pods(count), b.cpu("1")) for count in (1, 2, 3)],
                mode=mode,
                flags={"MinReplicas": least},
            )
            for least in (0, 1, 3)
        ),
        *(
            b.scenario(
                f"{mode}-min-replicas-{least}-of-the-vpa",
                [b.loop(b.pods(count), b.cpu("1")) for count in (1, 2, 3)],
                mode=mode,
                min_replicas=least,
            )
            for least in (0, 1, 3)
        ),
    ]


def modes() -> list[Json]:
    """What each mode does to pods that run and to new ones."""
    return [
        b.scenario(
            f"mode-{mode}", [b.loop(b.pods(4), b.cpu("1")), b.loop(b.pods(4), b.cpu("2"), at=60)], mode=mode
        )
        for mode in ("Off", "Initial", "Recreate", "Auto", "InPlaceOrRecreate", None)
    ]


def _waiting(state: str, cpu: str = "100m", name: str = "stuck") -> Json:
    own = [b.container(requests={"cpu": cpu})]
    return b.pod(name, *own, desired=[b.container(requests={"cpu": "700m"})], resize=state)


def in_place() -> list[Json]:
    """Resizes that wait, fail, or are refused."""
    fit = [b.pod(f"fits-{number}", cpu="1") for number in range(3)]
    recommendation = b.cpu("1")

    def follow(
        name: str, *loops: tuple[float, list[Json]], mode: str = "InPlaceOrRecreate", **flags: object
    ) -> Json:
        steps = [b.loop(pods, recommendation, at=at, replicas=4) for at, pods in loops]
        return b.scenario(name, steps, mode=mode, flags=flags)

    stuck = [_waiting("Deferred"), *fit]
    refused = [
        b.pod("refused-0", cpu="100m", refused=True),
        *b.pods(2),
        b.pod("refused-1", cpu="100m", refused=True),
    ]
    return [
        *(
            follow(f"resize-{state or 'requested'}", (0, [_waiting(state), *fit]))
            for state in ("", "Deferred", "Infeasible", "Error")
        ),
        follow("deferred-for-five-minutes", *((at, stuck) for at in (0, 60, 300, 301, 360))),
        follow(
            "deferred-again-after-an-hour", (0, stuck), (60, [b.pod("stuck", cpu="1"), *fit]), (3600, stuck)
        ),
        follow("deferred-while-others-are-missing", (0, stuck[:2]), (360, stuck[:2]), (361, stuck)),
        follow("infeasible-but-fits", (0, [_waiting("Infeasible", cpu="1"), *fit])),
        follow(
            "infeasible-beside-resizes",
            (0, [_waiting("Infeasible", cpu="900m"), *b.pods(3)]),
            (60, [_waiting("Infeasible", cpu="900m"), *b.pods(1), *fit[:2]]),
        ),
        follow(
            "infeasible-and-one-may-be-missing",
            (0, [_waiting("Infeasible"), *b.pods(3)]),
            EvictionToleranceFraction=0.1,
        ),
        follow("refused", (0, refused)),
        follow("refused-with-more-tolerance", (0, refused), **_NEARLY),
        *(
            follow(
                f"{mode}-while-a-resize-waits",
                (0, stuck),
                (301, stuck),
                (360, [_waiting("Infeasible"), *b.pods(3)]),
                mode=mode,
            )
            for mode in ("Recreate", "Auto")
        ),
    ]


def webhook() -> list[Json]:
    """What a new pod gets."""
    small = {"cpu": "100m", "memory": "100Mi"}
    given = {
        "without-limits": b.container(requests=small),
        "without-anything": b.container(),
        "equal-limits": b.container(requests=small, limits=small),
        "twice-the-requests": b.container(requests=small, limits={"cpu": "200m", "memory": "200Mi"}),
        "odd-proportions": b.container(
            requests={"cpu": "150m", "memory": "150"}, limits={"cpu": "200m", "memory": "200"}
        ),
        "only-limits": b.container(limits={"cpu": "1", "memory": "1Gi"}),
        "limit-of-one-resource": b.container(requests=small, limits={"memory": "123Mi"}),
        "too-large-for-an-int64": b.container(
            requests={"cpu": "1m", "memory": "1"}, limits={"cpu": "9P", "memory": "9P"}
        ),
    }
    policies: dict[str, list[Json] | None] = {
        "no-policy": None,
        "requests-only": [b.policy(controlledValues="RequestsOnly")],
        "bounds": [
            b.policy(minAllowed={"cpu": "1", "memory": "0"}, maxAllowed={"cpu": "0", "memory": "64Mi"})
        ],
        "bounds-that-contradict": [b.policy(minAllowed={"cpu": "3"}, maxAllowed={"cpu": "2"})],
        "for-all-and-for-one": [
            b.policy("*", maxAllowed={"cpu": "7m"}),
            b.policy(minAllowed={"cpu": "2"}),
            b.policy(minAllowed={"cpu": "4"}),
            b.policy("*", maxAllowed={"cpu": "5m"}),
        ],
        "for-all": [
            b.policy("*", maxAllowed={"cpu": "7m"}),
            b.policy("*", maxAllowed={"cpu": "5m"}),
            b.policy("log"),
        ],
    }
    whole = b.recommended(
        {"cpu": "333m", "memory": "400Mi"}, {"cpu": "20m", "memory": "30Mi"}, {"cpu": "2", "memory": "2Gi"}
    )
    part = b.recommended({"cpu": "50m"})
    zero = b.recommended({"cpu": "0", "memory": "0"})
    return [
        b.scenario(
            f"new-pod-{name}-{kind}",
            [b.loop([], recommendation, at=at) for at, recommendation in enumerate((whole, part, zero))],
            template=[template, b.container("log", {"cpu": "5m"})],
            policies=policy,
        )
        for name, template in given.items()
        for kind, policy in policies.items()
    ]


def cases() -> list[Json]:
    """All that are written."""
    return [
        *priorities(),
        *ooms(),
        *budgets("Recreate"),
        *budgets("InPlaceOrRecreate"),
        *modes(),
        *in_place(),
        *webhook(),
    ]
