"""Scenarios of the HPA: resource metrics of any target, the tolerance, several metrics, metrics that fail."""

from __future__ import annotations

from tests.recorded.hpa import world as w
from tests.recorded.replay import Json

MEBI = 2**20
_CPU_80 = w.resource(utilization=80)
_SIX = w.names(6)


def _milli_bytes(mebi: int) -> int:
    return mebi * MEBI * 1000


def resource_metrics() -> list[Json]:
    """Resource and ContainerResource metrics."""
    three = w.pods(3)
    memory = w.readings(resource=[w.measured("memory", w.names(3, _milli_bytes(200)))])
    two_containers = {"app": {"cpu": "200m", "memory": "256Mi"}, "log": {"cpu": "50m", "memory": "64Mi"}}
    both = w.pods(3, containers=two_containers)
    of_app = w.readings(
        resource=[
            w.measured("cpu", {"p0": 300, "p1": 310, "p2": 333}, container="app"),
            w.measured("cpu", {"p0": 301, "p1": 311, "p2": 334}),
            w.measured("memory", w.names(3, _milli_bytes(100)), container="log"),
        ]
    )
    gpu = w.pods(2, containers={"app": {"cpu": "1", "example.com/gpu": "2"}})
    gpus = w.readings(resource=[w.measured("example.com/gpu", w.names(2, 3500))])
    uneven = [w.pod("p0", cpu="100m"), w.pod("p1", cpu="1500m"), w.pod("p2", cpu="0.333")]
    return [
        w.scenario("cpu-utilization-out", [_CPU_80], [w.begin(3, three, w.cpu(w.names(3, 130)))]),
        w.scenario("cpu-utilization-in", [_CPU_80], [w.begin(3, three, w.cpu(w.names(3, 20)))], syncs=25),
        w.scenario(
            "cpu-utilization-uneven-requests",
            [_CPU_80],
            [w.begin(3, uneven, w.cpu({"p0": 99, "p1": 1700, "p2": 401}))],
        ),
        w.scenario(
            "cpu-average-value",
            [w.resource(average="150m")],
            [w.begin(3, three, w.cpu({"p0": 200, "p1": 222, "p2": 101}))],
        ),
        w.scenario(
            "cpu-average-value-in-nano",
            [w.resource(average="150500u")],
            [w.begin(3, three, w.cpu(w.names(3, 166)))],
        ),
        w.scenario("memory-utilization", [w.resource("memory", utilization=70)], [w.begin(3, three, memory)]),
        w.scenario(
            "memory-average-value", [w.resource("memory", average="150Mi")], [w.begin(3, three, memory)]
        ),
        w.scenario(
            "memory-average-value-not-whole-kibibytes",
            [w.resource("memory", average="100M")],
            [w.begin(3, three, w.readings(resource=[w.measured("memory", w.names(3, 123_456_789_123))]))],
        ),
        w.scenario(
            "container-cpu-utilization",
            [w.resource(utilization=60, container="app")],
            [w.begin(3, both, of_app)],
        ),
        w.scenario(
            "container-memory-average-value",
            [w.resource("memory", average="70Mi", container="log")],
            [w.begin(3, both, of_app)],
        ),
        w.scenario(
            "container-that-is-not-there",
            [w.resource(utilization=60, container="nope")],
            [w.begin(3, both, w.readings(resource=[w.measured("cpu", w.names(3, 50), container="nope")]))],
        ),
        w.scenario(
            "container-without-readings",
            [w.resource("memory", utilization=60, container="app")],
            [w.begin(3, both, of_app)],
        ),
        w.scenario("whole-pod-of-two-containers", [_CPU_80], [w.begin(3, both, of_app)]),
        w.scenario(
            "resource-that-is-neither-cpu-nor-memory",
            [w.resource("example.com/gpu", utilization=50)],
            [w.begin(2, gpu, gpus)],
        ),
        w.scenario("no-metrics-in-the-spec", None, [w.begin(3, three, w.cpu(w.names(3, 130)))], least=None),
        w.scenario("no-request", [_CPU_80], [w.begin(2, w.pods(2, cpu=None), w.cpu(w.names(2, 130)))]),
        w.scenario(
            "no-request-but-average-value",
            [w.resource(average="100m")],
            [w.begin(2, w.pods(2, cpu=None), w.cpu(w.names(2, 130)))],
        ),
        w.scenario("requests-of-zero", [_CPU_80], [w.begin(2, w.pods(2, cpu="0"), w.cpu(w.names(2, 10)))]),
        w.scenario("usage-of-zero", [_CPU_80], [w.begin(4, w.pods(4), w.cpu(w.names(4, 0)))], syncs=24),
        w.scenario("target-above-100", [w.resource(utilization=150)], [w.begin(3, three, w.cpu(_SIX))]),
    ]


