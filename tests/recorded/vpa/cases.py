"""Scenarios of the VPA recommender, each for something it does: histograms that decay, memory peaks, OOMs, policies,
flags, restarts."""

from __future__ import annotations

from tests.recorded.replay import Json
from tests.recorded.vpa import world as v

_USUAL = v.steady(200 * v.MEBI)
_HALF = v.steady(0.5)


def _day(**more: str) -> list[Json]:
    """Half a core and 300Mi for a day."""
    return list(v.samples((0, v.DAY, 5 * v.MINUTE), _HALF, v.steady(300 * v.MEBI), **more))


def usage() -> list[Json]:
    """What is measured."""
    wave = v.samples((0, 3 * v.DAY, v.MINUTE), v.wave(0.05, 1.8), v.wave(1e8, 9e8), pods=("p0", "p1"))
    moving = v.samples((0, 9 * v.DAY, 10 * v.MINUTE), lambda at: 0.1 + at / v.DAY, lambda at: 2e8 + at * 500)
    falling = v.samples((0, 9 * v.DAY, 10 * v.MINUTE), lambda at: 9 - at / v.DAY, lambda at: 4e9 - at * 4000)
    spiky = v.samples(
        (0, 4 * v.DAY, v.MINUTE),
        lambda at: 3.0 if at % v.HOUR < 240 else 0.07,
        lambda at: 2 * v.GIBI if at % (8 * v.HOUR) < 60 else 150 * v.MEBI,
    )
    edges = [0, 0.0001, 0.0099, 0.01, 0.0101, 0.0205, 1, 999, 1000, 2500]
    sizes = [0, 1, 9_999_999, 10_000_000, 10_000_001, 20_500_000, v.GIBI, 10**12, 2 * 10**12, 7]
    extreme = [v.sample(n * 60, cpu, size) for n, (cpu, size) in enumerate(zip(edges, sizes, strict=True))]
    bad = [
        v.sample(600, 1.0, 5e8),
        v.sample(600, 2.0, 6e8),
        v.sample(540, 3.0, 7e8),
        v.sample(660, -1.0, -1.0),
        v.sample(720, None, 8e8),
        v.sample(780, 4.0, None),
        v.sample(779, 5.0, 9e8),
    ]
    # Requests, which our model is not told of, change nothing.
    little = v.requesting(_day(), cpu=0.01, memory=1e7)
    much = v.requesting(
        v.samples((0, v.DAY, v.MINUTE), v.wave(0.2, 2), _USUAL, pods=("p1",)), cpu=8, memory=8 * v.GIBI
    )
    silent = [v.sample(0, None, None), v.sample(600, None, None, pod="p1")]
    half_lives = {"CpuHistogramDecayHalfLife": v.hours(1), "MemoryHistogramDecayHalfLife": v.hours(1)}
    return [
        v.scenario("nothing-at-all", v.ask(0, v.HOUR)),
        v.scenario("never-measured", [*silent, *v.ask(600, v.HOUR)]),
        v.scenario("one-sample", [v.sample(0, 0.25, 4e8), *v.ask(0, 60, v.HOUR, v.DAY)]),
        v.scenario("steady-for-a-day", [*_day(), *v.ask_every(2 * v.HOUR, v.DAY)]),
        v.scenario("daily-wave-of-two-pods", [*wave, *v.ask_every(3 * v.HOUR, 3 * v.DAY)]),
        v.scenario("growing-over-days", [*moving, *v.ask_every(6 * v.HOUR, 9 * v.DAY)]),
        v.scenario("falling-over-days", [*falling, *v.ask_every(6 * v.HOUR, 9 * v.DAY)]),
        v.scenario("short-spikes", [*spiky, *v.ask_every(4 * v.HOUR, 4 * v.DAY)]),
        v.scenario("requests-of-any-size", [*little, *much, *v.ask_every(2 * v.HOUR, v.DAY)]),
        v.scenario("smallest-and-largest-buckets", [*extreme, *v.ask_every(60, 600)]),
        v.scenario("samples-that-are-discarded", [*bad, *v.ask(*range(600, 900, 30))]),
        v.scenario(
            "reference-time-moves",
            [
                *v.samples((0, 12 * v.DAY, 20 * v.MINUTE), v.wave(0.1, 2), v.wave(1e8, 1e9)),
                *v.ask_every(12 * v.HOUR, 12 * v.DAY),
            ],
            flags=half_lives,
        ),
    ]


