"""Overload: an API server that asks to wait is left alone for as long, and all Hvpas have their steps in the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import yaml

from localcluster.client.api import Json, wait_for
from localcluster.client.audit import Request
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.workloads.scenario import Scenario, parallel
from tests.e2e.bare.conftest import USER, NewScenario, Start

CROWD = 16
LEASE = 30
"""Seconds: the operator is paused again and again, and keeps it."""
AT_ONCE = 16


def flow_schemas() -> list[Json]:
    """The sample for administrators, but with next to no room in the operator's own level."""
    text = (REPOSITORY / "config" / "flow-control" / "flow_schemas.yaml").read_text()
    manifests = list(yaml.safe_load_all(text))
    level = next(manifest for manifest in manifests if manifest["kind"] == "PriorityLevelConfiguration")
    level["spec"]["limited"].update(nominalConcurrencyShares=1, lendablePercent=0, borrowingLimitPercent=0)
    level["spec"]["limited"]["limitResponse"]["queuing"]["queueLengthLimit"] = 1
    return manifests


@contextmanager
def tight(plane: ControlPlane) -> Iterator[None]:
    """For the time of the block, the API server has next to no room for the operator."""
    schemas = flow_schemas()
    plane.apply_all(schemas)
    dump = "/debug/api_priority_and_fairness/dump_priority_levels"
    wait_for(lambda: "\nhvpa," in plane.api.raw("GET", dump)["text"], 60, "the operator's priority level")
    try:
        yield
    finally:
        for schema in schemas:
            plane.api.delete(f"{schema['apiVersion']}/{schema['kind']}", schema["metadata"]["name"])


def test_an_api_server_that_asks_to_wait_is_obeyed_and_all_converge(
    plane: ControlPlane, start: Start, new_scenario: NewScenario, space: str
) -> None:
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    flags = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", str(LEASE))
    operator = start("--namespace", space, "--max-in-flight", str(AT_ONCE), *flags)
    scenarios = parallel([new_scenario(create=False) for _ in range(CROWD)])
    with tight(plane):
        mark = plane.audit.mark()
        wanted = 2

        def throttled() -> bool:
            nonlocal wanted
            wanted = wanted % 9 + 1
            operator.pause()  # so that it sees all of it at once
            for scenario in scenarios:
                scenario.hpa_wants(wanted)
            operator.resume()
            time.sleep(1)
            return operator.metric("hvpa_throttled_total") > 0

        wait_for(throttled, 120, "the API server asks to wait")
        for scenario in scenarios:
            wait_for(
                partial(_follows, scenario, wanted), 90, f"{scenario.name} has {wanted} replicas", interval=1
            )
        wait_for(lambda: plane.audit.requests(mark, user=USER, resource="leases"), 60, "a renewal")
        requests = plane.audit.requests(mark, user=USER)
        _judge(requests, [request for request in requests if request.is_write and request.code == 429])
        assert operator.metric("hvpa_leader") == 1
    assert not [line for line in operator.log_lines() if line.get("level") == "error"]


def _follows(scenario: Scenario, wanted: int) -> bool:
    """Whether the workload has so many replicas; if not, its HPA looks again, as it does every 15 seconds: its last
    recommendation may be of another count than the present one."""
    if scenario.replicas != wanted:
        scenario.hpa_wants(wanted)
    return scenario.replicas == wanted


def _judge(requests: list[Request], refused: list[Request]) -> None:
    """No storm: what is refused is at most what can be under way when the pauses begin, which are of a second at least,
    and all but the first after a cut. And leases got through all the while."""
    assert refused
    lasted = (refused[-1].time - refused[0].time).total_seconds()
    assert len(refused) <= AT_ONCE + AT_ONCE / 2 * lasted
    leases = [request for request in requests if request.resource == "leases"]
    assert leases
    assert {request.code for request in leases} == {200}
