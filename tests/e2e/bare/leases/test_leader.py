"""Several operators, one lease: one works, and another takes over when that one gets SIGTERM, or hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.client.audit import WRITE_VERBS
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.proxy.faults import AnsweredRequest
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import weight
from tests.e2e.bare.conftest import NewScenario, Start

LOOK = 1.0
"""Seconds within which a candidate sees that a lease was given back, and to which it knows when one was renewed."""
SLACK = 20.0
"""Seconds that a loaded machine may add."""


@dataclass
class Candidate:
    """An operator, and the proxy that only it uses and that knows what it wrote."""

    operator: Operator
    proxy: Proxy

    @property
    def leads(self) -> bool:
        return self.operator.process.alive and self.operator.metric("hvpa_leader") == 1

    @property
    def writes(self) -> list[AnsweredRequest]:
        """What it wrote, its lease aside."""
        return [
            request
            for request in self.proxy.answered
            if request.verb in WRITE_VERBS and "/leases" not in request.path
        ]


class Pair:
    def __init__(self, plane: ControlPlane, first: Candidate, second: Candidate) -> None:
        self.plane = plane
        self.both = [first, second]

    def roles(self) -> tuple[Candidate, Candidate]:
        """Who leads, and who waits."""

        def leader() -> Candidate | None:
            return next((candidate for candidate in self.both if candidate.leads), None)

        leading = wait_for(leader, 90, "a leader", 0.05)
        assert leading is not None
        return leading, next(candidate for candidate in self.both if candidate is not leading)

    def lease(self) -> Json:
        return self.plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]  # type: ignore[no-any-return]


@pytest.fixture
def pair(
    plane: ControlPlane, start: Start, space: str, token: str, request: pytest.FixtureRequest
) -> Iterator[Pair]:
    """Two operators for this test's namespace, with a lease of so many seconds."""
    duration = str(request.param)
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    flags = (
        "--namespace",
        space,
        "--leader-elect",
        "--lease-namespace",
        NAMESPACE,
        "--lease-duration",
        duration,
    )
    with plane.proxy() as first_proxy, plane.proxy() as other:
        proxies = (first_proxy, other)
        started = [start(*flags, kubeconfig=proxy.kubeconfig_for(token), wait=False) for proxy in proxies]
        for operator in started:
            operator.await_ready()
        yield Pair(plane, *(Candidate(*both) for both in zip(started, proxies, strict=True)))
        for operator in started:
            operator.resume()
            operator.kill()


def took_over(candidate: Candidate, since: float, within: float) -> None:
    wait_for(lambda: candidate.leads, within + SLACK, "the other takes over", 0.05)
    assert time.monotonic() - since < within + SLACK


@pytest.mark.parametrize("pair", [60], indirect=True)
def test_a_leader_that_gets_sigterm_ends_its_patch_gives_the_lease_back_and_exits_0(
    pair: Pair, new_scenario: NewScenario
) -> None:
    leader, other = pair.roles()
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    hold = leader.proxy.hold(verb="patch", path=f"/deployments/{scenario.name}$")
    scenario.hpa_wants(6)
    hold.wait()
    codes: list[int] = []
    ending = threading.Thread(target=lambda: codes.append(leader.operator.terminate(60)))
    ending.start()
    wait_for(lambda: leader.operator.probe("readyz") != 200, 60, "it is not ready any more", 0.02)
    assert scenario.replicas == 2
    assert not other.leads
    assert not other.writes
    written = len(leader.writes)
    hold.release()
    ending.join(90)
    ended = time.monotonic()
    assert codes == [0]
    assert scenario.replicas == 4
    assert any(
        request.path.endswith(f"/{scenario.name}/status") and request.code == 200
        for request in leader.writes[written:]
    )
    took_over(other, ended, LOOK)  # far less than the 60 s of the lease
    assert not [request for request in other.writes if "/deployments/" in request.path]
    scenario.hpa_wants(10)
    scenario.await_replicas(7)


@pytest.mark.parametrize("pair", [5], indirect=True)
def test_a_leader_that_hangs_writes_nothing_when_it_goes_on_after_its_lease(
    pair: Pair, new_scenario: NewScenario
) -> None:
    leader, other = pair.roles()
    scenario = new_scenario()
    hold = leader.proxy.hold(verb="patch", path=f"/deployments/{scenario.name}$", answered=True)
    scenario.hpa_wants(6)
    hold.wait()
    leader.operator.pause()  # between two writes: the step is made, the status is next
    hung, own = time.monotonic(), len(leader.writes)
    took_over(other, hung, 5 + LOOK)
    scenario.soon(lambda: scenario.status["axes"]["horizontal"].get("appliedFrom"), "the step in the status")
    hold.release()
    leader.operator.resume()
    assert leader.operator.process.wait(90) == 1
    assert len(leader.writes) == own
    scenario.hpa_wants(9)
    scenario.await_replicas(9)