def memory() -> list[Json]:
    """Peaks of memory by interval, and OOMs."""

    def app(*steps: Json, memory: float = 200 * v.MEBI) -> list[Json]:
        base = v.samples((0, 2 * v.DAY, 10 * v.MINUTE), _HALF, v.steady(memory))
        return [*base, *steps, *v.ask_every(3 * v.HOUR, 2 * v.DAY)]

    peaks = [v.sample(n * v.DAY + 3 * v.HOUR + 1, 0.5, (1 + n % 3) * v.GIBI) for n in range(6)]
    rising = v.samples((0, 6 * v.HOUR, 5 * v.MINUTE), _HALF, lambda at: 1e8 + at * 1e5)
    restarting = [
        step
        for n in range(6)
        for step in (v.oom(n * v.HOUR + 30, 256 * v.MEBI), v.gone(n * v.HOUR + 40, "p0"))
    ]
    return [
        v.scenario(
            "peaks-of-six-days",
            [
                *v.samples((0, 6 * v.DAY, 15 * v.MINUTE), _HALF, _USUAL),
                *peaks,
                *v.ask_every(4 * v.HOUR, 6 * v.DAY),
            ],
        ),
        v.scenario("peak-that-rises-within-its-interval", [*rising, *v.ask_every(v.HOUR, 6 * v.HOUR)]),
        v.scenario("oom-of-a-small-request", app(v.oom(v.HOUR, 128 * v.MEBI))),
        v.scenario("oom-of-a-large-request", app(v.oom(v.HOUR, 4 * v.GIBI))),
        v.scenario("oom-below-the-usage", app(v.oom(v.HOUR, 10 * v.MEBI), memory=3 * v.GIBI)),
        v.scenario(
            "ooms-in-a-row", app(*(v.oom(v.HOUR + 20 * n, (300 + 60 * n) * v.MEBI) for n in range(20)))
        ),
        v.scenario(
            "oom-then-usage-above-it",
            app(v.oom(v.HOUR, 300 * v.MEBI), v.sample(2 * v.HOUR + 1, 0.5, 2 * v.GIBI)),
        ),
        v.scenario(
            "oom-before-any-sample",
            [
                v.sample(0, None, None),
                v.oom(30, 500 * v.MEBI),
                *v.ask(60),
                v.sample(90, 0.2, 1e8),
                *v.ask(120, v.HOUR),
            ],
        ),
        v.scenario(
            "oom-across-days",
            app(
                v.oom(20 * v.HOUR, 1 * v.GIBI),
                v.oom(30 * v.HOUR, 1.5 * v.GIBI),
                v.oom(30 * v.HOUR, 1 * v.GIBI),
            ),
        ),
        v.scenario("oom-of-each-of-several-pods", [*app(), *restarting]),
        v.scenario(
            "flags-of-memory",
            app(v.oom(v.HOUR, 1 * v.GIBI), *peaks[:2]),
            flags={
                "OOMBumpUpRatio": 1.5,
                "OOMMinBumpUp": 1e6,
                "MemoryAggregationInterval": v.hours(6),
                "MemoryAggregationIntervalCount": 20,
                "MemoryHistogramDecayHalfLife": v.hours(10),
            },
        ),
    ]


