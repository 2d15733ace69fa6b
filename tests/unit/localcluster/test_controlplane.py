"""A control plane that can't start, or can't end all of its programs, reports it, and leaves as little as possible."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localcluster.client import rights
from localcluster.controlplane import controlplane
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.node import cgroups
from localcluster.owner import name_of
from localcluster.programs.build import Programs

MIB = 2**20
GONE = 2**22 + 1
"""The number of no process: larger than the kernel's largest."""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary folders, and no cgroups."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cgroups, "ROOT", tmp_path / "none")
    return tmp_path


def plane(**options: Any) -> ControlPlane:
    """A bare control plane, if nothing else is given, whose programs end at once."""
    programs = {name: Path("/bin/false") for name in ("etcd", "kube-apiserver", "kubectl")}
    return ControlPlane(programs=Programs(programs, {}), **{"full": False, **options})


def test_if_it_does_not_start_it_leaves_no_folder(temporary: Path) -> None:
    cluster = plane()
    assert [cluster.folder] == list(temporary.iterdir())
    with pytest.raises(RuntimeError, match="kube-apiserver ended with 1"), cluster:
        pass
    assert not cluster.folder.exists()


@pytest.mark.parametrize("error", [OSError("no free port"), KeyboardInterrupt()])
def test_if_it_can_not_be_prepared_it_leaves_no_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail() -> int:
        raise error

    monkeypatch.setattr(controlplane, "free_port", fail)
    with pytest.raises(type(error)):
        plane()
    assert list(temporary.iterdir()) == []


class TestFullDisk:
    @pytest.fixture(autouse=True)
    def full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A disk with 255 MiB."""
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=255 * MIB))

    def test_it_is_reported_before_anything_is_written(self, temporary: Path) -> None:
        message = (
            f"the disk of {temporary} has 255 MiB left, and a control plane needs 256: set TMPDIR, "
            "or HVPA_CLUSTER_FOLDER for `make cluster-up`, to a folder with more"
        )
        with pytest.raises(RuntimeError) as raised:
            plane()
        assert str(raised.value) == message
        assert list(temporary.iterdir()) == []

    def test_each_real_node_needs_room_for_its_images(self, temporary: Path) -> None:
        image = temporary / "image.tar"
        with image.open("wb") as file:
            file.truncate(10 * MIB)
        settings = AutoscalerSettings(real_nodes=2)
        with pytest.raises(RuntimeError, match=f"needs {256 + 2 * (64 + 10)}:"):
            plane(full=True, nodes="real", settings=settings, images=[image])


def test_folders_of_killed_runs_are_removed(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = temporary / f"{name_of('hvpa-cluster', GONE, '1')}-abc"
    (left / "pki").mkdir(parents=True)
    one, other = plane(), plane()
    assert sorted(temporary.iterdir()) == sorted([one.folder, other.folder])
    assert capsys.readouterr().err == f"removed leftovers of killed runs: {left}\n"


def test_if_a_program_does_not_end_the_others_do(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = []

    def stay() -> None:
        raise subprocess.TimeoutExpired("kubelet", 60)

    cluster = plane()
    monkeypatch.setattr(
        cluster,
        "processes",
        {
            "etcd": SimpleNamespace(kill=lambda: ended.append("etcd"), alive=False),
            "node 127.0.0.1": SimpleNamespace(kill=stay, alive=True, pid=7),
        },
    )
    cgroup = Path("/sys/fs/cgroup/cpu/hvpa-node-1-2-127.0.0.1")
    monkeypatch.setattr(cluster, "nodes", [SimpleNamespace(remove_cgroups=lambda: [cgroup])])
    cluster.stop()
    assert ended == ["etcd"]
    assert capsys.readouterr().err == (
        f"the control plane has ended, and has left node 127.0.0.1 (process 7), {cgroup}\n"
    )
    assert not cluster.folder.exists()


def test_the_folder_goes_even_if_no_summary_can_be_written(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("full")

    cluster = plane()
    monkeypatch.setattr(rights, "leave", fail)
    monkeypatch.setenv(rights.VARIABLE, str(temporary))
    with pytest.raises(OSError, match="full"):
        cluster.stop()
    assert not cluster.folder.exists()
