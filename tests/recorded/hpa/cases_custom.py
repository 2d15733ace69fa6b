"""Scenarios of the HPA: Pods, Object and External metrics; and what pods request that is not one container's."""

from __future__ import annotations

from tests.recorded.hpa import world as w
from tests.recorded.replay import Json


def custom_metrics() -> list[Json]:
    """Pods, Object and External metrics."""
    three = w.pods(3)
    requests = w.readings(pods=[w.measured("requests", {"p0": 15500, "p1": 20000, "p2": 31000})])
    labelled = w.readings(
        pods=[
            w.measured("requests", w.names(3, 900)),
            w.measured("requests", w.names(3, 90), selector="verb=GET"),
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
        return w.readings(
            object=[{"name": "hits", "selector": "", "described": "Service/front", "value": value}]
        )

    def queue(*values: int) -> Json:
        return w.readings(external=[{"name": "queue", "selector": "", "values": list(values)}])

    unready = [*w.pods(3), w.pod("p3", ready=False), w.pod("p4", phase="Pending", ready=None)]
    huge = 2**62
    return [
        w.scenario("pods-metric", [w.pods_metric("requests", "12")], [w.begin(3, three, requests)]),
        w.scenario(
            "pods-metric-in", [w.pods_metric("requests", "90")], [w.begin(3, three, requests)], syncs=23
        ),
        w.scenario(
            "pods-metric-with-selector",
            [w.pods_metric("requests", "50m", {"verb": "GET"})],
            [w.begin(3, three, labelled)],
        ),
        w.scenario(
            "pods-metric-that-fails",
            [w.pods_metric("requests", "1")],
            [w.begin(3, three, w.readings(pods=[w.failing("requests", "the adapter is down")]))],
        ),
        w.scenario("object-value", [w.object_metric("hits", value="4")], [w.begin(5, unready, hits(6100))]),
        w.scenario(
            "object-value-in",
            [w.object_metric("hits", value="4")],
            [w.begin(5, unready, hits(900))],
            syncs=23,
        ),
        w.scenario(
            "object-value-tolerated", [w.object_metric("hits", value="4")], [w.begin(5, unready, hits(4400))]
        ),
        w.scenario(
            "object-value-beyond-32-bits",
            [w.object_metric("hits", value="1")],
            [w.begin(3, three, hits(huge))],
        ),
        w.scenario(
            "object-average", [w.object_metric("hits", average="2500m")], [w.begin(5, unready, hits(19_000))]
        ),
        w.scenario(
            "object-average-counts-status-replicas",
            [w.object_metric("hits", average="2")],
            [w.begin(5, unready, hits(9_900), current=4), w.step(30, current=7), w.step(45, current=0)],
            syncs=4,
        ),
        w.scenario(
            "object-with-selector",
            [w.object_metric("hits", average="10", labels={"b": "2", "a": "1"})],
            [w.begin(3, three, labelled)],
        ),
        w.scenario(
            "object-that-fails", [w.object_metric("hits", value="4")], [w.begin(3, three, w.readings())]
        ),
        w.scenario(
            "external-value", [w.external("queue", value="10")], [w.begin(5, unready, queue(9000, 7000))]
        ),
        w.scenario(
            "external-value-in",
            [w.external("queue", value="10")],
            [w.begin(5, unready, queue(200))],
            syncs=23,
        ),
        w.scenario(
            "external-average", [w.external("queue", average="3")], [w.begin(3, three, queue(9000, 9001))]
        ),
        w.scenario(
            "external-average-without-pods",
            [w.external("queue", average="3")],
            [w.begin(2, [], queue(9000), current=0)],
        ),
        w.scenario("external-without-values", [w.external("queue", value="3")], [w.begin(3, three, queue())]),
        w.scenario(
            "external-beyond-64-bits",
            [w.external("queue", value="3")],
            [w.begin(3, three, queue(huge, huge, huge))],
        ),
        w.scenario(
            "external-average-beyond-64-bits",
            [w.external("queue", average="3")],
            [w.begin(3, three, queue(huge, huge, huge))],
        ),
        w.scenario(
            "external-with-selector",
            [w.external("queue", average="5", labels={"name": "orders"})],
            [w.begin(3, three, labelled)],
        ),
        w.scenario(
            "external-that-fails", [w.external("queue", average="5")], [w.begin(3, three, w.readings())]
        ),
        w.scenario(
            "object-average-that-fails",
            [w.object_metric("hits", average="4")],
            [
                w.begin(
                    3,
                    three,
                    w.readings(object=[w.failing("hits", "the adapter is down", described="Service/front")]),
                )
            ],
        ),
        w.scenario(
            "object-value-without-pods", [w.object_metric("hits", value="4")], [w.begin(2, [], hits(9000))]
        ),
        w.scenario(
            "object-value-of-unready-pods-only",
            [w.object_metric("hits", value="4")],
            [w.begin(2, w.pods(2, ready=False), hits(9000))],
        ),
        w.scenario(
            "external-value-that-fails", [w.external("queue", value="5")], [w.begin(3, three, w.readings())]
        ),
        w.scenario(
            "custom-metrics-of-unready-and-missing-pods",
            [w.pods_metric("requests", "12")],
            [w.begin(5, unready, requests), w.step(30, pods=w.pods(5))],
            syncs=4,
        ),
    ]


def requests_of_pods() -> list[Json]:
    """Requests that are not one container's: of sidecars, and of the pod as a whole."""

    def with_sidecar(name: str, **whole: str) -> Json:
        made = w.pod(name, containers={"app": {"cpu": "200m", "memory": "200Mi"}})
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
        given = w.readings(
            resource=[w.measured("cpu", w.names(3, 150)), w.measured("memory", w.names(3, bytes_used))]
        )
        metrics = [w.resource(utilization=50), w.resource("memory", utilization=40)]
        return w.scenario(name, metrics, [w.begin(3, pods, given)])

    each = ("p0", "p1", "p2")
    mixed = [with_sidecar("p0"), with_sidecar("p1", cpu="1", memory="1Gi"), w.pod("p2")]
    bare = w.pod("p0", containers={"app": {}})
    bare["spec"]["resources"] = {"requests": {"memory": "512Mi"}}
    mesh = w.resource(utilization=50, container="mesh")
    return [
        scenario("sidecar-requests", [with_sidecar(name) for name in each]),
        scenario("pod-level-requests", [with_sidecar(name, cpu="500m", memory="300Mi") for name in each]),
        scenario("pod-level-requests-of-memory-only", [with_sidecar(name, memory="300Mi") for name in each]),
        scenario("pod-level-requests-of-some-pods", mixed),
        scenario("pod-level-requests-without-cpu-anywhere", [bare, w.pod("p1"), w.pod("p2")]),
        w.scenario(
            "container-that-is-a-sidecar",
            [mesh],
            [
                w.begin(
                    3,
                    [with_sidecar(name, cpu="5") for name in each],
                    w.readings(resource=[w.measured("cpu", w.names(3, 44), container="mesh")]),
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
            w.pods_metric("hits", "10"),
            w.object_metric("hits", value="5"),
            w.external("hits", value="5"),
        ]
        for metric, field in zip(metrics, ("pods", "object", "external"), strict=True):
            metric[field]["metric"]["selector"] = {"matchExpressions": [expression]}
        steps = [w.begin(3, w.pods(3), w.readings())]
        made += [w.scenario(f"selector-{name}-{metric['type']}", [metric], steps) for metric in metrics]
    return made


def cases() -> list[Json]:
    """All of this file."""
    return [*custom_metrics(), *requests_of_pods(), *wrong_selectors()]
