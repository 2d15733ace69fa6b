"""The bill of materials and the audit of the dependencies, on our own lock files and on bad ones."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.dependencies import audit, audit_services, licences, sbom
from tools.dependencies.lockfile import DOCS, DOCS_LOCK, LOCK, ROOT, read_lock, read_project
from tools.image.lockfile import DebianPackage

HASH = "a" * 64
Edit = Callable[[str], str]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The lock files and pyproject.toml, to be spoiled."""
    for name in (*audit.LOCKS, DOCS, "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def edit(path: Path, change: Edit) -> None:
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before


def test_every_pin_has_hashes_and_is_required() -> None:
    for name in audit.LOCKS:
        pins = read_lock(ROOT / name)
        assert pins
        for pin in pins.values():
            assert pin.hashes, f"{name}: {pin.name}"
            assert pin.wanted_by & {*pins, "hvpa", "requirements-docs-in"}, f"{name}: {pin.name}"


def test_our_dependencies_pass() -> None:
    assert audit.check(ROOT) == []


@pytest.mark.parametrize(
    ("name", "change", "printed"),
    [
        (LOCK, lambda text: text.replace("yarl==", "yarl>="), "yarl>=1"),
        (LOCK, lambda text: text + "-e ./somewhere\n", "-e is not pinned"),
        (LOCK, lambda text: text + "extra @ https://example.test/x.whl\n", "extra is not pinned"),
        (LOCK, lambda text: text + "--index-url https://example.test\n", "--index-url is not pinned"),
        (LOCK, lambda text: text + "extra==1 \\\n    --hash=md5:12\n", "extra==1 is not pinned"),
        (LOCK, lambda text: text + "extra==1\n    # via yarl\n", f"{LOCK}: extra has no hash"),
        (
            LOCK,
            lambda text: text + f"extra==1 \\\n    --hash=sha256:{HASH}\n",
            "extra is required by no package",
        ),
        (
            LOCK,
            lambda text: text + f"extra==1 --hash=sha256:{HASH}\n    # via gone\n",
            "required by no package",
        ),
        (LOCK, lambda text: text + f"extra==1rc1 --hash=sha256:{HASH}\n    # via yarl\n", "no final release"),
        (LOCK, lambda text: text + f"extra==1 --hash=sha256:{HASH}\n    # via yarl\n", "licence not known"),
        (LOCK, lambda text: text + f"extra==1 --hash=sha256:{HASH}\n    # via yarl\n", "not what is tested"),
        ("pyproject.toml", lambda text: text.replace("yarl>=1.25", "yarl>=99.0"), "yarl 1."),
        ("pyproject.toml", lambda text: text.replace('"yarl>=', '"newcomer>='), "newcomer is missing"),
        (DOCS, lambda text: text + "newcomer>=1\n", f"{DOCS_LOCK}: newcomer is missing"),
    ],
)
def test_what_is_wrong_is_reported(copy: Path, name: str, change: Edit, printed: str) -> None:
    edit(copy / name, change)
    assert printed in "\n".join(audit.check(copy))


def test_a_licence_that_is_not_accepted_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(licences, "ACCEPTED", licences.ACCEPTED - {"PSF-2.0"})
    assert any("licence PSF-2.0 is not in" in line for line in audit.check(ROOT))


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-only OR Apache-2.0 AND MIT", True),
        ("MIT WITH something", False),
    ],
)
def test_of_alternatives_one_is_enough(expression: str, accepted: bool) -> None:
    assert licences.is_accepted(expression) is accepted


def test_a_licence_of_another_version_is_not_known() -> None:
    pin = read_lock(ROOT / LOCK)["yarl"]
    assert licences.licence_of(pin.name, pin.version) == "Apache-2.0"
    assert licences.licence_of(pin.name, "0.1") is None
    assert licences.licence_of("no-such-distribution", "1") is None


def test_the_bill_of_materials_lists_the_lock_file() -> None:
    document = json.loads(sbom.render(ROOT))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    described = document["metadata"]["component"]
    assert (described["name"], described["version"]) == ("hvpa", read_project().version)
    assert "timestamp" not in document["metadata"]
    pins = read_lock(ROOT / LOCK)
    components = {component["name"]: component for component in document["components"]}
    assert components.keys() == pins.keys()
    for name, pin in pins.items():
        component = components[name]
        assert component["version"] == pin.version
        assert component["purl"] == f"pkg:pypi/{name}@{pin.version}"
        (files,) = component["externalReferences"]
        assert sorted(digest["content"] for digest in files["hashes"]) == sorted(pin.hashes)
        assert component["licenses"][0]["expression"]
    needs = {
        dependency["ref"]: set(dependency.get("dependsOn", ())) for dependency in document["dependencies"]
    }
    direct = {name for name, pin in pins.items() if "hvpa" in pin.wanted_by}
    assert needs["hvpa"] == {components[name]["purl"] for name in direct}
    assert direct < pins.keys()
    assert set().union(*needs.values()) == {component["purl"] for component in components.values()}


