"""Least privilege: the operator uses every right that `config/rbac` gives it, and asks for no other."""

from __future__ import annotations

from tests.e2e.bare.conftest import USER, Play, Start
from tests.e2e.bare.manifests import VERTICAL_ONLY
from tests.e2e.world.controlplane import ControlPlane
from tests.e2e.world.kube import Json
from tests.e2e.world.operator import NAMESPACE, SERVICE_ACCOUNT

Right = tuple[str, str, str]
"""API group, resource (with subresource), verb."""


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


def expanded(rule: Json) -> set[Right]:
    return {
        (group, resource, verb)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(plane: ControlPlane) -> set[Right]:
    """The rights that the operator's requests of this session needed and had."""
    rights: set[Right] = set()
    for one in plane.audit.requests(user=USER):
        resource = "/".join(part for part in (one.resource, one.subresource) if part)
        if one.code not in (401, 403):  # a 404 is an answer, too
            rights.add((one.group, resource, one.verb))
        if one.verb == "patch" and one.code == 201:  # server-side apply of what was not there
            rights.add((one.group, resource, "create"))
    return rights


def renewed(plane: ControlPlane) -> bool:
    lease = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
    return bool(lease["renewTime"] != lease["acquireTime"])


def test_every_right_is_used_and_none_is_missing(plane: ControlPlane, play: Play, start: Start) -> None:
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    mark = plane.audit.mark()
    start("--leader-elect", "--lease-namespace", NAMESPACE)
    stage, stateful = play(), play(kind="StatefulSet", changes=VERTICAL_ONLY)
    stage.hpa_wants(4)
    stage.await_replicas(4)
    stateful.vpa_recommends(cpu="1")
    stateful.await_requests(cpu="1")
    for _ in range(2):  # the second of equal events raises the count of the first
        stage.change({"mode": "Paused"})
        stage.await_condition("Paused", "True", "Paused")
        stage.change({"mode": "Apply"})
        stage.await_condition("Paused", "False", "NotPaused")
    stage.soon(
        lambda: [one for one in stage.events("Paused") if one["count"] == 2], "an event that is counted"
    )
    stage.change({"hpa": {"deploy": False}, "vpa": {"deploy": False}})
    for kind in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):
        stage.await_gone(kind)
    stage.soon(lambda: renewed(plane), "a renewal of the lease")
    rights, needed = granted(plane), used(plane)
    assert rights, "no role is bound to the operator's account"
    assert rights - needed == set(), "given and never used"
    # (An API server that has just been restarted denies everything for a moment: another test's.)
    assert [str(one) for one in plane.audit.requests(mark, user=USER, code=403)] == []
    wide = {right for right in rights if "*" in right or right[1] in ("secrets", "pods/exec", "roles")}
    assert wide == set()
