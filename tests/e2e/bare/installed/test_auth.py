"""Credentials that end while the operator runs: exec plugins and token files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.client.exec_plugin import ExecPlugin
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, SERVICE_ACCOUNT
from localcluster.proxy.proxy import Proxy
from tests.e2e.bare.conftest import NewScenario, Start

LONG = 900
"""Seconds: a token's life that no test sees the end of."""


@pytest.fixture
def line(plane: ControlPlane) -> Iterator[Proxy]:
    """One for each test, since refusals are counted."""
    with plane.proxy() as proxy:
        yield proxy


@pytest.fixture
def tokens(plane: ControlPlane) -> list[str]:
    """Two tokens of the operator's account."""
    return [plane.service_account_token(NAMESPACE, SERVICE_ACCOUNT, seconds) for seconds in (900, 1800)]


def refusals(line: Proxy) -> int:
    return sum(request.code == 401 for request in line.answered)


def test_a_token_that_is_refused_is_had_anew_from_the_exec_plugin(
    line: Proxy, new_scenario: NewScenario, start: Start, space: str, tokens: list[str], tmp_path: Path
) -> None:
    plugin = ExecPlugin(tmp_path, tokens[0], LONG)
    operator = start("--namespace", space, kubeconfig=line.kubeconfig_with(plugin.user()))
    scenario = new_scenario()
    scenario.scales()
    assert plugin.calls == 1
    plugin.answer(tokens[1], LONG)
    line.reject_token(tokens[0])
    line.cut_watches()
    scenario.scales()
    assert plugin.calls == 2
    assert refusals(line) >= 1
    # A plugin that fails is asked again until it gives a token that is taken.
    plugin.fail()
    line.reject_token(tokens[1])
    calls, wanted = plugin.calls, scenario.replicas + 2
    scenario.hpa_wants(wanted)
    wait_for(lambda: plugin.calls > calls, 60, "the plugin is asked")
    assert operator.process.alive
    assert scenario.replicas < wanted
    line.clear()
    plugin.answer(tokens[0], LONG)
    scenario.await_replicas(wanted)


def test_a_token_is_renewed_before_it_ends(
    line: Proxy, new_scenario: NewScenario, start: Start, space: str, tokens: list[str], tmp_path: Path
) -> None:
    plugin = ExecPlugin(tmp_path, tokens[0], lifetime=4)
    plugin.then(tokens[1], LONG)
    start("--namespace", space, kubeconfig=line.kubeconfig_with(plugin.user()))
    scenario = new_scenario(changes={"vpa": None, "hpa": {"scaleUp": {"stabilizationDuration": "4s"}}})
    scenario.scales()
    scenario.scales()  # four seconds later
    other = new_scenario()
    assert plugin.calls == 2
    assert refusals(line) == 0
    line.reject_token(tokens[0])
    line.cut_watches()
    other.scales()
    assert plugin.calls == 2
    assert refusals(line) == 0


def test_a_token_file_that_was_replaced_is_read_again(
    line: Proxy, new_scenario: NewScenario, start: Start, space: str, tokens: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(tokens[0])
    start("--namespace", space, kubeconfig=line.kubeconfig_with({"tokenFile": str(file)}))
    scenario = new_scenario()
    scenario.scales()
    file.write_text(tokens[1])
    line.reject_token(tokens[0])
    scenario.scales()
    assert refusals(line) <= 10
