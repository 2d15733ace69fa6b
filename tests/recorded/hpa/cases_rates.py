"""Scenarios of the HPA: limits of a step, stabilization windows, rate policies and their memory. The pods follow the
replicas here and share a load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.recorded.hpa import build as b
from tests.recorded.replay import Json

_MOST_PODS = 60
_PODS = b.pods(_MOST_PODS)
_CPU_80 = b.resource(utilization=80)


def _follow(
    name: str,
    loads: Iterable[tuple[float, int]],
    *,
    syncs: int,
    replicas: int = 2,
    behavior: Json | None = None,
    least: int = 1,
    most: int = _MOST_PODS,
    settings: Mapping[str, float] = b.SETTINGS,
) -> Json:
    """Ready pods of 100m that share the given loads: (second, millicores)."""
    steps = [b.step(at, readings=b.shared_cpu(load, _MOST_PODS)) for at, load in loads]
    steps[0] |= b.begin(replicas, _PODS, steps[0]["readings"], follow=True)
    return b.scenario(
        name, [_CPU_80], steps, syncs=syncs, behavior=behavior, least=least, most=most, settings=settings
    )


def limits() -> list[Json]:
    """The default limits, with and without `behavior`."""
    out_and_in = [(0, 150), (30, 4000), (210, 300)]
    default = b.behavior()
    return [
        _follow("default-limits", out_and_in, syncs=60),
        _follow("default-limits-capped", out_and_in, syncs=60, least=3, most=20),
        _follow("default-limits-from-one", [(0, 3000)], syncs=8, replicas=1),
        _follow("default-behaviour", out_and_in, syncs=60, behavior=default),
        _follow("default-behaviour-capped", out_and_in, syncs=60, behavior=default, least=3, most=20),
        _follow("stabilization-by-flag", out_and_in, syncs=40, settings={"downscaleStabilization": 60}),
        _follow("stabilization-by-flag-none", out_and_in, syncs=40, settings={"downscaleStabilization": 0}),
        _follow(
            "stabilization-by-flag-with-behaviour",
            out_and_in,
            syncs=40,
            behavior=default,
            settings={"downscaleStabilization": 45},
        ),
        _follow(
            "sync-period-of-a-second",
            [(0, 150), (5, 900), (20, 100)],
            syncs=60,
            settings={"syncPeriod": 1, "downscaleStabilization": 12},
        ),
        _follow(
            "sync-period-of-7-seconds-and-a-half",
            out_and_in,
            syncs=90,
            settings={"syncPeriod": 7.5},
            behavior=default,
        ),
        _follow("load-that-swings", [(15 * n, 400 if n % 3 else 1200) for n in range(40)], syncs=60),
    ]


def windows() -> list[Json]:
    """Stabilization windows in both directions."""
    spikes = [(0, 300), (60, 2000), (75, 300), (240, 1200), (420, 900), (600, 100)]
    return [
        _follow("window-down-of-one-minute", spikes, syncs=60, behavior=b.behavior(down=b.rules(window=60))),
        _follow("window-down-none", spikes, syncs=60, behavior=b.behavior(down=b.rules(window=0))),
        _follow("window-up-of-two-minutes", spikes, syncs=60, behavior=b.behavior(up=b.rules(window=120))),
        _follow(
            "windows-both-ways",
            spikes,
            syncs=60,
            behavior=b.behavior(up=b.rules(window=45), down=b.rules(window=90)),
        ),
        _follow(
            "windows-longer-up-than-down",
            spikes,
            syncs=60,
            behavior=b.behavior(up=b.rules(window=300), down=b.rules(window=15)),
        ),
        _follow(
            "windows-with-falling-load-while-waiting-to-grow",
            [(0, 400), (30, 2500), (75, 1500), (105, 3000), (150, 200), (180, 1000)],
            syncs=40,
            replicas=5,
            behavior=b.behavior(up=b.rules(window=60), down=b.rules(window=60)),
        ),
        _follow(
            "window-of-an-hour",
            [(0, 2500), (120, 100)],
            syncs=260,
            replicas=4,
            behavior=b.behavior(down=b.rules(window=3600)),
        ),
    ]


def policies() -> list[Json]:
    """Rate policies: Pods and Percent, Max, Min and Disabled, and what happened in their periods."""
    grow = [(0, 150), (30, 4500)]
    fall = [(0, 4500), (30, 100)]
    wave = [(60 * n, 600 + 500 * (n % 7)) for n in range(14)]
    pods_60 = ("Pods", 3, 60)
    percent_45 = ("Percent", 30, 45)
    made = []
    for select in ("Max", "Min", "Disabled"):
        both = b.behavior(
            up=b.rules(pods_60, percent_45, select=select),
            down=b.rules(pods_60, percent_45, select=select, window=0),
        )
        low = select.lower()
        made += [
            _follow(f"policies-up-{low}", grow, syncs=40, replicas=3, behavior=both),
            _follow(f"policies-down-{low}", fall, syncs=40, replicas=45, behavior=both),
            _follow(f"policies-wave-{low}", wave, syncs=60, replicas=10, behavior=both),
        ]
    return [
        *made,
        _follow("policy-up-pods", grow, syncs=30, behavior=b.behavior(up=b.rules(("Pods", 1, 15)))),
        _follow("policy-up-percent", grow, syncs=30, behavior=b.behavior(up=b.rules(("Percent", 10, 15)))),
        _follow(
            "policy-up-percent-900", grow, syncs=10, behavior=b.behavior(up=b.rules(("Percent", 900, 60)))
        ),
        _follow(
            "policy-down-percent-rounds-towards-zero",
            fall,
            syncs=40,
            replicas=7,
            behavior=b.behavior(down=b.rules(("Percent", 10, 60), window=0)),
        ),
        _follow(
            "policy-down-percent-100",
            fall,
            syncs=10,
            replicas=40,
            behavior=b.behavior(down=b.rules(("Percent", 100, 15), window=0)),
        ),
        _follow(
            "policies-of-half-an-hour",
            wave,
            syncs=120,
            replicas=10,
            behavior=b.behavior(up=b.rules(("Pods", 5, 1800)), down=b.rules(("Pods", 4, 1800), window=30)),
        ),
        _follow(
            "policies-remember-both-directions",
            [(0, 400), (30, 1600), (90, 300), (120, 2500), (200, 300), (260, 1900), (330, 100)],
            syncs=40,
            replicas=4,
            behavior=b.behavior(
                up=b.rules(("Pods", 4, 120), ("Percent", 50, 60), select="Min"),
                down=b.rules(("Percent", 50, 90), ("Pods", 2, 30), select="Min", window=0),
            ),
        ),
        _follow(
            "scale-events-are-reused",
            [(45 * n, 3000 if n % 2 else 200) for n in range(24)],
            syncs=72,
            replicas=5,
            behavior=b.behavior(up=b.rules(("Pods", 6, 30)), down=b.rules(("Pods", 6, 30), window=0)),
        ),
        _follow(
            "disabled-down-only",
            [(0, 400), (30, 2500), (120, 100)],
            syncs=30,
            behavior=b.behavior(down=b.rules(select="Disabled")),
        ),
        _follow(
            "behaviour-capped-both-ways",
            [(0, 400), (30, 4500), (300, 10)],
            syncs=50,
            replicas=4,
            least=3,
            most=12,
            behavior=b.behavior(up=b.rules(("Pods", 2, 15)), down=b.rules(("Pods", 5, 15), window=15)),
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*limits(), *windows(), *policies()]
