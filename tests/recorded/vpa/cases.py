"""Scenarios of the VPA recommender, each for something it does: histograms that decay, memory peaks, OOMs, policies,
flags, restarts."""

from __future__ import annotations

from tests.recorded.replay import Json
from tests.recorded.vpa import build as b

_USUAL = b.steady(200 * b.MEBI)
_HALF = b.steady(0.5)


def _day(**more: str) -> list[Json]:
    """Half a core and 300Mi for a day."""
    return list(b.samples((0, b.DAY, 5 * b.MINUTE), _HALF, b.steady(300 * b.MEBI), **more))


def usage() -> list[Json]:
    """What is measured."""
    wave = b.samples((0, 3 * b.DAY, b.MINUTE), b.wave(0.05, 1.8), b.wave(1e8, 9e8), pods=("p0", "p1"))
    moving = b.samples((0, 9 * b.DAY, 10 * b.MINUTE), lambda at: 0.1 + at / b.DAY, lambda at: 2e8 + at * 500)
    falling = b.samples((0, 9 * b.DAY, 10 * b.MINUTE), lambda at: 9 - at / b.DAY, lambda at: 4e9 - at * 4000)
    spiky = b.samples(
        (0, 4 * b.DAY, b.MINUTE),
        lambda at: 3.0 if at % b.HOUR < 240 else 0.07,
        lambda at: 2 * b.GIBI if at % (8 * b.HOUR) < 60 else 150 * b.MEBI,
    )
    edges = [0, 0.0001, 0.0099, 0.01, 0.0101, 0.0205, 1, 999, 1000, 2500]
    sizes = [0, 1, 9_999_999, 10_000_000, 10_000_001, 20_500_000, b.GIBI, 10**12, 2 * 10**12, 7]
    extreme = [b.sample(n * 60, cpu, size) for n, (cpu, size) in enumerate(zip(edges, sizes, strict=True))]
    bad = [
        b.sample(600, 1.0, 5e8),
        b.sample(600, 2.0, 6e8),
        b.sample(540, 3.0, 7e8),
        b.sample(660, -1.0, -1.0),
        b.sample(720, None, 8e8),
        b.sample(780, 4.0, None),
        b.sample(779, 5.0, 9e8),
    ]
    # Requests, which our model does not get, change nothing.
    little = b.requesting(_day(), cpu=0.01, memory=1e7)
    much = b.requesting(
        b.samples((0, b.DAY, b.MINUTE), b.wave(0.2, 2), _USUAL, pods=("p1",)), cpu=8, memory=8 * b.GIBI
    )
    silent = [b.sample(0, None, None), b.sample(600, None, None, pod="p1")]
    half_lives = {"CpuHistogramDecayHalfLife": b.hours(1), "MemoryHistogramDecayHalfLife": b.hours(1)}
    return [
        b.scenario("nothing-at-all", b.ask(0, b.HOUR)),
        b.scenario("never-measured", [*silent, *b.ask(600, b.HOUR)]),
        b.scenario("one-sample", [b.sample(0, 0.25, 4e8), *b.ask(0, 60, b.HOUR, b.DAY)]),
        b.scenario("steady-for-a-day", [*_day(), *b.ask_every(2 * b.HOUR, b.DAY)]),
        b.scenario("daily-wave-of-two-pods", [*wave, *b.ask_every(3 * b.HOUR, 3 * b.DAY)]),
        b.scenario("growing-over-days", [*moving, *b.ask_every(6 * b.HOUR, 9 * b.DAY)]),
        b.scenario("falling-over-days", [*falling, *b.ask_every(6 * b.HOUR, 9 * b.DAY)]),
        b.scenario("short-spikes", [*spiky, *b.ask_every(4 * b.HOUR, 4 * b.DAY)]),
        b.scenario("requests-of-any-size", [*little, *much, *b.ask_every(2 * b.HOUR, b.DAY)]),
        b.scenario("smallest-and-largest-buckets", [*extreme, *b.ask_every(60, 600)]),
        b.scenario("samples-that-are-discarded", [*bad, *b.ask(*range(600, 900, 30))]),
        b.scenario(
            "reference-time-moves",
            [
                *b.samples((0, 12 * b.DAY, 20 * b.MINUTE), b.wave(0.1, 2), b.wave(1e8, 1e9)),
                *b.ask_every(12 * b.HOUR, 12 * b.DAY),
            ],
            flags=half_lives,
        ),
    ]