def tolerances() -> list[Json]:
    """What is near enough to the target."""
    three = w.pods(3)

    def walk(*values: int) -> list[Json]:
        return [
            w.begin(3, three, w.cpu(w.names(3, values[0]))),
            *(w.step(15 * n, readings=w.cpu(w.names(3, value))) for n, value in enumerate(values[1:], 2)),
        ]

    edge = (100, 109, 110, 111, 90, 89, 91)
    target = [w.resource(average="100m")]
    own = w.behavior(up=w.rules(tolerance="0.05", window=0), down=w.rules(tolerance="0.3", window=0))
    none = w.behavior(up=w.rules(tolerance="0", window=0), down=w.rules(tolerance="0", window=0))
    up_only = w.behavior(up=w.rules(tolerance="250m"), down=w.rules(window=0))
    at_once = {"downscaleStabilization": 0}
    return [
        w.scenario("tolerance-default", target, walk(*edge), syncs=7, settings=at_once),
        w.scenario(
            "tolerance-by-flag",
            target,
            walk(100, 125, 75, 126, 74),
            syncs=5,
            settings={**at_once, "tolerance": 0.25},
        ),
        w.scenario("tolerance-per-direction", target, walk(*edge, 106, 105, 70, 69), behavior=own, syncs=11),
        w.scenario("tolerance-zero", target, walk(100, 101, 99, 100), behavior=none, syncs=4),
        w.scenario("tolerance-up-only", target, walk(100, 124, 126, 91, 89), behavior=up_only, syncs=5),
        w.scenario(
            "tolerance-of-utilization-is-of-whole-percents",
            [w.resource(utilization=70)],
            walk(77, 78, 63, 62, 70),
            syncs=5,
            settings=at_once,
        ),
    ]


def several() -> list[Json]:
    """Several metrics, some of which cannot be had."""
    three = w.pods(3)
    metrics = [_CPU_80, w.pods_metric("requests", "10"), w.external("queue", average="5")]

    def given(cpu: int | None, requests: int | None, queue: int | None) -> Json:
        return w.readings(
            resource=[w.measured("cpu", w.names(3, cpu))] if cpu is not None else [],
            pods=[w.measured("requests", w.names(3, requests))] if requests is not None else [],
            external=[{"name": "queue", "selector": "", "values": [queue]}] if queue is not None else [],
        )

    steps = [
        w.begin(3, three, given(80, 10_000, 15_000)),
        w.step(30, readings=given(80, 16_000, 15_000)),
        w.step(45, replicas=3, readings=given(170, 16_000, 15_000)),
        w.step(60, replicas=3, readings=given(None, 16_000, 15_000)),
        w.step(75, replicas=3, readings=given(None, 5_000, 5_000)),
        w.step(90, readings=given(20, None, 5_000)),
        w.step(105, readings=given(None, None, None)),
        w.step(120, readings=given(None, 10_000, None)),
        w.step(135, readings=given(10, 100, 100)),
    ]
    return [
        w.scenario("several-metrics-the-largest-wins", metrics, steps, syncs=32),
        w.scenario(
            "several-metrics-with-behaviour",
            metrics,
            steps,
            syncs=12,
            behavior=w.behavior(down=w.rules(("Pods", 1, 30), window=30)),
        ),
        w.scenario(
            "all-metrics-fail-then-recover",
            [_CPU_80, w.resource("memory", utilization=50)],
            [
                w.begin(
                    3, three, w.readings(resource=[w.failing("cpu", "timeout"), w.failing("memory", "gone")])
                ),
                w.step(45, readings=w.cpu(w.names(3, 150))),
            ],
            syncs=5,
        ),
        w.scenario(
            "metrics-of-no-known-pod",
            [_CPU_80],
            [w.begin(2, w.pods(2), w.cpu({"other": 100, "another": 100}))],
        ),
        w.scenario("metrics-also-of-strangers", [_CPU_80], [w.begin(3, three, w.cpu(w.names(5, 120)))]),
        w.scenario(
            "average-value-also-of-strangers",
            [w.resource(average="100m")],
            [w.begin(3, three, w.cpu({**w.names(3, 120), "stranger": 900}))],
        ),
    ]


def cases() -> list[Json]:
    """All of this file."""
    return [*resource_metrics(), *tolerances(), *several()]
