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
(FIRST,) = re.findall(r"Within two minutes there are (\d+) pods of (\d+)m again", WORDS)
MINUTE: Final = 60
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)
(BY_HAND_CPU,) = re.findall(r"usage-cpu=(\w+)", BY_HAND)
Sizes = list[int]
"""Millicores of the ready pods, according to their kubelets."""


class Tutorial:
    """The reader's shells, and what there is in the cluster."""

    def __init__(self, shells: Shells, nodes: str) -> None:
        self.shells, self.nodes = shells, nodes
        (kubeconfig,) = re.findall(r"KUBECONFIG=(\S+)", shells.run("make -s cluster-env"))
        self.api = KubeApi(Path(kubeconfig))

    def type(self, block: str) -> str:
        """What the commands of a block print."""
        return self.shells.run(ENVIRONMENT + block)

    def pods(self) -> list[Json]:
        """The pods of the workload."""
        return self.api.list("Pod", "default", "app=web")

    def sizes(self) -> Sizes:
        """The sizes of the ready pods."""
        statuses = [one for pod in self.pods() for one in pod["status"].get("containerStatuses", ())]
        return [parse_cpu(one["resources"]["requests"]["cpu"]) for one in statuses if one["ready"]]

    def restarts(self) -> int:
        """The restarts of all containers."""
        return sum(one["restartCount"] for pod in self.pods() for one in pod["status"]["containerStatuses"])

    def hvpa(self) -> tuple[str, int, int]:
        """Mode, and the columns CURRENT and DESIRED."""
        found = self.api.get("Hvpa", "web", "default")
        status = found["status"]
        return found["spec"]["mode"], status["replicas"], status["recommended"]["replicas"]

    def quotas(self) -> dict[str, int]:
        """The quotas of the running containers, by the folder of each, as the page's command prints them."""
        (owner,) = self.shells.owners()
        command = QUOTAS.replace("hvpa-node-*", f"hvpa-node-{owner}-*").replace("-hv", "-Hv")
        assert command.count(f"-{owner}-") == command.count("-Hv") == 1
        return {
            folder: int(quota)
            for folder, _, quota in (one.rpartition(":") for one in self.type(command).split())
        }


@pytest.fixture(params=["simulated", "real"])
def tutorial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tutorial]:
    """Shells after the page's first block: a control plane runs, an operator, and the sample is applied."""
    if request.param == "real" and (reason := why_simulated()):
        pytest.skip(reason)
    shells = Shells(tmp_path, NODES=request.param)
    with shells.started("first", START + "\necho all is applied\nwait") as first:
        try:
            wait_for(lambda: "all is applied" in first.tail(3), 4 * MINUTE, first.tail)
            assert f"nodes: {request.param}" in first.log.read_text()
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
    if tutorial.nodes == "simulated":
        tutorial.type(BY_HAND)
        assert {one["metadata"]["annotations"][CPU_ANNOTATION] for one in tutorial.pods()} == {BY_HAND_CPU}
    assert len(tutorial.api.list("ReplicaSet", "default", "app=web")) == 1
    remove(tutorial)


def grow(tutorial: Tutorial) -> None:
    """The load is served by more and larger pods; on a real node, the kernel grants more to running containers."""
    real = tutorial.nodes == "real"
    least, size = map(int, GROWN)
    wait_for(lambda: tutorial.sizes() == [int(FIRST[1])] * int(FIRST[0]), MINUTE, "the first pods are ready")
    before = tutorial.quotas() if real else {}
    with (
        tutorial.shells.started("load", LOAD) as load,
        tutorial.shells.started("watch", ENVIRONMENT + WATCH) as watch,
    ):
        wait_for(
            lambda: len(found := tutorial.sizes()) >= least and min(found) >= size,
            2 * MINUTE,
            lambda: f"{least} pods of {size}m, not {tutorial.sizes()}: {load.tail(5)}",
            interval=0.5,
        )
        assert re.search(r"Replicas +\d+, \d+ ready", watch.tail(40))
        if real:
            after = tutorial.quotas()
            assert len(before) == int(FIRST[0])
            assert all(after[one] > before[one] for one in before), (before, after)
            wait_for(
                lambda: re.search(r"[1-9]\d* requests, \d+ failed; P50 \d+ ms", load.tail(2)), 10, load.tail
            )
        assert tutorial.type(GET_PODS).count(" 0 ") == len(tutorial.pods())
        seen = tutorial.type(ASK)
        tutorial.type(RECOMMEND)
    for kind in ("hvpa", "horizontalpodautoscaler", "verticalpodautoscaler", "deployment"):
        assert re.search(rf"^{kind}\S*/web ", seen, re.MULTILINE), seen
    assert "Conditions" in seen


def change_the_mode(tutorial: Tutorial) -> None:
    """Nothing is added until the Hvpa may act; under the small load, all is as in the beginning."""
    _, count, _ = tutorial.hvpa()
    with tutorial.shells.started("more load", MORE_LOAD):
        wait_for(lambda: tutorial.hvpa()[2] > count, MINUTE, lambda: str(tutorial.hvpa()))
        assert tutorial.hvpa()[:2] == ("Recommend", count)
        tutorial.type(APPLY)
        wait_for(lambda: len(tutorial.sizes()) > count, MINUTE, lambda: str(tutorial.sizes()))
        tutorial.type(PAUSE)
        assert tutorial.hvpa()[0] == "Apply"
    first = [int(FIRST[1])] * int(FIRST[0])
    with tutorial.shells.started("small load", SMALL_LOAD):
        wait_for(lambda: tutorial.sizes() == first, 2 * MINUTE, lambda: f"{first}, not {tutorial.sizes()}")
    assert tutorial.restarts() == 0


def remove(tutorial: Tutorial) -> None:
    """Only the workload stays."""
    *delete, crd, last = REMOVE.splitlines()
    assert last == "make cluster-down"  # as the fixture does
    count = len(tutorial.pods())
    tutorial.type("\n".join(delete))
    made = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler")
    wait_for(
        lambda: not any(tutorial.api.list(kind, "default") for kind in made),
        MINUTE,
        "the HPA and the VPA are gone",
    )
    assert len(tutorial.sizes()) == count
    tutorial.type(crd)
