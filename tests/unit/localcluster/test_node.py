"""What of a real node needs none: its image, its files, the machine that it needs, the cgroups that killed runs have
left."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from localcluster.client.pki import KeyPair
from localcluster.node import cgroups, node
from localcluster.node.config import INIT, PLUGIN, TUNABLES, Size
from localcluster.node.image import write_image
from localcluster.node.node import IN_IMAGE, PROGRAMS, Node
from localcluster.owner import name_of
from localcluster.process import _PORTS
from localcluster.programs.build import Programs

HIERARCHIES = ("cpu", "cpuset", "memory", "pids")
MODULES = {"os": os, "shutil": shutil, "sys": sys}
GONE = 2**22 + 1
"""The number of no process: larger than the kernel's largest."""


def test_an_image_is_what_its_digests_say_and_the_same_each_time(tmp_path: Path) -> None:
    program = tmp_path / "run"
    program.write_text("#!/bin/sh\n")
    image = write_image(tmp_path / "one.tar", "hvpa.test/a:2", {"run": program}, ["/bin/run"])
    program.touch()
    assert (
        write_image(tmp_path / "two.tar", "hvpa.test/a:2", {"run": program}, ["/bin/run"]).read_bytes()
        == image.read_bytes()
    )
    with tarfile.open(image) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]
    blobs = {name.rpartition("/")[2]: content for name, content in files.items() if name.startswith("blobs/")}
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in blobs.items())
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "hvpa.test/a:2"
    manifest = json.loads(blobs[entry["digest"][7:]])
    assert json.loads(blobs[manifest["config"]["digest"][7:]])["config"]["Entrypoint"] == ["/bin/run"]
    layer = blobs[manifest["layers"][0]["digest"][7:]]
    packed = tmp_path / "layer.tar.gz"
    packed.write_bytes(layer)
    with tarfile.open(packed) as tar:
        assert "bin/run" in tar.getnames()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cgroup v1 as folders."""
    for name in HIERARCHIES:
        (tmp_path / name).mkdir()
    (tmp_path / "unified").mkdir()
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def links(root: Path) -> Path:
    """Cgroup v1 as systemd mounts it: two controllers in one hierarchy, and a link for each."""
    (root / "cpu").rename(root / "cpu,cpuacct")
    for name in ("cpu", "cpuacct"):
        (root / name).symlink_to("cpu,cpuacct")
    return root


@pytest.fixture
def able(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that can run a real node."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(node, "node_needs_compiler", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(root))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", ""))
    return root


class TestWhyNot:
    def test_nothing_stands_in_the_way(self, able: Path) -> None:
        assert node.why_not() == ""

    @pytest.mark.parametrize(
        ("module", "name", "value", "said"),
        [
            ("sys", "platform", "darwin", "real nodes need Linux"),
            ("os", "geteuid", lambda: 1000, "real nodes need root (cgroups and mounts)"),
            ("shutil", "which", lambda name: None, "real nodes need unshare and gcc"),
        ],
    )
    def test_it_names_what_is_missing(
        self, able: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, value: object, said: str
    ) -> None:
        monkeypatch.setattr(MODULES[module], name, value)
        assert node.why_not() == said

    @pytest.mark.parametrize(("needs_it", "reason"), [(True, "real nodes need gcc"), (False, "")])
    def test_a_compiler_is_needed_only_to_build(
        self, able: Path, monkeypatch: pytest.MonkeyPatch, needs_it: bool, reason: str
    ) -> None:
        monkeypatch.setattr(shutil, "which", lambda name: None if name == "gcc" else name)
        monkeypatch.setattr(node, "node_needs_compiler", lambda: needs_it)
        assert node.why_not() == reason

    def test_programs_that_the_node_would_not_find(self, able: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "/var/lib/ci")
        assert node.why_not() == (
            "real nodes have their own /run, /var/log, /var/lib: /var/lib/ci/hvpa must be elsewhere"
        )

    def test_hierarchies_may_be_links(self, able: Path, links: Path) -> None:
        assert node.why_not() == ""

    def test_it_names_the_hierarchies_that_are_missing(self, able: Path) -> None:
        (able / "memory").rmdir()
        assert node.why_not() == f"real nodes need cgroup v1, with memory in {able}"

    def test_cgroup_v2_alone_will_not_do(self, able: Path) -> None:
        (able / "cgroup.controllers").touch()
        assert node.why_not() == f"real nodes need cgroup v1, with cpu, cpuset, memory, pids in {able}"

    def test_it_gives_the_reason_why_namespaces_are_refused(
        self, able: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused = subprocess.CompletedProcess([], 1, "", "unshare failed: Operation not permitted\n")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
        assert node.why_not() == (
            "real nodes need namespaces of their own: unshare failed: Operation not permitted"
        )

    def test_cgroups_that_can_not_be_written(self, able: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)
        assert node.why_not() == f"real nodes need to write {able}"


class TestCgroups:
    def test_what_is_granted_is_read_from_their_files(self, root: Path) -> None:
        files = {
            "cpu/cpu.shares": "102",
            "cpu/cpu.cfs_quota_us": "-1",
            "memory/memory.limit_in_bytes": "134217728",
            "memory/memory.usage_in_bytes": "4096",
        }
        for name, text in files.items():
            (root / name).write_text(f"{text}\n")
        grant = cgroups.granted(root / "cpu", root / "memory")
        assert grant == cgroups.Granted(102, -1, 134217728, 4096)

    def test_they_are_made_with_a_share_of_the_machine_and_removed(self, root: Path) -> None:
        (root / "cpuset" / "cpuset.cpus").write_text("0-1")
        name = cgroups.name_of("127.0.0.1")
        for part in (name, f"{name}/system"):
            (root / "cpuset" / part).mkdir(parents=True)
            (root / "cpuset" / part / "cpuset.cpus").touch()
        cgroups.make(name)
        assert (root / "cpuset" / name / "system" / "cpuset.cpus").read_text() == "0-1"
        assert (root / "memory" / name / "system").is_dir()
        for file in list(root.glob(f"cpuset/{name}/**/cpuset.cpus")):
            file.unlink()
        assert cgroups.remove(name) == []
        assert not list(root.glob(f"*/{name}"))

    def test_a_hierarchy_with_two_names_has_one(self, links: Path) -> None:
        assert [path.name for path in cgroups.hierarchies()] == ["cpu,cpuacct", "cpuset", "memory", "pids"]
        (links / "cpu" / "a" / "system").mkdir(parents=True)
        (links / "cpu" / "a" / "cpu.shares").touch()
        cgroups.make("a")
        assert (links / "cpuacct" / "a" / "cpu.shares").read_text() == str(cgroups.CPU_SHARES)
        (links / "cpu" / "a" / "cpu.shares").unlink()
        assert cgroups.remove("a") == []
        assert not (links / "cpu,cpuacct" / "a").exists()

    def test_those_of_killed_runs_are_removed_and_those_of_others_stay(self, root: Path) -> None:
        names = [
            f"{name_of('hvpa-node', GONE, '1')}-127.0.0.1",
            cgroups.name_of("127.0.0.1"),
            "hvpa-node-mine",
            "kubepods",
        ]
        for name in names:
            (root / "cpu" / name).mkdir()
        assert cgroups.remove_stale() == names[:1]
        assert sorted(path.name for path in (root / "cpu").iterdir()) == sorted(names[1:])


def test_each_setting_that_the_kubelet_would_write_has_a_file_in_its_place() -> None:
    assert all(name in INIT for name in TUNABLES)


@pytest.mark.parametrize(("cores", "reserved"), [(1, "500m"), (2, "500m"), (3, "1500m"), (64, "62500m")])
def test_pods_may_request_1500m_on_any_machine(
    monkeypatch: pytest.MonkeyPatch, cores: int, reserved: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert Size().cpu == reserved


class TestFiles:
    @staticmethod
    def node_in(state: Path, programs: Path) -> Node:
        paths = {name: programs / name for name in (*PROGRAMS, *IN_IMAGE)}
        kubeconfig, key = programs / "kubeconfig", programs / "key"
        return Node("127.0.0.1", state, Programs(paths, {}), kubeconfig, key, KeyPair(key, key))

    @pytest.fixture
    def programs(self, tmp_path: Path) -> Path:
        """Programs, and the other files that a node needs, all empty."""
        folder = tmp_path / "programs"
        folder.mkdir()
        for name in (*PROGRAMS, *IN_IMAGE, "kubeconfig", "key"):
            (folder / name).touch()
        return folder

    def test_every_registry_is_a_port_of_loopback_where_nothing_listens(
        self, tmp_path: Path, programs: Path
    ) -> None:
        state = self.node_in(tmp_path / "state", programs).state
        plugins = tomllib.loads((state / "containerd.toml").read_text())["plugins"]
        registry = plugins["io.containerd.cri.v1.images"]["registry"]
        (hosts,) = Path(registry["config_path"]).iterdir()
        assert hosts.name == "_default"
        assert tomllib.loads((hosts / "hosts.toml").read_text()) == {"server": "http://127.0.0.1:1"}

    def test_the_addresses_of_pods_follow_from_the_port_of_the_kubelet(
        self, tmp_path: Path, programs: Path
    ) -> None:
        made = self.node_in(tmp_path / "state", programs)
        port = yaml.safe_load((made.state / "kubelet.yaml").read_text())["port"]
        assert made.process.argv[-5:] == [str(made.state), made.cgroup, "127.0.0.1", str(port), "10s"]

    def test_a_folder_that_the_node_would_not_find_is_refused(self, programs: Path) -> None:
        with pytest.raises(
            RuntimeError, match=r"^real nodes have their own .*: /run/hvpa/a must be elsewhere$"
        ):
            self.node_in(Path("/run/hvpa/a"), programs)


@pytest.mark.parametrize(
    ("port", "first"),
    [(_PORTS[0], "127.1.0.1/8"), (_PORTS[1], "127.1.6.65/8"), (_PORTS[-1], "127.245.29.193/8")],
)
def test_each_pod_gets_an_address_of_its_own_on_loopback(tmp_path: Path, port: int, first: str) -> None:
    plugin = tmp_path / "addresses"
    plugin.write_text(PLUGIN)
    environment = {"PATH": os.environ["PATH"], "STATE": str(tmp_path / "state"), "PORT": str(port)}
    environment |= {"CNI_COMMAND": "ADD", "CNI_IFNAME": "eth0", "CNI_NETNS": "/run/netns/one"}
    answers = [
        json.loads(subprocess.run(["sh", plugin], env=environment, capture_output=True, check=True).stdout)
        for _ in range(3)
    ]
    addresses = [answer["ips"][0]["address"] for answer in answers]
    assert addresses[0] == first
    assert len({ipaddress.ip_interface(address) for address in addresses}) == 3
    assert answers[0]["interfaces"] == [{"name": "eth0", "sandbox": "/run/netns/one"}]
