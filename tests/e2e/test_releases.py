"""What `make release` builds: the same bytes in two folders, and each file works. Needs git, kubectl and Helm, and no
cluster."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from localcluster import oci
from localcluster.programs.build import kubernetes_version
from tests.e2e.chart.command import CHART, IMAGE, kustomize, succeed
from tests.e2e.chart.test_template import PROFILES
from tests.e2e.releasing import release, repository, run
from tools.dependencies.lockfile import ROOT, read_project
from tools.release import CHECKSUMS, SIGNATURE, SIGNED_AS

VERSION: Final = read_project().version
DATA: Final = {".css", ".js", ".json", ".yaml", ".typed"}
"""Kinds of files in the package that are no modules."""
OVERLAYS: Final = {"crd", *PROFILES}


class Releases(NamedTuple):
    """The same commit built in two folders."""

    source: Path
    first: dict[str, bytes]
    second: dict[str, bytes]

    def file(self, folder: Path, suffix: str) -> Path:
        """The one file of the first release that ends so, in a folder."""
        (name,) = (name for name in self.first if name.endswith(suffix))
        path = folder / name
        path.write_bytes(self.first[name])
        return path


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """A repository of what is here now, committed or not, and a clone of it with other modes and times; both built
    under another umask and in another time zone, one after the other."""
    folder = tmp_path_factory.mktemp("releases")
    here, there = folder / "here", folder / "a longer name" / "there"
    repository(here)
    run("git", "clone", "-q", str(here), str(there), cwd=here)
    for path in there.rglob("*.*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700)
    run("git", "config", "core.fileMode", "false", cwd=there)
    return Releases(
        here,
        release(here, here / "dist", umask=0o002, zone="Asia/Tokyo"),
        release(there, there / "dist", umask=0o077, zone="America/Lima"),
    )


def images(releases: Releases) -> set[str]:
    """The files that only machines with Debian's packages can build."""
    names = {f"hvpa-{VERSION}-image-{oci.architecture()}.{suffix}" for suffix in ("tar", "cdx.json")}
    return names & releases.first.keys()


def test_two_folders_give_the_same_bytes(releases: Releases) -> None:
    assert releases.first.keys() == {
        CHECKSUMS,
        f"hvpa-{VERSION}-py3-none-any.whl",
        f"hvpa-{VERSION}.tar.gz",
        f"hvpa-{VERSION}.tgz",
        f"hvpa-{VERSION}-bundle.tgz",
        f"hvpa-{VERSION}-chart.tar",
        f"hvpa-{VERSION}.cdx.json",
        *images(releases),
        *(f"hvpa-{VERSION}-{overlay}.yaml" for overlay in OVERLAYS),
    }
    assert [name for name, content in releases.first.items() if releases.second.get(name) != content] == []


def test_each_file_has_its_checksum(releases: Releases) -> None:
    lines = releases.first[CHECKSUMS].decode().splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert digests == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in releases.first.items()
        if name != CHECKSUMS
    }


def test_the_wheel_works_in_an_empty_environment(releases: Releases, tmp_path: Path) -> None:
    """Its dependencies are those of the tests, since nothing is downloaded."""
    venv.create(tmp_path / "venv", symlinks=True)
    python, packages = tmp_path / "venv/bin/python", sysconfig.get_path("purelib")
    wheel = str(releases.file(tmp_path, ".whl"))
    install = ("-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps", wheel)
    run(sys.executable, *install, cwd=tmp_path)
    own = Path(run(str(python), "-c", "import hvpa; print(hvpa.__path__[0])", cwd=tmp_path).strip())
    assert own.is_relative_to(tmp_path)
    (own.parent / "dependencies.pth").write_text(packages)
    assert run("venv/bin/hvpa", "--version", cwd=tmp_path) == f"hvpa {VERSION}\n"
    crd = (ROOT / "config/crd/autoscaling.k8s.io_hvpas.yaml").read_text()
    assert run("venv/bin/kubectl-hvpa", "crd", cwd=tmp_path) == crd
    for package in ("hvpa", "hvpa_lab"):
        files = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.*") if path.suffix in DATA]
        assert files
        assert [path for path in files if not (own.parent / path).is_file()] == []


def test_the_source_distribution_gives_the_same_wheel(releases: Releases, tmp_path: Path) -> None:
    run("tar", "xzf", str(releases.file(tmp_path, ".tar.gz")), cwd=tmp_path)
    epoch = run("git", "log", "-1", "--format=%ct", cwd=releases.source).strip()
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    run(sys.executable, "-c", build, cwd=tmp_path / f"hvpa-{VERSION}", SOURCE_DATE_EPOCH=epoch)
    name = f"hvpa-{VERSION}-py3-none-any.whl"
    assert (tmp_path / name).read_bytes() == releases.first[name]