def pods() -> list[Json]:
    """Several containers and pods, those that go, and restarts."""
    names = ("app", "log", "proxy")
    three = [
        step
        for number, name in enumerate(names)
        for step in v.samples(
            (0, v.DAY, 5 * v.MINUTE),
            v.wave(0.001, 0.4 * number + 0.01, v.HOUR),
            v.wave(1e6, 3e8 * number + 2e6),
            container=name,
        )
    ]
    often = v.ask_every(2 * v.HOUR, v.DAY)
    rolling = [
        step
        for n in range(24)
        for step in (
            *v.samples(
                (n * v.HOUR, (n + 1) * v.HOUR, 5 * v.MINUTE),
                _HALF,
                v.steady(1e8 + n * 2e7),
                pods=(f"p{n}", f"q{n}"),
            ),
            v.gone((n + 1) * v.HOUR - 1, f"p{n}"),
        )
    ]
    away = [*_day(), v.gone(v.DAY, "p0"), *v.ask(v.DAY, 2 * v.DAY, 5 * v.DAY)]
    back = [v.sample(5 * v.DAY + 60, 2.0, 1e9), *v.ask(5 * v.DAY + 60, 6 * v.DAY)]
    week = list(
        v.samples((0, 5 * v.DAY, 10 * v.MINUTE), v.wave(0.05, 1.5), v.wave(1e8, 9e8), pods=("p0", "p1"))
    )
    restarts = [v.restart(t) for t in (v.HOUR + 30, 30 * v.HOUR + 30, 3 * v.DAY + 30)]
    silence = [*_day(), v.gone(v.DAY, "p0"), *v.ask_every(12 * v.HOUR, 14 * v.DAY)]
    afterwards = v.samples((11 * v.DAY, 12 * v.DAY, v.HOUR), v.steady(0.1), v.steady(5e7), pods=("p9",))
    reversed_bounds = {
        "minAllowed": {"cpu": 2, "memory": "1.5Gi"},
        "maxAllowed": {"cpu": "1", "memory": "1Gi"},
    }
    policies = {
        3: [v.policy("*", mode="Off")],
        9: [v.policy("app", maxAllowed={"cpu": "1m", "memory": "1"})],
        15: [v.policy("proxy", **reversed_bounds)],
        21: None,
    }
    changes = [{"at": hour * v.HOUR + 1, "spec": v.spec(given)} for hour, given in policies.items()]
    return [
        v.scenario("silence-longer-than-what-is-remembered", [*silence, *afterwards]),
        v.scenario("three-containers-share-the-minimum", [*three, *often]),
        v.scenario("pods-replaced-hourly", [*rolling, *v.ask_every(v.HOUR, v.DAY)]),
        v.scenario("pod-goes-and-another-comes", [*away, *back]),
        v.scenario("restarts-with-checkpoints", [*week, *restarts, *v.ask_every(5 * v.HOUR, 5 * v.DAY)]),
        v.scenario(
            "restart-after-an-oom",
            [*_day(), v.oom(3 * v.HOUR, v.GIBI), v.restart(4 * v.HOUR + 1), *v.ask_every(v.HOUR, v.DAY)],
        ),
        v.scenario(
            "container-policies",
            [*three, *v.ask_every(2 * v.HOUR, v.DAY)],
            policies=[
                v.policy("app", minAllowed={"cpu": "200m", "memory": "400Mi"}),
                v.policy("log", mode="Off"),
                v.policy("*", maxAllowed={"cpu": "300m", "memory": "100M"}),
            ],
        ),
        v.scenario(
            "controlled-resources",
            [*three, *v.ask_every(2 * v.HOUR, v.DAY)],
            policies=[
                v.policy("app", controlledResources=["memory"]),
                v.policy("log", controlledResources=["cpu"], minAllowed={"memory": "1Gi"}),
                v.policy("proxy", controlledResources=[]),
            ],
        ),
        v.scenario("policies-that-change", [*three, *changes, *v.ask_every(v.HOUR, v.DAY)]),
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
        "ConfidenceIntervalCPU": v.hours(3),
        "ConfidenceIntervalMemory": v.hours(90),
    },
    "rounding": {"RoundCPUMillicores": 50, "RoundMemoryBytes": 8 * v.MEBI},
    "the-maximum": {"MaxAllowedCPU": "1500m", "MaxAllowedMemory": "1Gi"},
    "half-lives": {"CpuHistogramDecayHalfLife": v.hours(5), "MemoryHistogramDecayHalfLife": v.hours(60)},
}


def flags() -> list[Json]:
    """The recommender's flags."""
    wave = list(v.samples((0, 2 * v.DAY, 5 * v.MINUTE), v.wave(0.01, 3), v.wave(5e7, 2e9)))
    steps = [*wave, *v.ask_every(3 * v.HOUR, 2 * v.DAY)]
    tiny = v.samples((0, v.DAY, v.HOUR), v.steady(0.001), v.steady(1e6))
    return [
        *(v.scenario(f"flags-of-{name}", steps, flags=given) for name, given in FLAGS.items()),
        v.scenario(
            "flags-of-the-minimum",
            [*tiny, *v.ask_every(6 * v.HOUR, v.DAY)],
            flags={"PodMinCPUMillicores": 10.0, "PodMinMemoryMb": 33.0},
        ),
        v.scenario(
            "flags-of-the-maximum-under-a-policy",
            steps,
            policies=[v.policy("*", maxAllowed={"cpu": "2"}, minAllowed={"memory": "1500Mi"})],
            flags=FLAGS["the-maximum"],
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*usage(), *memory(), *pods(), *flags()]
