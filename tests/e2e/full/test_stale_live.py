"""A recommendation of a VPA recommender that is really stopped: reported as stale, and used again once it runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from hvpa.api.values.timestamp import parse_timestamp
from hvpa.core.recommenders.stale import PERIODS
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, operator_kubeconfig
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import MEBI

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 120
NAME = "silent"
INTERVAL = 8
"""Seconds. The recommender looks each 2 seconds and has a new sample to write each 11, as metrics-server measures."""


@pytest.fixture
def quick(cluster: ControlPlane, operator: Operator, namespace: str) -> Iterator[Operator]:
    """In place of the operator: one for which a recommendation is stale after three times `INTERVAL`."""
    operator.kill()
    try:
        args = (
            "--namespace",
            namespace,
            "--vpa-recommender-interval",
            f"{INTERVAL}s",
            "--log-level",
            "debug",
        )
        with Operator(cluster, operator_kubeconfig(cluster), *args, name="quick") as running:
            yield running
    finally:
        operator.start()


def test_a_stopped_recommender_is_reported_after_three_intervals_until_it_runs_again(
    cluster: ControlPlane, quick: Operator, namespace: str
) -> None:
    api = cluster.api
    api.create(objects.deployment(NAME, namespace))
    api.create(objects.hvpa(NAME, namespace, vpa=objects.vertical()))
    await_pods(api, namespace, NAME)

    def vpa() -> Json:
        return api.get("VerticalPodAutoscaler", NAME, namespace)

    def written() -> dt.datetime:
        fields = vpa()["metadata"]["managedFields"]
        return max(parse_timestamp(entry["time"]) for entry in fields if entry.get("subresource") == "status")

    def moves() -> bool:
        """Whether the upper bound of memory is one that a history of some samples gives. Before that it is the largest
        that the recommender gives (97656250000Ki), and stands still."""
        recommendations = vpa()["status"].get("recommendation", {}).get("containerRecommendations", ())
        return any(recommendation["upperBound"]["memory"].isdecimal() for recommendation in recommendations)

    def usable() -> bool:
        return objects.conditions(api, NAME, namespace).get("VpaActive", ("", ""))[0] == "True"

    def stale() -> bool:
        """Whether it is reported as stale, and not before three intervals have passed since its last write."""
        [condition] = [
            condition
            for condition in api.get("Hvpa", NAME, namespace)["status"]["conditions"]
            if condition["type"] == "VpaActive"
        ]
        reported = condition["status"], condition["reason"]
        since = parse_timestamp(condition["lastTransitionTime"]) - written()
        return reported == ("False", "RecommendationStale") and since >= PERIODS * dt.timedelta(
            seconds=INTERVAL
        )

    def logged() -> list[tuple[str, str]]:
        """The log's lines about staleness: a warning as it begins, a line as it ends. A recommender that a busy machine
        held up for three intervals was stale, too: then there are several pairs."""
        about = "RecommendationStale"
        return [
            (line["level"], "begins" if line.get("reason") == about else "ends")
            for line in quick.log_lines()
            if about in (line.get("reason"), line.get("was"))
        ]

    with PodLoad(api, namespace, f"app={NAME}", cpu=400, memory=200 * MEBI):
        wait_for(lambda: usable() and moves(), TIMEOUT, "the VPA's recommendation is used, and moves")
        with cluster.stopped("vpa-recommender"):
            wait_for(stale, TIMEOUT, lambda: f"it is stale: {api.get('Hvpa', NAME, namespace)}, {vpa()}")
            wait_for(
                lambda: objects.conditions(api, NAME, namespace)["Ready"] == ("False", "VpaInactive"),
                TIMEOUT,
                "the Hvpa is not ready",
            )
        wait_for(usable, TIMEOUT, "it is used again")
        # The status is written before the line of the log.
        wait_for(lambda: logged()[-1] == ("info", "ends"), TIMEOUT, lambda: f"a line of its end: {logged()}")
    lines = logged()
    assert lines == [("warning", "begins"), ("info", "ends")] * (len(lines) // 2)
