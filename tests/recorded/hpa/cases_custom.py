"""Scenarios of the HPA: Pods, Object and External metrics; and what pods request that is not one container's."""

from __future__ import annotations

from typing import Any

from tests.recorded.hpa import build as b
from tests.recorded.replay import Json


def custom_metrics() -> list[Json]:
    """Pods, Object and External metrics."""
    three = b.pods(3)
    requests = b.readings(pods=[b.measured("requests", {"p0": 15500, "p1": 20000, "p2": 31000})])
    labelled = b.readings(
        pods=[
            b.measured("requests", b.names(3, 900)),
            b.measured("requests", b.names(3, 90), selector="verb=GET"),
        ],
        object=[
            {"name": "hits", "selector": "", "described": "Service/front", "value": 10_000},
            {"name": "hits", "selector": "a=1,b=2", "described": "Service/front", "value": 55_300},
        ],
        external=[
            {"name": "queue", "selector": "", "values": [1000]},
            {"name": "queue", "selector": "name=orders", "values": [7000, 12_345, 0]},
        ],
    )

    def hits(value: int) -> Json:
        return b.readings(
            object=[{"name": "hits", "selector": "", "described": "Service/front", "value": value}]
        )

    def queue(*values: int) -> Json:
        return b.readings(external=[{"name": "queue", "selector": "", "values": list(values)}])

    unready = [*b.pods(3), b.pod("p3", ready=False), b.pod("p4", phase="Pending", ready=None)]
    huge = 2**62
    return [
        b.scenario("pods-metric", [b.pods_metric("requests", "12")], [b.begin(3, three, requests)]),
        b.scenario(
            "pods-metric-in", [b.pods_metric("requests", "90")], [b.begin(3, three, requests)], syncs=23
        ),
        b.scenario(
            "pods-metric-with-selector",
            [b.pods_metric("requests", "50m", {"verb": "GET"})],
            [b.begin(3, three, labelled)],
        ),
        b.scenario(
            "pods-metric-that-fails",
            [b.pods_metric("requests", "1")],
            [b.begin(3, three, b.readings(pods=[b.failing("requests", "the adapter is down")]))],
        ),
        b.scenario("object-value", [b.object_metric("hits", value="4")], [b.begin(5, unready, hits(6100))]),
        b.scenario(
            "object-value-in",
            [b.object_metric("hits", value="4")],
            [b.begin(5, unready, hits(900))],
            syncs=23,
        ),
        b.scenario(
            "object-value-tolerated", [b.object_metric("hits", value="4")], [b.begin(5, unready, hits(4400))]
        ),
        b.scenario(
            "object-value-beyond-32-bits",
            [b.object_metric("hits", value="1")],
            [b.begin(3, three, hits(huge))],
        ),
        b.scenario(
            "object-average", [b.object_metric("hits", average="2500m")], [b.begin(5, unready, hits(19_000))]
        ),
        b.scenario(
            "object-average-counts-status-replicas",
            [b.object_metric("hits", average="2")],
            [b.begin(5, unready, hits(9_900), current=4), b.step(30, current=7), b.step(45, current=0)],
            syncs=4,
        ),
        b.scenario(
            "object-with-selector",
            [b.object_metric("hits", average="10", labels={"b": "2", "a": "1"})],
            [b.begin(3, three, labelled)],
        ),
        b.scenario(
            "object-that-fails", [b.object_metric("hits", value="4")], [b.begin(3, three, b.readings())]
        ),
        b.scenario(
            "external-value", [b.external("queue", value="10")], [b.begin(5, unready, queue(9000, 7000))]
        ),
        b.scenario(
            "external-value-in",
            [b.external("queue", value="10")],
            [b.begin(5, unready, queue(200))],
            syncs=23,
        ),
        b.scenario(
            "external-average", [b.external("queue", average="3")], [b.begin(3, three, queue(9000, 9001))]
        ),
        b.scenario(
            "external-average-without-pods",
            [b.external("queue", average="3")],
            [b.begin(2, [], queue(9000), current=0)],
        ),
        b.scenario("external-without-values", [b.external("queue", value="3")], [b.begin(3, three, queue())]),
        b.scenario(
            "external-beyond-64-bits",
            [b.external("queue", value="3")],
            [b.begin(3, three, queue(huge, huge, huge))],
        ),
        b.scenario(
            "external-average-beyond-64-bits",
            [b.external("queue", average="3")],
            [b.begin(3, three, queue(huge, huge, huge))],
        ),
        b.scenario(
            "external-with-selector",
            [b.external("queue", average="5", labels={"name": "orders"})],
            [b.begin(3, three, labelled)],
        ),
        b.scenario(
            "external-that-fails", [b.external("queue", average="5")], [b.begin(3, three, b.readings())]
        ),
        b.scenario(
            "object-average-that-fails",
            [b.object_metric("hits", average="4")],
            [
                b.begin(
                    3,
                    three,
                    b.readings(object=[b.failing("hits", "the adapter is down", described="Service/front")]),
                )
            ],
        ),
        b.scenario(
            "object-value-without-pods", [b.object_metric("hits", value="4")], [b.begin(2, [], hits(9000))]
        ),
        b.scenario(
            "object-value-of-unready-pods-only",
            [b.object_metric("hits", value="4")],
            [b.begin(2, b.pods(2, ready=False), hits(9000))],
        ),
        b.scenario(
            "external-value-that-fails", [b.external("queue", value="5")], [b.begin(3, three, b.readings())]
        ),
        b.scenario(
            "custom-metrics-of-unready-and-missing-pods",
            [b.pods_metric("requests", "12")],
            [b.begin(5, unready, requests), b.step(30, pods=b.pods(5))],
            syncs=4,
        ),
    ]


