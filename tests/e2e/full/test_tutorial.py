"""docs/tutorial.md: the page's own commands, all of them and in their order, as a new user types them, and what the
page says comes true within the minutes that it says. The load begins at once here; for one that begins later, and for
what takes longer, see tests/unit/closed_loop/test_tutorial.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import KubeApi, wait_for
from localcluster.controlplane.manifests import CPU_ANNOTATION
from tests.e2e.full import objects
from tests.e2e.full.shells import ROOT, Shells, blocks

pytestmark = pytest.mark.owned_cluster

PAGE = (ROOT / "docs/tutorial.md").read_text()
START, LOAD, WATCH, ASK, RECOMMEND, MORE_LOAD, APPLY, PAUSE, AWAY, BY_HAND = blocks(PAGE)
(RESULT,) = re.findall(r"Within (\w+) minutes there are (\d+) pods of (\d+)m", " ".join(PAGE.split()))
SHOWN = (int(RESULT[1]), int(RESULT[2]))
"""Replicas and millicores."""
SECONDS = 60 * {"two": 2, "three": 3}[RESULT[0]]
(BY_HAND_CPU,) = re.findall(r"usage-cpu=(\w+)", BY_HAND)
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shells]:
    """Shells after the page's first block: a control plane runs, an operator, and the sample is applied."""
    shell = Shells(tmp_path)
    first = shell.start("start", START + "\necho all is applied\nwait")
    try:
        wait_for(lambda: "all is applied" in first.tail(3), 120, first.tail)
        yield shell
    finally:
        first.kill()
        shell.run("make cluster-down")


@pytest.mark.timeout(900)  # two dozen commands, each of which may wait for a busy machine
def test_the_page_keeps_its_word(shell: Shells) -> None:
    """The load is served by more pods in the time that the page says, and no pod is replaced by one of another size;
    the modes do what the page says, and all that the Hvpa made is gone with it."""
    (kubeconfig,) = re.findall(r"KUBECONFIG=(\S+)", shell.run("make -s cluster-env"))
    api = KubeApi(Path(kubeconfig))

    def pods() -> tuple[int, int]:
        """How many are ready, and of how many millicores the template makes them."""
        status = api.get("Deployment", "web", "default")["status"]
        return int(status["readyReplicas"]), objects.resources(api, "web", "default")[0]

    def hvpa() -> tuple[str, int, int]:
        """Mode, and the columns CURRENT and DESIRED."""
        found = api.get("Hvpa", "web", "default")
        status = found["status"]
        return found["spec"]["mode"], status["replicas"], status["recommended"]["replicas"]

    def usages() -> set[str]:
        """What the pods are said to use."""
        return {
            one["metadata"]["annotations"][CPU_ANNOTATION] for one in api.list("Pod", "default", "app=web")
        }

    with shell.started("load", LOAD), shell.started("watch", ENVIRONMENT + WATCH) as watch:
        wait_for(lambda: pods() == SHOWN, SECONDS, lambda: f"{SHOWN}; there are {pods()}", interval=0.5)
        wait_for(lambda: f"{SHOWN[0]}, {SHOWN[0]} ready" in watch.tail(40), 30, watch.tail)
        seen = shell.run(ENVIRONMENT + ASK)
        shell.run(ENVIRONMENT + RECOMMEND)
    for kind in ("hvpa", "horizontalpodautoscaler", "verticalpodautoscaler", "deployment"):
        assert re.search(rf"^{kind}\S*/web ", seen, re.MULTILINE), seen
    assert "Conditions" in seen
    with shell.started("more load", MORE_LOAD):
        wait_for(lambda: hvpa()[2] > SHOWN[0], 60, lambda: str(hvpa()))
        assert hvpa()[:2] == ("Recommend", SHOWN[0])
        shell.run(ENVIRONMENT + APPLY)
        wait_for(lambda: pods()[0] > SHOWN[0], 60, lambda: str(pods()))
        shell.run(ENVIRONMENT + PAUSE)
        assert hvpa()[0] == "Apply"
    shell.run(ENVIRONMENT + BY_HAND)
    assert usages() == {BY_HAND_CPU}
    assert len(api.list("ReplicaSet", "default", "app=web")) == 1
    *delete, crd, last = AWAY.splitlines()
    assert last == "make cluster-down"  # as the fixture does
    count = pods()[0]
    shell.run(ENVIRONMENT + "\n".join(delete))
    made = ("HorizontalPodAutoscaler", "VerticalPodAutoscaler")
    wait_for(
        lambda: not any(api.list(kind, "default") for kind in made), 60, "the HPA or the VPA is still there"
    )
    assert pods()[0] == count
    shell.run(ENVIRONMENT + crd)
