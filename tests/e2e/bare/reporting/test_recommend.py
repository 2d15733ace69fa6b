"""An Hvpa in mode Recommend looks at a workload as it runs, and changes nothing of it (DESIGN 3.2, 4, 8)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play
from tests.e2e.bare.reporting.test_explain import agrees_with_status, explained

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
KEDA: Json = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "name": "web",
    "uid": "keda",
    "controller": True,
}
"""The owner of an HPA that KEDA has made; the kind need not be known."""
ADDITIVE: Json = {"mode": "Recommend", **weight(50)}
TRAJECTORY: Json = {"mode": "Recommend", "blend": "Trajectory", **weight(50)}


def looks_at(play: Play, stage: Stage, name: str, changes: Json) -> Stage:
    """Another Hvpa for the workload of a stage."""
    other = play(name, create=False, changes=changes)
    other.manifest["spec"]["targetRef"]["name"] = stage.name
    stage.api.create(other.manifest)
    return other


def scaled_by_itself(play: Play) -> Stage:
    """A workload of 2 pods that KEDA's HPA scales, and a VPA in mode Recreate; nobody has an Hvpa for it."""
    stage = play(create=False)
    stage.api.create(stage.workload)
    stage.rollout_completes()
    target = samples.target_of(stage.workload)
    hpa = samples.hpa("keda-hpa-web", stage.namespace, target, utilization=100)
    hpa["metadata"]["ownerReferences"] = [KEDA]
    stage.api.create(hpa)
    stage.api.create(samples.vpa("theirs", stage.namespace, target, mode="Recreate"))
    stage.vpa_recommends(name="theirs", cpu="900m", memory="900M")
    return stage


def measures(stage: Stage, replicas: int) -> None:
    """KEDA's HPA measures what calls for so many replicas."""
    stage.api.patch_status(HPA, "keda-hpa-web", stage.namespace, stage.hpa_status(replicas))


def recommended(stage: Stage, replicas: int, cpu: str) -> None:
    """Wait until an Hvpa recommends this."""

    def found() -> tuple[int, str]:
        told = stage.status.get("recommended", {})
        return told.get("replicas", 0), told["containers"][0]["requests"][
            "cpu"
        ] if "containers" in told else ""

    stage.soon(lambda: found() == (replicas, cpu), f"{replicas} x {cpu}")


def has_a_count(stage: Stage) -> None:
    """Wait until an Hvpa recommends a count."""
    stage.soon(lambda: stage.status["recommended"]["replicas"], "its count")


def reads_hpa_of(stage: Stage, hvpa: str) -> None:
    """Wait until an Hvpa reads the HPA of another one."""
    stage.soon(lambda: f"of Hvpa {hvpa}" in stage.condition("HpaActive")["message"], f"the HPA of {hvpa}")


def writes(plane: ControlPlane, stage: Stage, since: Mark) -> set[str]:
    """What the operator wrote to in a stage's namespace."""
    found = plane.audit.requests(since, user=USER, writes=True, namespace=stage.namespace)
    return {"/".join(filter(None, (one.resource, one.subresource))) for one in found}


