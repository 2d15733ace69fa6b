"""docs/tutorial.md: the page's own commands, all of them and in their order, as a new user types them, and what the
page says comes true within the minutes that it says. Once on simulated nodes, and once on a real one if the machine
can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.manifests import CPU_ANNOTATION
from localcluster.node.node import why_simulated
from tests.e2e.full.shells import ROOT, Shells, blocks

pytestmark = pytest.mark.owned_cluster

PAGE: Final = (ROOT / "docs/tutorial.md").read_text()
START, QUOTAS, LOAD, WATCH, GET_PODS, ASK, *_MODES, REMOVE, BY_HAND = blocks(PAGE)
RECOMMEND, MORE_LOAD, APPLY, PAUSE, SMALL_LOAD = _MODES
WORDS: Final = " ".join(PAGE.split())
(GROWN,) = re.findall(r"Within two minutes there are (\d+) pods or more, each of at least (\d+)m", WORDS)
(LAST,) = re.findall(r"Within three minutes there are (\d+) pods of (\d+)m to (\d+)m again", WORDS)
FIRST: Final = [int(LAST[1])] * int(LAST[0])
MINUTE: Final = 60
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)
(BY_HAND_CPU,) = re.findall(r"usage-cpu=(\w+)", BY_HAND)
Sizes = list[int]
"""Millicores of the ready pods, according to their kubelets."""


class Tutorial:
    """The reader's shells, and what there is in the cluster."""

    def __init__(self, shells: Shells, nodes: str) -> None:
        self.shells, self.nodes = shells, nodes
        self.api = KubeApi(Path(shells.env["KUBECONFIG"]))

    def pods(self) -> list[Json]:
        """The pods of the workload."""
        return self.api.list("Pod", "default", "app=web")

    def sizes(self) -> Sizes:
        """The sizes of the ready pods."""
        statuses = [status for pod in self.pods() for status in pod["status"].get("containerStatuses", ())]
        return [parse_cpu(status["resources"]["requests"]["cpu"]) for status in statuses if status["ready"]]

    def replicas(self) -> int:
        """How many pods the workload has been scaled to."""
        return int(self.api.get("Deployment", "web", "default")["spec"]["replicas"])

    def restarts(self) -> int:
        """The restarts of all containers."""
        return sum(
            status["restartCount"] for pod in self.pods() for status in pod["status"]["containerStatuses"]
        )

    def hvpa(self) -> tuple[str, int, int]:
        """Mode, and the columns CURRENT and DESIRED."""
        hvpa = self.api.get("Hvpa", "web", "default")
        status = hvpa["status"]
        return hvpa["spec"]["mode"], status["replicas"], status["recommended"]["replicas"]

    def quotas(self) -> dict[str, int]:
        """The quotas of the running containers, by the folder of each, as the page's command prints them; none on
        simulated nodes."""
        if self.nodes == "simulated":
            return {}
        (owner,) = self.shells.owners()
        command = QUOTAS.replace("hvpa-node-*", f"hvpa-node-{owner}-*").replace("-hv", "-Hv")
        assert command.count(f"-{owner}-") == command.count("-Hv") == 1
        return {
            folder: int(quota)
            for folder, _, quota in (line.rpartition(":") for line in self.shells.run(command).split())
        }


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.at_length)])
def tutorial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tutorial]:
    """Shells after the page's first block: a control plane runs, an operator, and the sample is applied."""
    if request.param == "real" and (reason := why_simulated()):
        pytest.skip(reason)
    shells = Shells(tmp_path, NODES=request.param)
    with shells.started("first", START + "\necho all is applied\nwait") as first:
        try:
            wait_for(lambda: "all is applied" in first.tail(3), 4 * MINUTE, first.tail)
            assert f"nodes: {request.param}" in first.log.read_text()
            shells.settle(ENVIRONMENT)
            yield Tutorial(shells, request.param)
        finally:
            first.kill()
            shells.end("make cluster-down")


