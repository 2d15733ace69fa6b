"""Many workloads with an Hvpa each, scaled all at once: what one operator does to all of them is compared."""

from __future__ import annotations

from collections import Counter

from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY
from localcluster.workloads.scenario import Scenario, new_namespace, parallel
from tests.e2e.bare.conftest import USER


class Workloads:
    """`count` workloads of one namespace, each scaled by its HPA alone, without anything that holds it back."""

    def __init__(self, plane: ControlPlane, count: int) -> None:
        self._plane = plane
        self.namespace = new_namespace(plane.api, "workloads")
        self.replicas = 6
        """How many replicas each of them is to have, from the first `recommend_next` on. Two are always ready, so
        that a count above that can be called for in both directions."""
        self.scenarios = [Scenario(plane.api, self.namespace, changes=HORIZONTAL_ONLY) for _ in range(count)]
        parallel(self.scenarios)

    def recommend_next(self) -> Mark:
        """Let all HPAs call for another count than now; the place in the audit log before that."""
        mark = self._plane.audit.mark()
        self.replicas = 10 - self.replicas
        for scenario in self.scenarios:
            scenario.hpa_wants(self.replicas)
        return mark

    def stands(self, since: Mark) -> None:
        """Wait until all have that count, and make sure that each got it by one patch."""
        for scenario in self.scenarios:
            scenario.await_replicas(self.replicas, 60)
        patches = self._plane.audit.requests(
            since, user=USER, resource="deployments", namespace=self.namespace, code=200
        )
        written = Counter(request.name for request in patches if request.is_write)
        assert written == {scenario.name: 1 for scenario in self.scenarios}

    def delete(self) -> None:
        """Delete the Hvpas."""
        for scenario in self.scenarios:
            scenario.delete()
