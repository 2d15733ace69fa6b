"""`make publish`: a release goes to a registry on this machine, and comes back the same."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import pytest
import yaml

from localcluster import oci
from localcluster.process import Process, free_port
from localcluster.programs.build import kubernetes_version
from tests.e2e.chart.command import CHART, succeed
from tests.e2e.releasing import release, repository
from tools.dependencies.lockfile import ROOT, read_project
from tools.release import CHECKSUMS

VERSION: Final = read_project().version
CHART_FILE: Final = f"hvpa-{VERSION}-chart.tar"
IMAGE_FILE: Final = f"hvpa-{VERSION}-image-{oci.architecture()}.tar"


class Published(NamedTuple):
    """A release, its registry, and what `make publish` printed."""

    folder: Path
    registry: str
    printed: str

    @property
    def image(self) -> str:
        return f"{self.registry}/hvpa:{VERSION}"

    @property
    def chart(self) -> str:
        return f"{self.registry}/charts/hvpa:{VERSION}"


@pytest.fixture(scope="module")
def registry(crane: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry that keeps its content in memory."""
    port = free_port()
    log = tmp_path_factory.mktemp("registry") / "log"
    process = Process("registry", [crane, "registry", "serve", "--address", f"127.0.0.1:{port}"], log)
    process.start()
    try:
        until = time.monotonic() + 60
        while not _listens(port):
            assert process.alive, process.tail(10)
            assert time.monotonic() < until, process.tail(10)
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def published(registry: str, tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    where, out = f"{registry}/you", folder / "release"
    files = release(repository(folder / "source"), out, "--image", f"{where}/hvpa:{VERSION}")
    if IMAGE_FILE not in files:
        pytest.skip("this machine has no Debian packages for the image")
    done = publish(out, where)
    assert done.returncode == 0, done.stderr
    return Published(out, where, done.stdout)


def publish(folder: Path, registry: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.publish", "--release", str(folder), "--registry", registry]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def described(archive: Path) -> dict[str, Any]:
    """The description of the manifest in an archive."""
    index = json.loads(
        subprocess.run(["tar", "xOf", archive, "index.json"], capture_output=True, check=True).stdout
    )
    (entry,) = index["manifests"]
    return dict(entry)


def test_image_and_chart_have_the_digests_of_the_release(published: Published, crane: Path) -> None:
    lines = []
    for name, file in ((published.image, IMAGE_FILE), (published.chart, CHART_FILE)):
        digest = described(published.folder / file)["digest"]
        assert succeed(crane, "digest", name).strip() == digest
        lines.append(f"{name}@{digest}")
    assert published.printed.splitlines() == lines


def test_the_image_comes_back_as_it_was(published: Published, crane: Path, tmp_path: Path) -> None:
    succeed(crane, "pull", "--format=oci", published.image, tmp_path / "layout")
    listed = subprocess.run(
        ["tar", "tf", published.folder / IMAGE_FILE], capture_output=True, text=True, check=True
    )
    blobs = {line.rpartition("/")[2] for line in listed.stdout.split() if line.startswith("blobs/sha256/")}
    pulled = {path.name: path.read_bytes() for path in (tmp_path / "layout/blobs/sha256").iterdir()}
    assert pulled.keys() == blobs - {""}
    assert {hashlib.sha256(content).hexdigest() for content in pulled.values()} == pulled.keys()


def test_helm_installs_the_chart_with_one_line(published: Published, helm: Path, tmp_path: Path) -> None:
    """What it would install is what the chart of this folder installs with that image."""
    chart = f"oci://{published.registry}/charts/hvpa"
    common = ("--namespace", "hvpa-system", f"--kube-version={kubernetes_version()}")
    remote = ("--version", VERSION, "--plain-http")
    image = ("--set", f"image.repository={published.registry}/hvpa")
    assert documents(succeed(helm, "template", "hvpa", chart, *remote, *common)) == documents(
        succeed(helm, "template", "hvpa", CHART, *common, *image)
    )
    succeed(helm, "pull", chart, *remote, "--destination", tmp_path)
    package = f"hvpa-{VERSION}.tgz"
    assert (tmp_path / package).read_bytes() == (published.folder / package).read_bytes()


def documents(text: str) -> list[Any]:
    return list(yaml.load_all(text, yaml.CSafeLoader))


def test_the_chart_is_what_helm_itself_would_push(
    published: Published, helm: Path, crane: Path, registry: str
) -> None:
    package = published.folder / f"hvpa-{VERSION}.tgz"
    succeed(helm, "push", "--plain-http", package, f"oci://{registry}/by-helm")
    names = published.chart, f"{registry}/by-helm/hvpa:{VERSION}"
    ours, theirs = (json.loads(succeed(crane, "manifest", name)) for name in names)
    assert ours["layers"] == theirs["layers"]
    assert ours["config"]["mediaType"] == theirs["config"]["mediaType"]
    assert json.loads(succeed(crane, "config", names[0])) == json.loads(succeed(crane, "config", names[1]))


def test_publishing_again_changes_nothing(published: Published) -> None:
    again = publish(published.folder, published.registry)
    assert (again.returncode, again.stdout) == (0, published.printed)


def test_a_published_version_never_changes(
    published: Published, crane: Path, registry: str, tmp_path: Path
) -> None:
    other = f"{registry}/own/charts/hvpa:{VERSION}"
    succeed(crane, "copy", published.image, other)
    folder = changed_for(published, f"{registry}/own", tmp_path)
    done = publish(folder, f"{registry}/own")
    assert done.returncode == 1
    assert f"{other} is published with the digest sha256:" in done.stderr
    assert succeed(crane, "digest", other) == succeed(crane, "digest", published.image)


def changed_for(published: Published, registry: str, folder: Path) -> Path:
    """A copy of the release whose image has the name for another registry."""
    out = folder / "copy"
    out.mkdir()
    names = [line.split("  ")[1] for line in (published.folder / CHECKSUMS).read_text().splitlines()]
    for name in names:
        content = (published.folder / name).read_bytes()
        if name == IMAGE_FILE:
            # Names of the same length fit into the same place of the archive.
            old, new = published.registry.encode(), registry.encode()
            content = content.replace(old + b"/hvpa", new + b"/hvpa")
        (out / name).write_bytes(content)
    sums = (f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (out / CHECKSUMS).write_text("".join(sums))
    return out


def test_a_release_for_another_registry_is_refused(published: Published, registry: str) -> None:
    done = publish(published.folder, f"{registry}/others")
    assert done.returncode == 1
    assert f"has the image {published.image}" in done.stderr
    assert f"make release REGISTRY={registry}/others" in done.stderr


def test_a_registry_that_is_not_there_is_named(published: Published, tmp_path: Path) -> None:
    port = free_port()
    elsewhere = f"127.0.0.1:{port}/you"
    folder = changed_for(published, elsewhere, tmp_path)
    done = publish(folder, elsewhere)
    assert done.returncode == 1
    assert f"publish: {elsewhere}/hvpa:{VERSION}: " in done.stderr
    assert "connection refused" in done.stderr


class Guarded(BaseHTTPRequestHandler):
    """A registry that knows one user, who may not push."""

    seen: ClassVar[list[str]] = []
    """Who has sent a request: the header of each."""

    def _answer(self) -> None:
        user = self.headers.get("Authorization", "")
        self.seen.append(user)
        known = user == f"Basic {base64.b64encode(b'you:secret').decode()}"
        if known and self.path == "/v2/":
            self._send(200, "OK")
        elif known:
            missing = self.command in ("GET", "HEAD")
            self._send(*((404, "NAME_UNKNOWN") if missing else (403, "DENIED")))
        else:
            self._send(401, "UNAUTHORIZED")

    def _send(self, status: int, code: str) -> None:
        body = json.dumps({"errors": [{"code": code, "message": f"the registry says {code}"}]}).encode()
        self.send_response(status)
        self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = _answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def guarded() -> Iterator[int]:
    """The port of such a registry."""
    Guarded.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", free_port()), Guarded) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("secret", "DENIED: the registry says DENIED\n"),
        (
            "wrong",
            "401 Unauthorized (HEAD responses have no body, use GET for details); are you logged in (docker login)?",
        ),
    ],
)
def test_the_credentials_of_docker_login_are_sent_and_a_refusal_is_reported(
    published: Published,
    guarded: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    password: str,
    reason: str,
) -> None:
    registry = f"127.0.0.1:{guarded}/you"
    folder = changed_for(published, registry, tmp_path)
    login = base64.b64encode(f"you:{password}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {f"127.0.0.1:{guarded}": {"auth": login}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    done = publish(folder, registry)
    assert done.returncode == 1
    assert f"publish: {registry}/hvpa:{VERSION}: " in done.stderr
    assert reason in done.stderr
    assert f"Basic {login}" in Guarded.seen
    assert password not in done.stderr


def test_a_changed_file_is_not_published(published: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(published.folder, tmp_path / "copy")
    (folder / CHART_FILE).write_bytes(b"changed")
    done = publish(folder, published.registry)
    assert done.returncode == 1
    assert f"{CHART_FILE} is missing or differs from {CHECKSUMS}" in done.stderr


def test_a_release_without_an_image_is_not_published(published: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(published.folder, tmp_path / "copy")
    sums = (folder / CHECKSUMS).read_text().splitlines(keepends=True)
    (folder / CHECKSUMS).write_text("".join(line for line in sums if IMAGE_FILE not in line))
    done = publish(folder, published.registry)
    assert done.returncode == 1
    assert "needs one chart and one image, and has 1 and 0" in done.stderr


def test_a_folder_without_a_release_is_named(tmp_path: Path, registry: str) -> None:
    done = publish(tmp_path, registry)
    assert (done.returncode, done.stderr) == (
        1,
        f"publish: {tmp_path} has no release: run make release REGISTRY={registry}\n",
    )