def test_helm_takes_the_package_for_the_chart_that_it_is_made_of(
    releases: Releases, helm: Path, tmp_path: Path
) -> None:
    package = releases.file(tmp_path, f"hvpa-{VERSION}.tgz")
    cluster = f"--kube-version={kubernetes_version()}"
    succeed(helm, "lint", "--strict", cluster, package)
    about = yaml.safe_load(succeed(helm, "show", "chart", package))
    assert (about["name"], about["version"], about["appVersion"]) == ("hvpa", VERSION, VERSION)
    rendered = [succeed(helm, "template", "hvpa", chart, cluster, *IMAGE) for chart in (package, CHART)]
    assert rendered[0] == rendered[1]


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_the_manifests_are_what_kustomize_renders(releases: Releases, overlay: str) -> None:
    text = releases.first[f"hvpa-{VERSION}-{overlay}.yaml"].decode()
    assert [document for document in yaml.load_all(text, yaml.CSafeLoader) if document] == kustomize(
        ROOT / "config" / overlay
    )


def test_the_manifests_and_the_chart_can_have_another_image(
    releases: Releases, helm: Path, tmp_path: Path
) -> None:
    image = "example.com/you/hvpa:9"
    changed = {
        name: content
        for name, content in release(
            releases.source, tmp_path / "release", "--image", image, "--without-image"
        ).items()
        if content != releases.first[name]
    }
    charts = {f"hvpa-{VERSION}{suffix}" for suffix in (".tgz", "-chart.tar", "-bundle.tgz")}
    assert changed.keys() >= {f"hvpa-{VERSION}-default.yaml", CHECKSUMS, *charts}
    for name in changed.keys() - {CHECKSUMS, *charts}:
        text = changed[name].decode()
        assert text.replace(image, f"hvpa:{VERSION}").encode() == releases.first[name]
    cluster = f"--kube-version={kubernetes_version()}"
    package = tmp_path / "release" / f"hvpa-{VERSION}.tgz"
    values = ("--set-string", "image.repository=example.com/you/hvpa,image.tag=9")
    assert succeed(helm, "template", "hvpa", package, cluster) == succeed(
        helm, "template", "hvpa", CHART, cluster, *values
    )


SIGNER: Final = "hvpa"
VERIFY: Final = f"ssh-keygen -Y verify -f signers -I {SIGNER} -n {SIGNED_AS} -s {SIGNATURE} < {CHECKSUMS}"


def test_the_checksums_can_be_signed(releases: Releases, tmp_path: Path) -> None:
    """As docs/releases.md says, with a new key."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is needed")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key", cwd=tmp_path)
    out = tmp_path / "release"
    signed = release(releases.source, out, "--sign-key", str(tmp_path / "key"), "--without-image")
    assert VERIFY in (ROOT / "docs/releases.md").read_text()
    kind, public, *_ = (tmp_path / "key.pub").read_text().split()
    (out / "signers").write_text(f"{SIGNER} {kind} {public}\n")
    assert f'Good "{SIGNED_AS}" signature for {SIGNER}' in run("sh", "-c", VERIFY, cwd=out)
    run("sha256sum", "--check", "--quiet", CHECKSUMS, cwd=out)
    (out / CHECKSUMS).write_bytes(signed[CHECKSUMS].replace(b"a", b"b", 1))
    done = subprocess.run(["sh", "-c", VERIFY], cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "incorrect signature" in (done.stderr + done.stdout)


@pytest.fixture
def bundle(releases: Releases, tmp_path: Path) -> Path:
    """The folder of the bundle for OperatorHub."""
    run("tar", "xzf", str(releases.file(tmp_path, "-bundle.tgz")), cwd=tmp_path)
    return tmp_path / "hvpa" / VERSION


def complaints(operator_verify: Path, bundle: Path) -> str:
    """What OperatorHub's validator says: nothing if it accepts a bundle."""
    command = [str(operator_verify), "manifests", "--operatorhub_validate", "--object_validate", str(bundle)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_the_validator_of_operatorhub_accepts_the_bundle(operator_verify: Path, bundle: Path) -> None:
    assert complaints(operator_verify, bundle) == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        (
            "hvpa.clusterserviceversion.yaml",
            "    name: HVPA\n",
            "    url: x\n",
            "Provider.Name not specified",
        ),
        ("hvpa.clusterserviceversion.yaml", "kind: Hvpa\n", "kind: Other\n", "not found in bundle"),
        ("hvpa-poddisruptionbudget.yaml", "maxUnavailable: 1", "maxUnavailable: 0", "cannot be set to 0"),
    ],
)
def test_the_validator_of_operatorhub_refuses_a_broken_bundle(
    operator_verify: Path, bundle: Path, file: str, old: str, new: str, complaint: str
) -> None:
    path = bundle / "manifests" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert complaint in complaints(operator_verify, bundle)