def memory() -> list[Json]:
    """Peaks of memory by interval, and OOMs."""

    def app(*steps: Json, memory: float = 200 * b.MEBI) -> list[Json]:
        base = b.samples((0, 2 * b.DAY, 10 * b.MINUTE), _HALF, b.steady(memory))
        return [*base, *steps, *b.ask_every(3 * b.HOUR, 2 * b.DAY)]

    peaks = [b.sample(n * b.DAY + 3 * b.HOUR + 1, 0.5, (1 + n % 3) * b.GIBI) for n in range(6)]
    rising = b.samples((0, 6 * b.HOUR, 5 * b.MINUTE), _HALF, lambda at: 1e8 + at * 1e5)
    restarting = [
        step
        for n in range(6)
        for step in (b.oom(n * b.HOUR + 30, 256 * b.MEBI), b.gone(n * b.HOUR + 40, "p0"))
    ]
    return [
        b.scenario(
            "peaks-of-six-days",
            [
                *b.samples((0, 6 * b.DAY, 15 * b.MINUTE), _HALF, _USUAL),
                *peaks,
                *b.ask_every(4 * b.HOUR, 6 * b.DAY),
            ],
        ),
        b.scenario("peak-that-rises-within-its-interval", [*rising, *b.ask_every(b.HOUR, 6 * b.HOUR)]),
        b.scenario("oom-of-a-small-request", app(b.oom(b.HOUR, 128 * b.MEBI))),
        b.scenario("oom-of-a-large-request", app(b.oom(b.HOUR, 4 * b.GIBI))),
        b.scenario("oom-below-the-usage", app(b.oom(b.HOUR, 10 * b.MEBI), memory=3 * b.GIBI)),
        b.scenario(
            "ooms-in-a-row", app(*(b.oom(b.HOUR + 20 * n, (300 + 60 * n) * b.MEBI) for n in range(20)))
        ),
        b.scenario(
            "oom-then-usage-above-it",
            app(b.oom(b.HOUR, 300 * b.MEBI), b.sample(2 * b.HOUR + 1, 0.5, 2 * b.GIBI)),
        ),
        b.scenario(
            "oom-before-any-sample",
            [
                b.sample(0, None, None),
                b.oom(30, 500 * b.MEBI),
                *b.ask(60),
                b.sample(90, 0.2, 1e8),
                *b.ask(120, b.HOUR),
            ],
        ),
        b.scenario(
            "oom-across-days",
            app(
                b.oom(20 * b.HOUR, 1 * b.GIBI),
                b.oom(30 * b.HOUR, 1.5 * b.GIBI),
                b.oom(30 * b.HOUR, 1 * b.GIBI),
            ),
        ),
        b.scenario(
            "ooms-before-the-window-that-become-known-later",
            [
                b.sample(90, 0.2, 1e8),
                b.oom(100, 500 * b.MEBI, ago=70),
                *b.ask(120),
                b.sample(150, 0.2, 1e8),
                b.oom(160, 900 * b.MEBI, ago=10 + b.DAY),
                *b.ask(180),
                b.sample(210, 0.2, 1e8),
                b.oom(220, 9 * b.GIBI, ago=11 + b.DAY),
                *b.ask(240),
            ],
        ),
        b.scenario("oom-of-each-of-several-pods", [*app(), *restarting]),
        b.scenario(
            "flags-of-memory",
            app(b.oom(b.HOUR, 1 * b.GIBI), *peaks[:2]),
            flags={
                "OOMBumpUpRatio": 1.5,
                "OOMMinBumpUp": 1e6,
                "MemoryAggregationInterval": b.hours(6),
                "MemoryAggregationIntervalCount": 20,
                "MemoryHistogramDecayHalfLife": b.hours(10),
            },
        ),
    ]


