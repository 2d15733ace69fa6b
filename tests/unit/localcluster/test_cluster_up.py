"""What `make cluster-up` prints can be followed: each command, file and target in it is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from localcluster import __main__ as command_line
from localcluster.controlplane.keeper import KeeperError
from localcluster.node import node

ROOT = Path(__file__).resolve().parents[3]
STEPS = command_line.NEXT_STEPS
STATE = {"kubeconfig": "/a folder/kubeconfig", "programs": "/programs"}


def test_a_shell_finds_the_cluster_its_kubectl_and_hvpa() -> None:
    script = "; ".join([*command_line.exports(STATE, Path("/helm's")), 'echo "$KUBECONFIG|$PATH"'])
    printed = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    kubeconfig, _, path = printed.partition("|")
    assert kubeconfig == "/a folder/kubeconfig"
    assert path.split(":")[:3] == ["/programs", str(Path(sys.executable).parent), "/helm's"]


def test_the_next_steps_name_targets_and_files_that_are_there() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make (?:-s )?([a-z-]+)", STEPS))
    assert named == {"cluster-env", "cluster-load", "cluster-down"}
    assert named <= targets
    files = re.findall(r"(?:config|examples)/\S+", STEPS)
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_the_tutorial_has_each_of_the_steps() -> None:
    page = (ROOT / "docs/tutorial.md").read_text()
    for line in STEPS.splitlines():
        if line.startswith("  "):
            assert line.partition("#")[0].strip() in page, line


class TestNodes:
    @pytest.fixture
    def able(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A machine that can run real nodes."""
        monkeypatch.setattr(node, "why_simulated", lambda: "")

    @pytest.fixture
    def image(self, tmp_path: Path) -> str:
        """A file in place of the operator's image."""
        file = tmp_path / "image.tar"
        file.touch()
        return str(file)

    @pytest.mark.parametrize("wanted", ["", "auto", "real"])
    def test_a_machine_that_can_has_real_ones(self, able: None, image: str, wanted: str) -> None:
        line = "real (kubelet, containerd, runc): pods are containers of this machine"
        assert command_line.which_nodes(wanted, image) == (True, line)
        assert command_line.which_nodes(wanted, "") == (True, line)

    def test_they_are_simulated_if_the_user_says_so(self, able: None, image: str) -> None:
        assert command_line.which_nodes("simulated", image) == (False, "simulated (KWOK): pods run nothing")

    def test_a_machine_that_can_not_says_why(self, monkeypatch: pytest.MonkeyPatch, image: str) -> None:
        monkeypatch.setattr(node, "why_simulated", lambda: "real nodes need Linux")
        for wanted in ("", "auto"):
            assert command_line.which_nodes(wanted, image) == (
                False,
                "simulated (KWOK): real nodes need Linux",
            )
        with pytest.raises(KeeperError, match=r"^NODES=real: real nodes need Linux$"):
            command_line.which_nodes("real", image)

    def test_without_the_image_it_says_how_to_make_it(self, able: None, tmp_path: Path) -> None:
        file = str(tmp_path / "none.tar")
        real, line = command_line.which_nodes("", file)
        assert real
        assert line.endswith(f"; {file} is missing, so the operator can't be a pod (make image)")

    @pytest.mark.parametrize("more", [["--nodes=real"], ["--bare"]])
    @pytest.mark.parametrize("size", ["--node-cpu=4", "--node-memory=8Gi"])
    def test_a_size_is_refused_unless_nodes_are_simulated(
        self, able: None, more: list[str], size: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert command_line.main(["up", size, *more]) == 1
        expected = "--node-cpu and --node-memory need simulated nodes (NODES=simulated)\n"
        assert capsys.readouterr().err == expected


def test_without_a_control_plane_a_command_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HVPA_CLUSTER_FOLDER", str(tmp_path))
    for command in ("env", "load --cpu 1", "operator"):
        assert command_line.main(shlex.split(command)) == 1
        assert capsys.readouterr().err == "no control plane runs; start one: make cluster-up\n"


def test_memory_is_refused_if_the_load_is_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Serving:
        def __init__(self, kubeconfig: Path) -> None:
            """No connection."""

        def list(self, *where: str) -> list[object]:
            return [{"spec": {"containers": [{"name": "web", "ports": [{"containerPort": 18080}]}]}}]

    state = {"kubeconfig": str(tmp_path / "kubeconfig"), "real": True}
    monkeypatch.setattr(command_line, "_running", lambda: state)
    monkeypatch.setattr(command_line, "KubeApi", Serving)
    assert command_line.main(["load", "--cpu", "400m", "--memory", "1Gi"]) == 1
    assert capsys.readouterr().err.startswith("--memory: pods that serve HTTP hold memory for each request")