def zero() -> list[Json]:
    """To 0 replicas and back."""
    fast = b.behavior(down=b.rules(("Percent", 100, 1), window=0))
    cpu = b.resource(utilization=80)

    def queue(jobs: int) -> Json:
        return b.readings(
            resource=[b.measured("cpu", b.names(3, 1))],
            external=[{"name": "queue", "selector": "", "values": [jobs * 1000]}],
        )

    def scenario(name: str, metrics: list[Json], *after: Json, syncs: int = 9, **more: Any) -> Json:
        steps = [b.begin(2, b.pods(9), queue(0), follow=True), *after]
        return b.scenario(name, metrics, steps, least=0, syncs=syncs, behavior=fast, **more)

    def least(count: int, metrics: list[Json]) -> Json:
        return b.spec(metrics, least=count, behavior=fast)

    value, average = b.external("queue", value="4"), b.external("queue", average="4")
    return [
        scenario("to-zero-and-back", [value], b.step(60, readings=queue(9)), b.step(90, readings=queue(0))),
        scenario("to-zero-and-back-by-an-average", [average], b.step(60, readings=queue(9))),
        scenario("to-zero-and-back-beside-cpu", [cpu, value], b.step(60, readings=queue(1))),
        scenario("from-zero-to-a-new-minimum", [value], b.step(60, spec=least(3, [value]))),
        scenario(
            "from-zero-to-more-than-a-new-minimum",
            [value],
            b.step(60, spec=least(1, [value]), readings=queue(9)),
        ),
        scenario("from-zero-to-a-new-minimum-by-cpu", [value], b.step(60, spec=least(3, [cpu]))),
        scenario("at-zero-with-cpu-alone", [value], b.step(60, spec=least(0, [cpu]))),
        scenario("at-zero-while-nothing-is-measured", [value], b.step(60, readings=b.readings())),
        scenario("at-zero-by-hand", [value], b.step(30, readings=queue(9)), b.step(60, replicas=0), syncs=6),
        scenario("to-zero-by-cpu", [cpu], syncs=6),
    ]


def requests_of_pods() -> list[Json]:
    """Requests that are not one container's: of sidecars, and of the pod as a whole."""

    def with_sidecar(name: str, **whole: str) -> Json:
        made = b.pod(name, containers={"app": {"cpu": "200m", "memory": "200Mi"}})
        made["spec"]["initContainers"] = [
            {
                "name": "mesh",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "60m", "memory": "70Mi"}},
            },
            {"name": "setup", "resources": {"requests": {"cpu": "900m", "memory": "10Mi"}}},
        ]
        if whole:
            made["spec"]["resources"] = {"requests": whole}
        return made

    def scenario(name: str, pods: list[Json]) -> Json:
        bytes_used = 150 * 2**20 * 1000
        given = b.readings(
            resource=[b.measured("cpu", b.names(3, 150)), b.measured("memory", b.names(3, bytes_used))]
        )
        metrics = [b.resource(utilization=50), b.resource("memory", utilization=40)]
        return b.scenario(name, metrics, [b.begin(3, pods, given)])

    each = ("p0", "p1", "p2")
    mixed = [with_sidecar("p0"), with_sidecar("p1", cpu="1", memory="1Gi"), b.pod("p2")]
    bare = b.pod("p0", containers={"app": {}})
    bare["spec"]["resources"] = {"requests": {"memory": "512Mi"}}
    mesh = b.resource(utilization=50, container="mesh")
    return [
        scenario("sidecar-requests", [with_sidecar(name) for name in each]),
        scenario("pod-level-requests", [with_sidecar(name, cpu="500m", memory="300Mi") for name in each]),
        scenario("pod-level-requests-of-memory-only", [with_sidecar(name, memory="300Mi") for name in each]),
        scenario("pod-level-requests-of-some-pods", mixed),
        scenario("pod-level-requests-without-cpu-anywhere", [bare, b.pod("p1"), b.pod("p2")]),
        b.scenario(
            "container-that-is-a-sidecar",
            [mesh],
            [
                b.begin(
                    3,
                    [with_sidecar(name, cpu="5") for name in each],
                    b.readings(resource=[b.measured("cpu", b.names(3, 44), container="mesh")]),
                )
            ],
        ),
    ]


def wrong_selectors() -> list[Json]:
    """Selectors of metrics that the API server lets through and the controller refuses."""
    made = []
    for name, expression in (
        ("without-operator", {"key": "a", "operator": ""}),
        ("of-no-values", {"key": "a", "operator": "In"}),
        ("of-values-too-many", {"key": "a", "operator": "Exists", "values": ["b", "c"]}),
    ):
        metrics = [
            b.pods_metric("hits", "10"),
            b.object_metric("hits", value="5"),
            b.external("hits", value="5"),
        ]
        for metric, field in zip(metrics, ("pods", "object", "external"), strict=True):
            metric[field]["metric"]["selector"] = {"matchExpressions": [expression]}
        steps = [b.begin(3, b.pods(3), b.readings())]
        made += [b.scenario(f"selector-{name}-{metric['type']}", [metric], steps) for metric in metrics]
    return made


def cases() -> list[Json]:
    """All of this file."""
    return [*custom_metrics(), *zero(), *requests_of_pods(), *wrong_selectors()]
