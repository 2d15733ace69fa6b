"""Overload: Hvpas that never come to rest, and an API server that asks to wait. Others have their steps all the same,
and the API server is left alone when it asks for that."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import yaml

from hvpa.reconcile.queue import BURST, FAILING_SPACING, SPACING
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.client.audit import Request
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.workloads.scenario import Scenario, parallel
from tests.e2e.bare.conftest import USER, NewScenario, Start

NOISE = 300
"""Changes that the noisiest Hvpa sees, at about 100 a second."""
QUIET = 3
LONG = "10.0"
"""Seconds (as a bucket's bound) that no Hvpa has to wait for a worker, on whatever machine."""
CROWD = 16
LEASE = 30
"""Seconds: the operator is paused again and again, and keeps it."""
AT_ONCE = 16


@dataclass
class Noise:
    """A thread that does something all the time, and counts."""

    act: Callable[[int], object]
    pause: float
    count: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """For the time of the block."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._over.wait(self.pause):
                return
            with suppress(ApiError, OSError):  # a conflict with the operator, say
                self.act(number)
                self.count += 1


def noise_of_hpa(scenario: Scenario, pause: float, *counts: int) -> Noise:
    """The HPA controller recommends one of these counts after the other."""
    statuses = [scenario.hpa_status(count) for count in counts]

    def recommend(number: int) -> None:
        status = statuses[number % len(statuses)]
        scenario.api.patch_status("HorizontalPodAutoscaler", scenario.name, scenario.namespace, status)

    return Noise(recommend, pause)


def noise_of_client(scenario: Scenario, pause: float) -> Noise:
    """Another client patches the workload all the time."""

    def patch(number: int) -> None:
        body = {"metadata": {"annotations": {"noise": str(number)}}}
        scenario.api.patch(scenario.kind, scenario.name, scenario.namespace, body)

    return Noise(patch, pause)


def steps(scenario: Scenario) -> None:
    """Two steps, one after the other."""
    for _ in range(2):
        wanted = scenario.replicas + 1
        scenario.hpa_wants(wanted)
        scenario.await_replicas(wanted)
        scenario.rollout_completes()


def test_noisy_hvpas_are_spaced_and_the_others_have_their_steps(
    plane: ControlPlane, start: Start, new_scenario: NewScenario, space: str, token: str
) -> None:
    with plane.proxy() as line:
        operator = start("--namespace", space, kubeconfig=line.kubeconfig_for(token))
        scenarios = parallel([new_scenario(create=False) for _ in range(QUIET + 3)])
        chatty, failing, contested, *quiet = scenarios
        line.fail(500, times=None, verb="patch", path=f"/deployments/{failing.name}$")
        chatter = noise_of_hpa(chatty, 0.01, chatty.replicas, 5)
        decisions, answered, begin = (
            operator.metric("hvpa_decisions_total"),
            len(line.seen),
            time.monotonic(),
        )
        with (
            chatter.running(),
            noise_of_hpa(failing, 0.05, 5, 6).running(),
            noise_of_client(contested, 0.02).running(),
        ):
            contested.hpa_wants(6)
            for scenario in quiet:
                steps(scenario)
            wait_for(lambda: chatter.count >= NOISE, 180, "enough noise")
        lasted = time.monotonic() - begin
        patches = [one.path.rpartition("/")[2] for one in line.seen[answered:] if one.verb == "patch"]
        decisions = operator.metric("hvpa_decisions_total") - decisions
        most = BURST + 1 + lasted / SPACING
        assert decisions <= 3 * most + QUIET * 20
        assert BURST / 2 <= patches.count(failing.name) <= 2 * (BURST + 1 + lasted / FAILING_SPACING)
        assert patches.count(contested.name) <= 2 * most
        waited = "hvpa_queue_wait_seconds"
        assert operator.metric(f"{waited}_count") <= operator.metric(f"{waited}_bucket", le=LONG)
        line.clear()
        failing.hpa_wants(4)
        failing.await_replicas(4)
        contested.await_replicas(6)


# --- API Priority and Fairness ----------------------------------------------------------------------------------------
def flow_schemas() -> list[Json]:
    """The sample for administrators, but with next to no room in the operator's own level."""
    text = (REPOSITORY / "config" / "flow-control" / "flow_schemas.yaml").read_text()
    found = list(yaml.safe_load_all(text))
    level = next(one for one in found if one["kind"] == "PriorityLevelConfiguration")
    level["spec"]["limited"].update(nominalConcurrencyShares=1, lendablePercent=0, borrowingLimitPercent=0)
    level["spec"]["limited"]["limitResponse"]["queuing"]["queueLengthLimit"] = 1
    return found


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
        for one in schemas:
            plane.api.delete(f"{one['apiVersion']}/{one['kind']}", one["metadata"]["name"])


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
        found = plane.audit.requests(mark, user=USER)
        _judge(found, [one for one in found if one.is_write and one.code == 429])
        assert operator.metric("hvpa_leader") == 1
    assert not [one for one in operator.log_lines() if one.get("level") == "error"]


def _follows(scenario: Scenario, wanted: int) -> bool:
    """Whether the workload has so many replicas; if not, its HPA looks again, as it does every 15 seconds: its last
    recommendation may be of another count than the present one."""
    if scenario.replicas != wanted:
        scenario.hpa_wants(wanted)
    return scenario.replicas == wanted


def _judge(found: list[Request], refused: list[Request]) -> None:
    """No storm: what is refused is at most what can be under way when the pauses begin, which are of a second at least,
    and all but the first after a cut. And leases got through all the while."""
    assert refused
    lasted = (refused[-1].time - refused[0].time).total_seconds()
    assert len(refused) <= AT_ONCE + AT_ONCE / 2 * lasted
    leases = [one for one in found if one.resource == "leases"]
    assert leases
    assert {one.code for one in leases} == {200}