def pods() -> list[Json]:
    """Several containers and pods, those that go, and restarts."""
    names = ("app", "log", "proxy")
    three = [
        step
        for number, name in enumerate(names)
        for step in b.samples(
            (0, b.DAY, 5 * b.MINUTE),
            b.wave(0.001, 0.4 * number + 0.01, b.HOUR),
            b.wave(1e6, 3e8 * number + 2e6),
            container=name,
        )
    ]
    often = b.ask_every(2 * b.HOUR, b.DAY)
    rolling = [
        step
        for n in range(24)
        for step in (
            *b.samples(
                (n * b.HOUR, (n + 1) * b.HOUR, 5 * b.MINUTE),
                _HALF,
                b.steady(1e8 + n * 2e7),
                pods=(f"p{n}", f"q{n}"),
            ),
            b.gone((n + 1) * b.HOUR - 1, f"p{n}"),
        )
    ]
    away = [*_day(), b.gone(b.DAY, "p0"), *b.ask(b.DAY, 2 * b.DAY, 5 * b.DAY)]
    back = [b.sample(5 * b.DAY + 60, 2.0, 1e9), *b.ask(5 * b.DAY + 60, 6 * b.DAY)]
    week = list(
        b.samples((0, 5 * b.DAY, 10 * b.MINUTE), b.wave(0.05, 1.5), b.wave(1e8, 9e8), pods=("p0", "p1"))
    )
    restarts = [b.restart(t) for t in (b.HOUR + 30, 30 * b.HOUR + 30, 3 * b.DAY + 30)]
    silence = [*_day(), b.gone(b.DAY, "p0"), *b.ask_every(12 * b.HOUR, 14 * b.DAY)]
    afterwards = b.samples((11 * b.DAY, 12 * b.DAY, b.HOUR), b.steady(0.1), b.steady(5e7), pods=("p9",))
    reversed_bounds = {
        "minAllowed": {"cpu": 2, "memory": "1.5Gi"},
        "maxAllowed": {"cpu": "1", "memory": "1Gi"},
    }
    policies = {
        3: [b.policy("*", mode="Off")],
        9: [b.policy("app", maxAllowed={"cpu": "1m", "memory": "1"})],
        15: [b.policy("proxy", **reversed_bounds)],
        21: None,
    }
    changes = [{"at": hour * b.HOUR + 1, "spec": b.spec(given)} for hour, given in policies.items()]
    return [
        b.scenario("silence-longer-than-what-is-remembered", [*silence, *afterwards]),
        b.scenario("three-containers-share-the-minimum", [*three, *often]),
        b.scenario("pods-replaced-hourly", [*rolling, *b.ask_every(b.HOUR, b.DAY)]),
        b.scenario("pod-goes-and-another-comes", [*away, *back]),
        b.scenario("restarts-with-checkpoints", [*week, *restarts, *b.ask_every(5 * b.HOUR, 5 * b.DAY)]),
        b.scenario(
            "restart-after-an-oom",
            [*_day(), b.oom(3 * b.HOUR, b.GIBI), b.restart(4 * b.HOUR + 1), *b.ask_every(b.HOUR, b.DAY)],
        ),
        b.scenario(
            "container-policies",
            [*three, *b.ask_every(2 * b.HOUR, b.DAY)],
            policies=[
                b.policy("app", minAllowed={"cpu": "200m", "memory": "400Mi"}),
                b.policy("log", mode="Off"),
                b.policy("*", maxAllowed={"cpu": "300m", "memory": "100M"}),
            ],
        ),
        b.scenario(
            "controlled-resources",
            [*three, *b.ask_every(2 * b.HOUR, b.DAY)],
            policies=[
                b.policy("app", controlledResources=["memory"]),
                b.policy("log", controlledResources=["cpu"], minAllowed={"memory": "1Gi"}),
                b.policy("proxy", controlledResources=[]),
            ],
        ),
        b.scenario("policies-that-change", [*three, *changes, *b.ask_every(b.HOUR, b.DAY)]),
    ]


FLAGS: dict[str, Json] = {
    "percentiles": {
        "TargetCPUPercentile": 0.5,
        "LowerBoundCPUPercentile": 0.1,
        "UpperBoundCPUPercentile": 1.0,
        "TargetMemoryPercentile": 0.99,
        "LowerBoundMemoryPercentile": 0.01,
        "UpperBoundMemoryPercentile": 0.999,
    },
    "margin-and-confidence": {
        "SafetyMarginFraction": 0.4,
        "ConfidenceIntervalCPU": b.hours(3),
        "ConfidenceIntervalMemory": b.hours(90),
    },
    "rounding": {"RoundCPUMillicores": 50, "RoundMemoryBytes": 8 * b.MEBI},
    "the-maximum": {"MaxAllowedCPU": "1500m", "MaxAllowedMemory": "1Gi"},
    "half-lives": {"CpuHistogramDecayHalfLife": b.hours(5), "MemoryHistogramDecayHalfLife": b.hours(60)},
}


def flags() -> list[Json]:
    """The recommender's flags."""
    wave = list(b.samples((0, 2 * b.DAY, 5 * b.MINUTE), b.wave(0.01, 3), b.wave(5e7, 2e9)))
    steps = [*wave, *b.ask_every(3 * b.HOUR, 2 * b.DAY)]
    tiny = b.samples((0, b.DAY, b.HOUR), b.steady(0.001), b.steady(1e6))
    return [
        *(b.scenario(f"flags-of-{name}", steps, flags=given) for name, given in FLAGS.items()),
        b.scenario(
            "flags-of-the-minimum",
            [*tiny, *b.ask_every(6 * b.HOUR, b.DAY)],
            flags={"PodMinCPUMillicores": 10.0, "PodMinMemoryMb": 33.0},
        ),
        b.scenario(
            "flags-of-the-maximum-under-a-policy",
            steps,
            policies=[b.policy("*", maxAllowed={"cpu": "2"}, minAllowed={"memory": "1500Mi"})],
            flags=FLAGS["the-maximum"],
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*usage(), *memory(), *pods(), *flags()]
