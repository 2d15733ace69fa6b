"""A right that is withdrawn while the operator runs: what it holds of pods gets old. That is reported, everything else
goes on, and all is well again once the right is back. And a watch that fails for ever, which a list makes up for."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Any

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.hasty import STALE, hasten
from localcluster.operator.operator import Operator
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import weight
from tests.e2e.bare.accounts import new_account
from tests.e2e.bare.conftest import NewScenario
from tests.e2e.bare.scaling.test_starving import RAISED, oom_killed

RBAC = "rbac.authorization.k8s.io"
GAUGE = "hvpa_watch_last_success_timestamp_seconds"
LONG = 60
"""Seconds: a few of failures until a cache counts as out of date, and a slow machine."""


class PodReader:
    """The right of an account to read pods, as a binding of its own."""

    def __init__(self, plane: ControlPlane, namespace: str, account: str) -> None:
        self._plane = plane
        self._user = f"system:serviceaccount:{namespace}:{account}"
        self._name = f"pods-of-{account}-{namespace}"
        self._subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        rules = plane.api.get("ClusterRole", "hvpa-operator")["rules"]
        self._rules = [rule for rule in rules if rule["resources"] == ["pods"]]
        rest = [rule for rule in rules if rule not in self._rules]
        assert self._rules
        self._bind(f"rest-of-{account}-{namespace}", rest)
        self.grant()

    def _bind(self, name: str, rules: list[Json]) -> None:
        kind = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
        self._plane.api.apply(kind | {"kind": "ClusterRole", "rules": rules})
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        binding = {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [self._subject]}
        self._plane.api.apply(kind | binding)
        self._plane.await_right(self._user, rules[-1])

    def grant(self) -> None:
        """Give the right."""
        self._bind(self._name, self._rules)

    def withdraw(self) -> None:
        """Take the right away; returns once the API server knows."""
        self._plane.api.delete("ClusterRoleBinding", self._name)
        attributes = {"verb": "list", "resource": "pods"}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        body = review | {"spec": {"user": self._user, "resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_for(
            lambda: not self._plane.api.raw("POST", path, body)["status"]["allowed"], 60, "the right is gone"
        )


def logged(operator: Operator, event: str) -> list[dict[str, Any]]:
    return [line for line in operator.log_lines() if str(line.get("event", "")).startswith(event)]


def succeeded(operator: Operator, plural: str) -> float:
    """When the list or watch of a resource last succeeded, by the metric."""
    return operator.metric(GAUGE, resource=plural)


def test_a_right_that_is_withdrawn_is_reported_and_all_is_well_once_it_is_back(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, space: str
) -> None:
    new_account(plane, space, "reader")
    right = PodReader(plane, space, "reader")
    kubeconfig = line.kubeconfig_for(plane.service_account_token(space, "reader"))
    scenario = new_scenario(create=False)
    starving = new_scenario(create=False, changes=weight(0))
    with hasten(Operator(plane, kubeconfig, "--namespace", space, name="reader")) as operator:
        scenario.create()
        starving.create()
        assert operator.health("readyz") == (200, "ok")
        right.withdraw()
        line.cut_watches()
        wait_for(lambda: operator.probe("readyz") == 503, LONG, "it is not ready")
        _, problem = operator.health("readyz")
        assert re.fullmatch(
            r"pods: out of date since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: 403 Forbidden", problem
        )
        assert operator.probe("healthz") == 200
        assert time.time() - succeeded(operator, "pods") >= STALE
        (line_of_log,) = logged(operator, "cache is out of date")
        assert (line_of_log["level"], line_of_log["resource"]) == ("warning", "pods")
        assert "forbidden" in line_of_log["error"]
        # What does not need the right goes on.
        scenario.hpa_wants(4)
        scenario.await_replicas(4)
        starving.vpa_recommends(cpu="900m", memory="400M")
        starving.await_blocked("Weight", "vertical")
        oom_killed(starving, "a")
        granted = time.time()
        right.grant()
        starving.await_requests(memory=RAISED, cpu="500m")
        wait_for(partial(healthy, operator), LONG, "it is ready")
        assert succeeded(operator, "pods") > granted
        assert [entry["resource"] for entry in logged(operator, "cache is up to date again")] == ["pods"]


def healthy(operator: Operator) -> bool:
    return operator.health("readyz") == (200, "ok")


def test_what_changes_is_seen_although_no_watch_of_it_succeeds(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, space: str, token: str
) -> None:
    operator = hasten(Operator(plane, line.kubeconfig_for(token), "--namespace", space, name="blind"))
    with operator:
        scenario = new_scenario()
        line.fail(500, times=None, verb="watch", path="/horizontalpodautoscalers$")
        line.cut_watches()
        for replicas in (4, 6):
            scenario.hpa_wants(replicas)
            scenario.await_replicas(replicas)
        line.clear()
        scenario.hpa_wants(8)
        scenario.await_replicas(8)