def test_the_same_lock_gives_the_same_bytes_and_another_one_others(copy: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tools.dependencies.sbom",
    ]  # with another seed of hashes than this process
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed == sbom.render(ROOT)
    edit(copy / LOCK, lambda text: text.replace("yarl==1", "yarl==2"))
    other = json.loads(sbom.render(copy))
    assert other["serialNumber"] != json.loads(printed)["serialNumber"]


def test_the_images_bill_of_materials_has_debians_packages_too() -> None:
    packages = [
        DebianPackage("libcrypt1", "1:4.4", "amd64", HASH),
        DebianPackage("ca-certificates", "20", "all", HASH),
    ]
    document = json.loads(sbom.render_image(ROOT, packages))
    described = document["metadata"]["component"]
    assert (described["type"], described["name"]) == ("container", "hvpa")
    components = {component["name"]: component for component in document["components"]}
    assert components.keys() == {"hvpa", "libcrypt1", "ca-certificates", *read_lock(ROOT / LOCK)}
    crypt = components["libcrypt1"]
    assert crypt["purl"] == "pkg:deb/debian/libcrypt1@1:4.4?arch=amd64&distro=debian-12"
    assert crypt["hashes"] == [{"alg": "SHA-256", "content": HASH}]
    needs = {
        dependency["ref"]: set(dependency.get("dependsOn", ())) for dependency in document["dependencies"]
    }
    assert needs[described["bom-ref"]] == {"hvpa", crypt["bom-ref"], components["ca-certificates"]["bom-ref"]}
    assert needs["hvpa"] > {components["aiohttp"]["bom-ref"]}
    assert sbom.render_image(ROOT, packages[::-1]) == sbom.render_image(ROOT, packages)


def done(code: int, stdout: str = "", stderr: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, stdout, stderr)


def entry(name: str, *vulnerabilities: str, skipped: bool = False) -> dict[str, Any]:
    if skipped:
        return {"name": name, "skip_reason": "not found"}
    vulns = [{"id": vulnerability, "fix_versions": ["2"]} for vulnerability in vulnerabilities]
    return {"name": name, "version": "1", "vulns": vulns}


def test_a_vulnerability_is_found_even_where_not_all_could_be_asked() -> None:
    text = json.dumps({"dependencies": [entry("a", "CVE-1"), entry("b"), entry("c", skipped=True)]})
    response = audit_services.read_audit("osv", done(1, text))
    assert response.findings == ("a 1: CVE-1, mended in 2",)
    assert response.reason == "osv: knows nothing of 1 of 3 dependencies"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (done(0, json.dumps({"dependencies": [entry("a", skipped=True)]})), "knows nothing of 1 of 1"),
        (done(0, json.dumps({"dependencies": []})), "knows nothing of 0 of 0"),
        (done(1, "", "Traceback\nConnectionError: no route (Caused by that)\n"), "ConnectionError: no route"),
        (done(1, "[]", ""), "it printed nothing"),
        ("no answer within 60 s", "no answer within 60 s"),
    ],
)
def test_what_could_not_be_asked_is_no_good_news(
    printed: subprocess.CompletedProcess[str] | str, reason: str
) -> None:
    response = audit_services.read_audit("osv", printed)
    assert response.findings == ()
    assert reason in response.reason


def test_a_withdrawn_release_is_found() -> None:
    metadata = {"name": "a", "version": "1"}
    report = json.dumps({"install": [{"metadata": metadata, "is_yanked": True}, {"metadata": metadata}]})
    assert audit_services.read_report(done(0), report).findings == ("a 1 was withdrawn by its authors",)
    assert audit_services.read_report(done(1, "", "no index\n"), "").reason == "no index"
    assert audit_services.read_report("too late", "").reason == "too late"


def test_without_a_service_the_audit_says_so_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["audit", "--quick"])
    response = audit_services.Answer(reason="no answer")
    monkeypatch.setattr(audit_services, "vulnerabilities", lambda lock, ignored: response)
    assert audit.main() == 0
    assert "known vulnerabilities: could not be done: no answer" in capsys.readouterr().out
    answer = audit_services.Answer(("a 1: CVE-1, mended in 2",), "osv")
    monkeypatch.setattr(audit_services, "vulnerabilities", lambda lock, ignored: answer)
    assert audit.main() == 1
    assert "audit: a 1: CVE-1" in capsys.readouterr().out
