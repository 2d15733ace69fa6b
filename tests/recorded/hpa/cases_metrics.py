"""Scenarios of the HPA: resource metrics of any target, the tolerance, several metrics, metrics that fail."""

from __future__ import annotations

from tests.recorded.hpa import build as b
from tests.recorded.replay import Json

MEBI = 2**20
_CPU_80 = b.resource(utilization=80)
_SIX = b.names(6)


def _milli_bytes(mebi: int) -> int:
    return mebi * MEBI * 1000


def resource_metrics() -> list[Json]:
    """Resource and ContainerResource metrics."""
    three = b.pods(3)
    memory = b.readings(resource=[b.measured("memory", b.names(3, _milli_bytes(200)))])
    two_containers = {"app": {"cpu": "200m", "memory": "256Mi"}, "log": {"cpu": "50m", "memory": "64Mi"}}
    both = b.pods(3, containers=two_containers)
    of_app = b.readings(
        resource=[
            b.measured("cpu", {"p0": 300, "p1": 310, "p2": 333}, container="app"),
            b.measured("cpu", {"p0": 301, "p1": 311, "p2": 334}),
            b.measured("memory", b.names(3, _milli_bytes(100)), container="log"),
        ]
    )
    gpu = b.pods(2, containers={"app": {"cpu": "1", "example.com/gpu": "2"}})
    gpus = b.readings(resource=[b.measured("example.com/gpu", b.names(2, 3500))])
    uneven = [b.pod("p0", cpu="100m"), b.pod("p1", cpu="1500m"), b.pod("p2", cpu="0.333")]
    return [
        b.scenario("cpu-utilization-out", [_CPU_80], [b.begin(3, three, b.cpu(b.names(3, 130)))]),
        b.scenario("cpu-utilization-in", [_CPU_80], [b.begin(3, three, b.cpu(b.names(3, 20)))], syncs=25),
        b.scenario(
            "cpu-utilization-uneven-requests",
            [_CPU_80],
            [b.begin(3, uneven, b.cpu({"p0": 99, "p1": 1700, "p2": 401}))],
        ),
        b.scenario(
            "cpu-average-value",
            [b.resource(average="150m")],
            [b.begin(3, three, b.cpu({"p0": 200, "p1": 222, "p2": 101}))],
        ),
        b.scenario(
            "cpu-average-value-in-nano",
            [b.resource(average="150500u")],
            [b.begin(3, three, b.cpu(b.names(3, 166)))],
        ),
        b.scenario("memory-utilization", [b.resource("memory", utilization=70)], [b.begin(3, three, memory)]),
        b.scenario(
            "memory-average-value", [b.resource("memory", average="150Mi")], [b.begin(3, three, memory)]
        ),
        b.scenario(
            "memory-average-value-not-whole-kibibytes",
            [b.resource("memory", average="100M")],
            [b.begin(3, three, b.readings(resource=[b.measured("memory", b.names(3, 123_456_789_123))]))],
        ),
        b.scenario(
            "container-cpu-utilization",
            [b.resource(utilization=60, container="app")],
            [b.begin(3, both, of_app)],
        ),
        b.scenario(
            "container-memory-average-value",
            [b.resource("memory", average="70Mi", container="log")],
            [b.begin(3, both, of_app)],
        ),
        b.scenario(
            "container-that-is-not-there",
            [b.resource(utilization=60, container="nope")],
            [b.begin(3, both, b.readings(resource=[b.measured("cpu", b.names(3, 50), container="nope")]))],
        ),
        b.scenario(
            "container-without-readings",
            [b.resource("memory", utilization=60, container="app")],
            [b.begin(3, both, of_app)],
        ),
        b.scenario("whole-pod-of-two-containers", [_CPU_80], [b.begin(3, both, of_app)]),
        b.scenario(
            "resource-that-is-neither-cpu-nor-memory",
            [b.resource("example.com/gpu", utilization=50)],
            [b.begin(2, gpu, gpus)],
        ),
        b.scenario("no-metrics-in-the-spec", None, [b.begin(3, three, b.cpu(b.names(3, 130)))], least=None),
        b.scenario("no-request", [_CPU_80], [b.begin(2, b.pods(2, cpu=None), b.cpu(b.names(2, 130)))]),
        b.scenario(
            "no-request-but-average-value",
            [b.resource(average="100m")],
            [b.begin(2, b.pods(2, cpu=None), b.cpu(b.names(2, 130)))],
        ),
        b.scenario("requests-of-zero", [_CPU_80], [b.begin(2, b.pods(2, cpu="0"), b.cpu(b.names(2, 10)))]),
        b.scenario("usage-of-zero", [_CPU_80], [b.begin(4, b.pods(4), b.cpu(b.names(4, 0)))], syncs=24),
        b.scenario("target-above-100", [b.resource(utilization=150)], [b.begin(3, three, b.cpu(_SIX))]),
    ]


