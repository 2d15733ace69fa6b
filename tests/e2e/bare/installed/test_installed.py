"""What a user installs, on a bare API server: every sample and every overlay of `config` is accepted, and with the
rights of `config/default` the operator makes a step. `make compat` runs these tests on other versions too."""

from __future__ import annotations

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, Operator, serves_mutating_policies
from localcluster.workloads.bare_manifests import weight
from tests.e2e.bare.conftest import NewScenario

CONFIG = REPOSITORY / "config"
ELSEWHERE = {"samples", "monitoring"}
"""What is no overlay, and one that needs the CRDs of the Prometheus operator (tests/e2e/chart/test_release.py)."""
OVERLAYS = sorted(
    path.parent.name for path in CONFIG.glob("*/kustomization.yaml") if path.parent.name not in ELSEWHERE
)
SAMPLES = sorted(
    path.name for path in (CONFIG / "samples").glob("*.yaml") if path.name != "kustomization.yaml"
)
DRY = ("--dry-run=server", "--validate=strict")


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_accepted(plane: ControlPlane, space: str, sample: str) -> None:
    plane.kubectl("create", *DRY, "--namespace", space, "-f", CONFIG / "samples" / sample)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_accepted_where_its_kinds_are_served(plane: ControlPlane, overlay: str) -> None:
    served = overlay != "size-at-creation" or serves_mutating_policies(plane)
    apply = ("apply", "--server-side", "--force-conflicts", *DRY, "-k", CONFIG / overlay)
    done = plane.kubectl(*apply, check=served)
    assert served or 'no matches for kind "MutatingAdmissionPolicy"' in done.stderr


def test_a_step_is_made_on_both_axes(new_scenario: NewScenario, operator: Operator) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    scenario.hpa_wants(6)
    scenario.await_replicas(4)  # halfway, 2 + (6 - 2) / 2
    scenario.rollout_completes()
    scenario.vpa_recommends(cpu="1500m", memory="1G")
    scenario.await_requests(cpu="1", memory="750M")
    for reason in ("ScaledOut", "ScaledUp"):
        scenario.await_event(reason)
    uid = scenario.target["metadata"]["uid"]  # by which `kubectl describe` finds an Event of the workload
    scenario.soon(
        lambda: [
            event
            for event in scenario.api.list("Event", scenario.namespace)
            if (event["involvedObject"].get("uid"), event["reason"]) == (uid, "ScaledOut")
        ],
        "an Event on the Deployment",
    )
    assert operator.metric("hvpa_scalings_applied_total", axis="vertical", direction="up") >= 1
    scenario.await_condition("Ready", "True", scenario.condition("Ready")["reason"])
