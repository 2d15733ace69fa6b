"""Least privilege in one scenario: the operator uses every right that `config/rbac` gives it, and asks for no other.
That it holds over all end-to-end tests is judged at the end of a run (`tests/e2e/whole_run.py`)."""

from __future__ import annotations

from hvpa.api.objects.kinds import KINDS, has_replicas
from localcluster.client.rights import Right, expanded, used
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, SERVICE_ACCOUNT
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, weight
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import USER, NewScenario, Start


def granted(plane: ControlPlane) -> set[Right]:
    """All rights that roles give to the operator's ServiceAccount."""
    api, rules = plane.api, []
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    for binding in [*api.list("ClusterRoleBinding"), *api.list("RoleBinding")]:
        if subject in binding.get("subjects", []):
            reference = binding["roleRef"]
            role = api.get(reference["kind"], reference["name"], binding["metadata"].get("namespace"))
            rules += role["rules"]
    return {right for rule in rules for right in expanded(rule)}


def renewed(plane: ControlPlane) -> bool:
    lease = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
    return bool(lease["renewTime"] != lease["acquireTime"])


def test_every_right_is_used_and_none_is_missing(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    mark = plane.audit.mark()
    start("--leader-elect", "--lease-namespace", NAMESPACE)
    scenario = new_scenario()
    scenario.hpa_wants(4)
    scenario.await_replicas(4)
    others = [new_scenario(kind=kind, changes=VERTICAL_ONLY) for kind in KINDS if kind != scenario.kind]
    for other in others:
        other.vpa_recommends(cpu="1")
    for other in others:
        other.await_requests(cpu="1")
    in_place = {**weight(0), "updateStrategy": {"type": "InPlace"}}
    scaled = [new_scenario(kind=kind, changes=in_place) for kind in KINDS if has_replicas(kind)]
    for other in scaled:
        other.hpa_wants(4)
    for other in scaled:
        other.await_replicas(4)
    resized = scaled[0]
    pods = Pods(resized)
    pod = pods.start("0")
    resized.change(weight(100))
    resized.vpa_recommends(cpu="1", memory="400M")
    resized.soon(lambda: pods.spec(pod)["requests"]["cpu"] == "1", "the raise of CPU")
    pods.resize(pod)
    # Once the raise is there: before a memory limit falls, the operator asks for the pod's use.
    resized.soon(lambda: pods.spec(pod)["requests"]["memory"] == "400M", "less memory")
    for _ in range(2):  # the second of equal events raises the count of the first
        scenario.change({"mode": "Paused"})
        scenario.await_condition("Paused", "True", "Paused")
        scenario.change({"mode": "Apply"})
        scenario.await_condition("Paused", "False", "NotPaused")
    scenario.soon(
        lambda: [event for event in scenario.events("Paused") if event["count"] == 2],
        "an event that is counted",
    )
    scenario.change({"hpa": {"deploy": False}, "vpa": {"deploy": False}})
    for kind in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):
        scenario.await_gone(kind)
    scenario.soon(lambda: renewed(plane), "a renewal of the lease")
    rights, needed = granted(plane), set(used(plane.audit.requests(user=USER)))
    assert rights, "no role is bound to the operator's account"
    assert rights - needed == set(), "given and never used"
    # (An API server that has just been restarted denies everything for a moment: another test's.)
    assert [str(request) for request in plane.audit.requests(mark, user=USER, code=403)] == []
    wide = {right for right in rights if "*" in right or right[1] in ("secrets", "pods/exec", "roles")}
    assert wide == set()
