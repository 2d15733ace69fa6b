"""Faults of lists, watches and connections: afterwards the workloads stand as without them, each step was written once,
and the operator holds no more than before. The operator's waits are cut short (`hasty.py`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.hasty import SILENCE, hasten
from localcluster.operator.operator import Operator
from localcluster.proxy.faults import Fault
from localcluster.proxy.packets import why_not
from localcluster.proxy.proxy import Proxy
from localcluster.proxy.wire import Wire
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.faults.injections import OUTAGES, WATCHES
from tests.e2e.bare.faults.workloads import Workloads

pytestmark = pytest.mark.usefixtures("remote")
WORKLOADS = 12

MEGABYTES = 24
"""What memory may grow by: far less than the hundreds of connections hold that were opened."""


@pytest.fixture(scope="module")
def wire(line: Proxy) -> Iterator[Wire]:
    with Wire(line.address) as wire:
        yield wire


@pytest.fixture(scope="module")
def remote(plane: ControlPlane, line: Proxy, wire: Wire, token: str) -> Iterator[Operator]:
    """An operator that reaches the API server over the wire and through the proxy."""
    kubeconfig = wire.kubeconfig(line.kubeconfig_for(token))
    with hasten(Operator(plane, kubeconfig, "--log-level", "debug")) as running:
        yield running


@pytest.fixture(scope="module")
def at_first(remote: Operator) -> int:
    """How many files the operator has open while all is new."""
    return open_files(remote)


@pytest.fixture(scope="module")
def workloads(plane: ControlPlane, remote: Operator, at_first: int) -> Iterator[Workloads]:
    workloads = Workloads(plane, WORKLOADS)
    yield workloads
    workloads.delete()


@pytest.fixture(scope="module")
def memory_at_first(remote: Operator, workloads: Workloads) -> int:
    """Its memory once all workloads have been scaled, before any fault."""
    workloads.stands(workloads.recommend_next())
    return memory(remote)


@pytest.fixture(scope="module")
def elsewhere(line: Proxy) -> Iterator[Wire]:
    """An address that no client has been given."""
    with Wire(line.address) as wire:
        yield wire


def open_files(operator: Operator) -> int:
    """Sockets and other files that it has open."""
    return len(list(Path(f"/proc/{operator.process.pid}/fd").iterdir()))


def memory(operator: Operator) -> int:
    """Its resident memory in bytes."""
    return int(operator.metric("process_resident_memory_bytes"))


def watching(line: Proxy) -> None:
    wait_for(lambda: len(line.open_watches) == WATCHES, 90, lambda: f"watches, not {line.open_watches}", 0.03)


def await_hits(line: Proxy, faults: list[Fault]) -> None:
    """Wait until all faults have hit. A watch that the operator gives up just as it expires goes on as a watch,
    and there is no list: it expires again."""

    def all_have() -> bool:
        return all(fault.hits == fault.times for fault in faults)

    for _ in range(8):
        with contextlib.suppress(TimeoutError):
            wait_for(all_have, 3 * SILENCE, interval=0.03)
            return
        line.expire_watches()
    raise TimeoutError(f"faults: {faults}")


def has_no_error(scenario: Scenario) -> bool:
    return "lastError" not in scenario.status


@pytest.mark.usefixtures("memory_at_first")
@pytest.mark.parametrize("name", OUTAGES)
def test_all_are_scaled_once_each_in_spite_of(
    line: Proxy, workloads: Workloads, elsewhere: Wire, remote: Operator, name: str
) -> None:
    watching(line)
    faults = OUTAGES[name](line, elsewhere.address)
    mark = workloads.recommend_next()
    await_hits(line, faults)
    workloads.stands(mark)
    assert elsewhere.accepted == 0, "a token was carried to another address"
    assert remote.probe("healthz") == 200


def test_on_a_line_that_is_dead_but_open_watches_and_writes_are_given_up_and_made_anew(
    line: Proxy, wire: Wire, workloads: Workloads, remote: Operator
) -> None:
    """Writes that were under way are carried out, and their answers never arrive."""
    if reason := why_not():
        pytest.skip(reason)
    watching(line)
    hold = line.hold(verb="patch", path="/deployments/", times=None)
    mark = workloads.recommend_next()
    hold.wait()
    with wire.dead():
        hold.release()
        time.sleep(SILENCE + 1)
    workloads.stands(mark)
    for scenario in workloads.scenarios:
        scenario.soon(partial(has_no_error, scenario), "no error any more")


def test_after_all_of_this_it_holds_no_more_than_before(
    remote: Operator, at_first: int, memory_at_first: int
) -> None:
    wait_for(
        lambda: open_files(remote) <= at_first, 120, lambda: f"{at_first} files, not {open_files(remote)}"
    )
    grown = (memory(remote) - memory_at_first) / 2**20
    assert grown < MEGABYTES
    wait_for(lambda: remote.metric("hvpa_queue_depth") == 0, 60, "an empty queue")