def tolerances() -> list[Json]:
    """What is near enough to the target."""
    three = b.pods(3)

    def walk(*values: int) -> list[Json]:
        return [
            b.begin(3, three, b.cpu(b.names(3, values[0]))),
            *(b.step(15 * n, readings=b.cpu(b.names(3, value))) for n, value in enumerate(values[1:], 2)),
        ]

    edge = (100, 109, 110, 111, 90, 89, 91)
    target = [b.resource(average="100m")]
    own = b.behavior(up=b.rules(tolerance="0.05", window=0), down=b.rules(tolerance="0.3", window=0))
    none = b.behavior(up=b.rules(tolerance="0", window=0), down=b.rules(tolerance="0", window=0))
    up_only = b.behavior(up=b.rules(tolerance="250m"), down=b.rules(window=0))
    at_once = {"downscaleStabilization": 0}
    return [
        b.scenario("tolerance-default", target, walk(*edge), syncs=7, settings=at_once),
        b.scenario(
            "tolerance-by-flag",
            target,
            walk(100, 125, 75, 126, 74),
            syncs=5,
            settings={**at_once, "tolerance": 0.25},
        ),
        b.scenario("tolerance-per-direction", target, walk(*edge, 106, 105, 70, 69), behavior=own, syncs=11),
        b.scenario("tolerance-zero", target, walk(100, 101, 99, 100), behavior=none, syncs=4),
        b.scenario("tolerance-up-only", target, walk(100, 124, 126, 91, 89), behavior=up_only, syncs=5),
        b.scenario(
            "tolerance-of-utilization-is-of-whole-percents",
            [b.resource(utilization=70)],
            walk(77, 78, 63, 62, 70),
            syncs=5,
            settings=at_once,
        ),
    ]


def several() -> list[Json]:
    """Several metrics, some of which cannot be had."""
    three = b.pods(3)
    metrics = [_CPU_80, b.pods_metric("requests", "10"), b.external("queue", average="5")]

    def given(cpu: int | None, requests: int | None, queue: int | None) -> Json:
        return b.readings(
            resource=[b.measured("cpu", b.names(3, cpu))] if cpu is not None else [],
            pods=[b.measured("requests", b.names(3, requests))] if requests is not None else [],
            external=[{"name": "queue", "selector": "", "values": [queue]}] if queue is not None else [],
        )

    steps = [
        b.begin(3, three, given(80, 10_000, 15_000)),
        b.step(30, readings=given(80, 16_000, 15_000)),
        b.step(45, replicas=3, readings=given(170, 16_000, 15_000)),
        b.step(60, replicas=3, readings=given(None, 16_000, 15_000)),
        b.step(75, replicas=3, readings=given(None, 5_000, 5_000)),
        b.step(90, readings=given(20, None, 5_000)),
        b.step(105, readings=given(None, None, None)),
        b.step(120, readings=given(None, 10_000, None)),
        b.step(135, readings=given(10, 100, 100)),
    ]
    return [
        b.scenario("several-metrics-the-largest-wins", metrics, steps, syncs=32),
        b.scenario(
            "several-metrics-with-behaviour",
            metrics,
            steps,
            syncs=12,
            behavior=b.behavior(down=b.rules(("Pods", 1, 30), window=30)),
        ),
        b.scenario(
            "all-metrics-fail-then-recover",
            [_CPU_80, b.resource("memory", utilization=50)],
            [
                b.begin(
                    3, three, b.readings(resource=[b.failing("cpu", "timeout"), b.failing("memory", "gone")])
                ),
                b.step(45, readings=b.cpu(b.names(3, 150))),
            ],
            syncs=5,
        ),
        b.scenario(
            "metrics-of-no-known-pod",
            [_CPU_80],
            [b.begin(2, b.pods(2), b.cpu({"other": 100, "another": 100}))],
        ),
        b.scenario("metrics-also-of-strangers", [_CPU_80], [b.begin(3, three, b.cpu(b.names(5, 120)))]),
        b.scenario(
            "average-value-also-of-strangers",
            [b.resource(average="100m")],
            [b.begin(3, three, b.cpu({**b.names(3, 120), "stranger": 900}))],
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*resource_metrics(), *tolerances(), *several()]