def test_two_blends_look_at_a_workload_that_keda_and_a_vpa_scale_and_nothing_is_written_to_it(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = scaled_by_itself(play)
    mark = plane.audit.mark()
    measures(stage, 6)
    additive = looks_at(play, stage, "additive", ADDITIVE)
    trajectory = looks_at(play, stage, "trajectory", TRAJECTORY)
    for one in (additive, trajectory):
        told = one.await_condition("HpaActive", "True", "ReadAsIs")
        assert told["message"] == f"reading {HPA} keda-hpa-web, which scales Deployment {stage.name} itself"
        told = one.await_condition("VpaActive", "True", "ReadAsIs")
        assert "theirs (updateMode Recreate)" in told["message"]
        assert "nothing is changed" in one.await_condition("Ready", "True", "Recommend")["message"]
    recommended(additive, 4, "700m")
    trajectory.soon(lambda: trajectory.status.get("recommended", {}).get("containers"), "its sizes")
    assert trajectory.status["recommended"] != additive.status["recommended"]

    stage.change_workload({"replicas": 6}, manager="hpa")  # which goes on scaling
    stage.rollout_completes()
    measures(stage, 6)
    recommended(additive, 6, "700m")
    agrees_with_status(explained(plane, additive), additive)
    measures(stage, 3)
    recommended(additive, 4, "700m")
    assert writes(plane, stage, mark) <= {"hvpas/status", "events"}
    assert "replicas" not in additive.hvpa["spec"], "nobody writes a count to it"

    additive.change({"mode": "Apply"})
    told = additive.await_condition("HpaActive", "False", "ForeignHpa")
    assert "delete it, or have spec.hpa.selector match" in told["message"]
    additive.await_condition("VpaActive", "False", "ForeignVpa")
    additive.change({"mode": "Recommend"})
    additive.await_condition("HpaActive", "True", "ReadAsIs")
    recommended(additive, 4, "700m")
    assert writes(plane, stage, mark) <= {"hvpas/status", "events"}


def test_one_that_applies_goes_on_scaling_while_others_look_and_another_one_takes_over(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(50))
    lookers = [looks_at(play, stage, name, changes) for name, changes in (("a", ADDITIVE), ("b", TRAJECTORY))]
    stage.vpa_recommends(cpu="900m")
    stage.await_requests(cpu="700m")
    stage.rollout_completes()
    stage.hpa_wants(6)
    stage.await_replicas(4)
    for one in lookers:
        told = one.await_condition("HpaActive", "True", "ReadAsIs")
        assert told["message"] == f"reading {HPA} {stage.name} of Hvpa {stage.name}"
        one.await_condition("VpaActive", "True", "ReadAsIs")
        has_a_count(one)
        assert "replicas" not in one.hvpa["spec"]
    stage.await_condition("Ready", "True", "HeldBack")
    assert [one["metadata"]["name"] for one in stage.api.list(HPA, stage.namespace)] == [stage.name]
    assert [one["metadata"]["name"] for one in stage.api.list(VPA, stage.namespace)] == [stage.name]

    stage.change({"mode": "Recommend"})  # another one takes over
    stage.await_condition("Ready", "True", "Recommend")
    lookers[0].change({"mode": "Apply"})
    lookers[0].soon(lambda: stage.api.find(HPA, "a", stage.namespace), "its own HPA")
    stage.soon(lambda: stage.api.find(HPA, stage.name, stage.namespace) is None, "the end of the first HPA")
    count = stage.replicas
    lookers[0].vpa_recommends(cpu=stage.requests["cpu"])
    stage.rollout_completes()
    stage.api.patch(
        "Hvpa", "a", stage.namespace, {"spec": {"replicas": 10}}, subresource="scale", manager="hpa"
    )
    stage.api.patch_status(HPA, "a", stage.namespace, stage.hpa_status(10))
    stage.soon(lambda: stage.replicas > count, "the other one's step")
    for one in (stage, lookers[1]):
        reads_hpa_of(one, "a")


def test_its_own_hpa_goes_where_somebody_has_the_workload_scaled(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(changes=ADDITIVE)
    stage.vpa_recommends(cpu="900m")
    stage.hpa_wants(6)
    recommended(stage, 4, "700m")
    mark = plane.audit.mark()
    stage.api.create(
        samples.hpa("by-hand", stage.namespace, samples.target_of(stage.workload), utilization=100)
    )
    stage.await_gone(HPA)
    stage.api.patch_status(HPA, "by-hand", stage.namespace, stage.hpa_status(4))
    stage.await_condition("HpaActive", "True", "ReadAsIs")
    recommended(stage, 3, "700m")
    assert (stage.replicas, stage.requests["cpu"]) == (2, "500m")
    written = plane.audit.requests(mark, user=USER, writes=True, namespace=stage.namespace)
    others = [one for one in written if one.resource not in ("hvpas", "events")]
    assert [(one.verb, one.resource, one.name) for one in others] == [
        ("delete", "horizontalpodautoscalers", stage.name)
    ]
