"""A real VPA recommender that loses its history: nothing is lowered until it has one again. One that finds its
checkpoints again, also in memory-saver mode, is trusted as before."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from hvpa.api.values.timestamp import parse_timestamp
from hvpa.core.recommenders.history import LOST
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import MEBI

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 180
NAME = "forgetful"
RECOMMENDER = "vpa-recommender"
CHECKPOINT = "autoscaling.k8s.io/v1/VerticalPodAutoscalerCheckpoint"
MIN_HISTORY = 40
"""Seconds. The recommender looks each 2 seconds, and has a new sample each 11: its days of history are these."""
LARGE = "1500m"


def reason(api: KubeApi, namespace: str) -> str:
    return objects.conditions(api, NAME, namespace).get("VpaActive", ("", ""))[1]


def cpu(api: KubeApi, namespace: str) -> int:
    return objects.resources(api, NAME, namespace)[0]


def set_cpu(api: KubeApi, namespace: str) -> None:
    """Request much more than is used, as a user."""
    container = {"name": "app", "resources": {"requests": {"cpu": LARGE}, "limits": {"cpu": "3"}}}
    body: Json = {"spec": {"template": {"spec": {"containers": [container]}}}}
    api.patch("Deployment", NAME, namespace, body, type="strategic", manager="a-user")


def test_lost_history_holds_every_decrease_until_it_is_back(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    api = cluster.api
    down = {
        "minChange": {"cpu": {"value": "20m"}, "memory": {"value": "5M"}},
        "minHistory": f"{MIN_HISTORY}s",
    }
    api.create(objects.deployment(NAME, namespace))
    set_cpu(api, namespace)
    api.create(objects.hvpa(NAME, namespace, vpa=objects.vertical(scaleDown=down)))
    await_pods(api, namespace, NAME)
    with PodLoad(api, namespace, f"app={NAME}", cpu=400, memory=200 * MEBI):
        wait_for(
            lambda: cpu(api, namespace) < 1000, TIMEOUT, "the request is lowered once there is a history"
        )
        provided = _provided(api, namespace)

        # Restarted in memory-saver mode, it finds its checkpoints again.
        process = cluster.processes[RECOMMENDER]
        with cluster.stopped(RECOMMENDER):
            process.argv.append("--memory-saver=true")
        before = _written(api, namespace)
        wait_for(lambda: _written(api, namespace) != before, TIMEOUT, "it recommends again")
        assert reason(api, namespace) != "LostHistory"

        # Its checkpoints are gone, and it starts with nothing. (Lost is what has been there for long.)
        since = parse_timestamp(provided.partition(" ")[2])
        long = (LOST + 0.2) * dt.timedelta(seconds=MIN_HISTORY)
        wait_for(lambda: dt.datetime.now(dt.UTC) - since > long, TIMEOUT, "recommendations for long")
        with cluster.stopped(RECOMMENDER):
            process.argv.remove("--memory-saver=true")
            for checkpoint in api.list(CHECKPOINT, namespace):
                api.delete(CHECKPOINT, checkpoint["metadata"]["name"], namespace)
        wait_for(lambda: reason(api, namespace) == "LostHistory", TIMEOUT, "the loss is noticed")
        set_cpu(api, namespace)
        lost, held = time.monotonic(), 0.0
        assert _provided(api, namespace) == provided, "the condition tells nothing"
        while cpu(api, namespace) == 1500 and reason(api, namespace) == "LostHistory":
            held = time.monotonic() - lost
            assert held < TIMEOUT
            time.sleep(0.5)
        # The request is lowered first, and then the status is written.
        wait_for(lambda: reason(api, namespace) != "LostHistory", 5, "the history is back")
        assert held > MIN_HISTORY / 2
        wait_for(lambda: cpu(api, namespace) < 1000, TIMEOUT, "the request is lowered again")


def _provided(api: KubeApi, namespace: str) -> str:
    conditions = api.get("VerticalPodAutoscaler", NAME, namespace)["status"]["conditions"]
    (condition,) = [condition for condition in conditions if condition["type"] == "RecommendationProvided"]
    return f"{condition['status']} {condition['lastTransitionTime']}"


def _written(api: KubeApi, namespace: str) -> object:
    return api.get("VerticalPodAutoscaler", NAME, namespace)["status"]["recommendation"]
