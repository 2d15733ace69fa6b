"""What the documents list (rooms, decisions, flags, metrics, gates, fields, targets of make) is what there is."""

from __future__ import annotations

import argparse
import datetime as dt
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
import yaml
from prometheus_client import CollectorRegistry
from pydantic.alias_generators import to_camel

from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.duration import parse_duration
from hvpa.cli.run import add_arguments
from hvpa.core.gates import gates
from hvpa.kube.server.metrics import Metrics
from hvpa.reconcile.telemetry import Operation
from tools.reference import metrics_page

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GATES = (
    gates.PAUSED,
    gates.CONTESTED,
    gates.WEIGHT,
    gates.UPDATE_POLICY,
    gates.STABILIZATION_WINDOW,
    gates.MAINTENANCE_WINDOW,
    gates.ROLLOUT,
    gates.MIN_CHANGE,
)
MOST_MODULES = 12
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", ARCHITECTURE)))


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_about_rooms_names_is_there(name: str) -> None:
    assert (ROOT / "hvpa" / name).exists() or (ROOT / name).exists()


def test_the_picture_shows_every_room() -> None:
    picture = ARCHITECTURE.partition("```\nhvpa/")[2].partition("```")[0]
    rooms = {path.parent.name for path in (ROOT / "hvpa").glob("*/__init__.py")}
    rooms |= {path.parent.name for path in (ROOT / "hvpa" / "core").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", picture)} == set()


@pytest.mark.parametrize("part", ["hvpa", "localcluster", "benchmarks"])
def test_no_folder_has_more_than_a_dozen_modules(part: str) -> None:
    modules = Counter(path.parent for path in (ROOT / part).rglob("*.py") if path.name != "__init__.py")
    assert {
        str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > MOST_MODULES
    } == {}


def test_the_index_of_decisions_has_every_note_once() -> None:
    notes = ROOT / "docs/decisions"
    linked = re.findall(r"^\| \[\d{4}\]\((\S+)\)", (notes / "README.md").read_text(), re.MULTILINE)
    assert sorted(linked) == sorted(path.name for path in notes.glob("[0-9]*.md"))


def test_every_flag_of_run_is_in_the_table_and_no_other() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    table = OPERATIONS.partition("## Flags of `hvpa run`")[2].partition("## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `--")]
    assert set(re.findall(r"`(--[a-z-]+)`", " ".join(cells))) == flags


def test_every_metric_is_in_the_table_and_no_other() -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    metrics.watch_queue(lambda: 0.0, lambda: 0.0)
    metrics.watch_limits(lambda: 0, lambda: 0)
    metrics.watch_shards(lambda: 0, 1)
    metrics.watch_caches(dict)
    page = b"".join(metrics.pieces()).decode()
    names = set(re.findall(r"^# TYPE (hvpa_\w+)", page, re.MULTILINE))
    table = OPERATIONS.partition("## Metrics")[2].partition("## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `hvpa_")]
    assert set(re.findall(r"`(hvpa_\w+)`", " ".join(cells))) == names
    assert set(re.findall(r"^\| `(hvpa_\w+)`", metrics_page(), re.MULTILINE)) == names
    alerts = OPERATIONS.partition("## Alerts")[2].partition("## ")[0]
    assert set(re.findall(r"\bhvpa_\w+", alerts)) <= names


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/getting-started.md",
        "docs/migrating-from-hpa-and-vpa.md",
        "docs/migrating-from-postmates.md",
    ],
)
def test_the_manifest_of_a_page_is_valid(page: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    manifests = [manifest for block in blocks for manifest in yaml.safe_load_all(block)]
    hvpas = [manifest for manifest in manifests if manifest["kind"] == "Hvpa"]
    assert [validate_manifest(manifest) for manifest in hvpas] == [[]]


def test_keda_writes_to_the_hvpa_of_its_page_which_names_the_hpa_of_that_scaled_object() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/keda.md").read_text(), re.DOTALL)
    scaled_object, hvpa = yaml.safe_load_all(block)
    assert validate_manifest(hvpa) == []
    reference = {key: hvpa[key] for key in ("apiVersion", "kind")} | {"name": hvpa["metadata"]["name"]}
    assert scaled_object["spec"]["scaleTargetRef"] == reference
    assert hvpa["spec"]["hpa"]["name"] == f"keda-hpa-{scaled_object['metadata']['name']}"


def test_what_the_page_about_gitops_has_ignored_is_in_a_workload() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/gitops.md").read_text(), re.DOTALL)
    argo, flux = (yaml.safe_load(block)["spec"] for block in blocks)
    workload, _ = yaml.safe_load_all((ROOT / "config/samples/web.yaml").read_text())
    for pointer in argo["ignoreDifferences"][0]["jsonPointers"] + flux["ignore"][0]["paths"]:
        found = workload
        for part in pointer.split("/")[1:]:
            found = found[int(part) if isinstance(found, list) else part]
    (expression,) = argo["ignoreDifferences"][0]["jqPathExpressions"]
    assert expression == ".spec.template.spec.containers[].resources"


def test_the_hvpa_in_place_of_an_hpa_and_a_vpa_has_what_these_have() -> None:
    text = (ROOT / "docs/migrating-from-hpa-and-vpa.md").read_text()
    before, after = (
        list(yaml.safe_load_all(one)) for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    )
    hpa, vpa = (manifest["spec"] for manifest in before)
    (spec,) = (manifest["spec"] for manifest in after)
    template = spec["hpa"]["template"]["spec"]
    assert template == {name: hpa[name] for name in ("minReplicas", "maxReplicas", "metrics")}
    seconds = hpa["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    assert parse_duration(spec["hpa"]["scaleDown"]["stabilizationDuration"]) == dt.timedelta(seconds=seconds)
    (old,) = vpa["resourcePolicy"]["containerPolicies"]
    (new,) = spec["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
    assert spec["targetRef"] == hpa["scaleTargetRef"] == vpa["targetRef"]
    assert old["containerName"] == new["containerName"]
    for bound in ("minAllowed", "maxAllowed"):
        assert old[bound]["memory"] == new[bound]["memory"]


@pytest.mark.parametrize("page", ["operations.md", "decision.md", "troubleshooting.md"])
def test_every_gate_is_explained(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert [gate for gate in GATES if f"`{gate}`" not in text] == []


def test_the_operations_that_last_error_names_are_listed() -> None:
    expected = OPERATIONS.partition("`lastOperation` (")[2].partition(")")[0]
    # When the status itself can't be written, it can't report that.
    assert set(re.findall(r"`(\w+)`", expected)) == set(get_args(Operation)) - {"PatchStatus"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_that_is_named_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = " ".join(re.findall(r"`([^`\n]+)`", page.read_text()))
    blocks = " ".join(re.findall(r"^make [^#\n]*", page.read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][a-z0-9-]*)", f"{code} {blocks}"))
    assert named <= targets


def test_every_field_of_the_spec_is_on_the_page_about_gardeners_and_no_other() -> None:
    text = (ROOT / "docs/migrating-from-gardener.md").read_text().partition("## Field by field")[2]
    expected = {
        name.partition(".")[0] for name in re.findall(r"`spec\.([\w.]+)`", text.partition("\n## ")[0])
    }
    assert expected == {to_camel(field) for field in HvpaSpec.model_fields}