@pytest.mark.timeout(900)  # two dozen commands, each of which may wait for a busy machine
def test_the_page_keeps_its_word(tutorial: Tutorial) -> None:
    """Pods are added and grow under the load without a restart, the modes do what the page says, the workload returns
    to its first size, and all that the Hvpa made is gone with it."""
    grow(tutorial)
    change_the_mode(tutorial)
    shrink(tutorial)
    assert len(tutorial.api.list("ReplicaSet", "default", "app=web")) == 1
    remove(tutorial)
    if tutorial.nodes == "simulated":
        tutorial.shells.run(BY_HAND)
        assert {pod["metadata"]["annotations"][CPU_ANNOTATION] for pod in tutorial.pods()} == {BY_HAND_CPU}


def grow(tutorial: Tutorial) -> None:
    """The load is served by more and larger pods; on a real node, the kernel grants more to running containers."""
    least, size = map(int, GROWN)
    wait_for(lambda: tutorial.sizes() == FIRST, MINUTE, "the first pods are ready")
    before = tutorial.quotas()
    with (
        tutorial.shells.started("load", LOAD) as load,
        tutorial.shells.started("watch", WATCH) as watch,
    ):
        wait_for(
            lambda: len(sizes := tutorial.sizes()) >= least and min(sizes) >= size,
            2 * MINUTE,
            lambda: f"{least} pods of {size}m, not {tutorial.sizes()}: {load.tail(5)}",
            interval=0.5,
        )
        wait_for(lambda: re.search(r"Replicas +\d+, \d+ ready", watch.tail()), MINUTE / 2, watch.tail)
        if tutorial.nodes == "real":
            after = tutorial.quotas()
            assert len(before) == len(FIRST)
            assert all(after[folder] > before[folder] for folder in before), (before, after)
            wait_for(
                lambda: re.search(r"[1-9]\d* requests, \d+ failed; P50 \d+ ms", load.tail(2)), 10, load.tail
            )
        _, *rows = tutorial.shells.run(GET_PODS).splitlines()
        assert {row.split()[3] for row in rows} == {"0"}, rows  # RESTARTS
        output = tutorial.shells.run(ASK)
        tutorial.shells.run(RECOMMEND)
    for kind in ("hvpa", "horizontalpodautoscaler", "verticalpodautoscaler", "deployment"):
        assert re.search(rf"^{kind}\S*/web ", output, re.MULTILINE), output
    assert "Conditions" in output


def change_the_mode(tutorial: Tutorial) -> None:
    """Nothing is added until the Hvpa may act."""
    _, count, _ = tutorial.hvpa()
    with tutorial.shells.started("more load", MORE_LOAD):
        wait_for(lambda: tutorial.hvpa()[2] > count, MINUTE, lambda: str(tutorial.hvpa()))
        assert tutorial.hvpa()[:2] == ("Recommend", count)
        tutorial.shells.run(APPLY)
        wait_for(lambda: len(tutorial.sizes()) > count, MINUTE, lambda: str(tutorial.sizes()))
        tutorial.shells.run(PAUSE)
        assert tutorial.hvpa()[0] == "Apply"


def shrink(tutorial: Tutorial) -> None:
    """Under the small load, the workload returns to its first size. The last step takes a minute more, so the test on a
    real node waits only for the first steps: fewer pods, and running containers that get less of the kernel."""
    before, quotas = tutorial.sizes(), tutorial.quotas()

    def returned() -> bool:
        sizes = tutorial.sizes()
        if tutorial.nodes == "real":
            kept = {folder: quota for folder, quota in tutorial.quotas().items() if folder in quotas}
            return len(sizes) < len(before) and all(quota < quotas[folder] for folder, quota in kept.items())
        return len(sizes) == len(FIRST) and max(sizes) <= int(LAST[2])

    with tutorial.shells.started("small load", SMALL_LOAD):
        wait_for(returned, 3 * MINUTE, lambda: f"{FIRST}, not {tutorial.sizes()}", interval=0.5)
    assert tutorial.restarts() == 0


def remove(tutorial: Tutorial) -> None:
    """Only the workload stays."""
    *delete, crd, last = REMOVE.splitlines()
    assert last == "make cluster-down"  # as the fixture does
    tutorial.shells.run("\n".join(delete))
    made = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler")
    wait_for(
        lambda: not any(tutorial.api.list(kind, "default") for kind in made),
        MINUTE,
        "the HPA and the VPA are gone",
    )
    wait_for(
        lambda: len(tutorial.sizes()) == tutorial.replicas(), MINUTE, "all pods of the workload are ready"
    )
    tutorial.shells.run(crd)
