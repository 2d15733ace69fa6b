"""gardener's README, first example, unchanged, with real recommenders: few replicas grow in number alone, from three on
in number and size."""

from __future__ import annotations

import pytest

from hvpa.api.values.quantity import parse_memory
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.load import Load, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import MEBI, OPERATOR
from tests.manifests import good

pytestmark = pytest.mark.owned_cluster
NAME = "resource-consumer"


def test_the_first_example_scales_out_at_weight_0_and_up_at_weight_60(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    api = cluster.api
    example = next(one.manifest for one in good() if one.name == "the first example of gardener's README")
    workload = samples.deployment(
        NAME, namespace, cpu="200m", memory="256Mi", limits={"cpu": "1", "memory": "512Mi"}
    )
    workload["spec"]["template"]["spec"]["containers"][0]["name"] = NAME
    api.create(workload)
    api.create({**example, "metadata": {**example["metadata"], "namespace": namespace}})
    # 390m on one pod is 195 percent of its request; the target is 50 percent: four replicas.
    await_pods(api, namespace, NAME)
    with Load(api, namespace, f"app={NAME}", cpu=390, base_memory=100 * MEBI):
        wait_for(
            lambda: objects.replicas(api, NAME, namespace) == 4,
            120,
            "at weight 0 the HPA's desired replicas are set whole",
        )
        # The VPA's target is minAllowed, 400Mi; 256Mi + 0.6 x (400Mi - 256Mi) is below that, and raised to it.
        wait_for(
            lambda: objects.resources(api, NAME, namespace)[1] == 400 * MEBI,
            120,
            "at weight 60 memory follows",
        )
    _, memory, _, limit = objects.resources(api, NAME, namespace)
    # The gap: the larger of 30 percent and 1G, rounded up to whole kilobytes.
    assert limit == parse_memory("1419431k") == -(-(memory + 10**9) // 1000) * 1000
    steps = [
        one.body["spec"]
        for one in cluster.audit.requests(
            user=OPERATOR, writes=True, resource="deployments", namespace=namespace, name=NAME, code=200
        )
    ]
    assert steps[0] == {"replicas": 4}
