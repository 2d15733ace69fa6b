"""What the documents list (rooms, decisions, flags, metrics, gates, fields, targets of make) is what there is."""

from __future__ import annotations

import argparse
import datetime as dt
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from prometheus_client import CollectorRegistry
from pydantic.alias_generators import to_camel

from benchmarks import __main__ as benchmarks
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.duration import parse_duration
from hvpa.cli.run import add_arguments
from hvpa.core.gates import gates
from hvpa.kube.server.metrics import Metrics
from hvpa.reconcile.telemetry import Operation
from tests.manifests import base
from tests.pages import PAGES, every_block
from tools.reference import metrics_page

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
LABORATORY = (ROOT / "docs/laboratory.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
GATES = (*gates.GATES, gates.POD_REPLACEMENT, gates.MAX_STEP)
IN_ORDER = {
    "docs/tutorial.md": "tests/e2e/full/test_tutorial.py",
    "docs/first-day.md": "tests/e2e/full/test_first_day.py",
    "docs/platform-team.md": "tests/e2e/full/test_platform_team.py",
    "docs/review.md": "tests/e2e/bare/scaling/test_review.py",
    "docs/export.md": "tests/e2e/bare/reporting/test_export.py",
    "docs/policies.md": "tests/e2e/full/test_policies.py",
} | dict.fromkeys(
    (
        "docs/alerts.md",
        "docs/dashboard.md",
        "docs/getting-started.md",
        "docs/gitops.md",
        "docs/in-place.md",
        "docs/init.md",
        "docs/migrating-from-hpa-and-vpa.md",
        "docs/operations.md",
        "docs/report.md",
        "docs/threat-model.md",
        "docs/troubleshooting.md",
    ),
    "tests/e2e/full/test_pages.py",
)
"""Pages of which a test names all blocks of commands in their order, so that it can't be imported when one is added."""
RUN = {
    ("README.md", "make demo"): "tests/e2e/test_demo.py",
    ("README.md", "make cluster-up"): "tests/e2e/full/test_tutorial.py",
    ("docs/joint-scaling.md", "hvpa explain -f docs/path.yaml"): "tests/unit/test_joint_scaling.py",
    ("docs/init.md", "hvpa init -f examples/init/shop.yaml"): "tests/unit/lab/init/test_page.py",
    ("docs/init.md", "hvpa simulate hvpa-orders/"): "tests/unit/lab/init/test_page.py",
    ("charts/hvpa/README.md", "kubectl apply -f config/manager"): "tests/e2e/full/test_first_day.py",
    ("docs/getting-started.md", "kubectl apply -f config/manager"): "tests/e2e/full/test_first_day.py",
    ("README.md", "helm install"): "tests/e2e/test_publish.py",
    ("docs/releases.md", "make release"): "tests/e2e/test_publish.py",
    ("docs/releases.md", "helm install"): "tests/e2e/test_publish.py",
    ("docs/releases.md", "ssh-keygen -Y verify"): "tests/e2e/test_releases.py",
    ("docs/releases.md", "tar xOf"): "tests/e2e/test_publish.py",
    ("docs/fast-signal.md", "kubectl apply -k config/fast-signal"): "tests/e2e/node/test_fast_signal.py",
}
"""Further blocks of commands, by page and beginning, and what runs them."""
NOT_HERE = {
    ("README.md", "make test"): "this test is a part of it",
    (
        "CONTRIBUTING.md",
        "make",
    ): "these are the parts of `make test`; that each target is there is tested below",
    ("docs/getting-started.md", "git clone"): "the repository has no public address yet",
    ("docs/getting-started.md", "make docker-build"): "needs a container engine and a registry",
    ("docs/getting-started.md", "make image"): "needs a registry; tests/e2e/test_image.py builds the image",
    ("docs/init.md", "hvpa init deployment/web -n shop --prometheus http://localhost:9090 \\"): (
        "simulates for minutes; docs/first-day.md has it with a day, and tests/unit/lab/init reads the flags"
    ),
    ("README.md", "make simulate"): "as that of docs/simulate.md",
    ("docs/simulate.md", "hvpa simulate examples/large-base"): (
        "half a minute of processor time; tests/unit/lab/simulate/scenario/test_examples.py runs it with longer steps"
    ),
    ("docs/performance.md", 'make bench BENCH_ARGS="scale'): "takes an hour; the flags are read below",
    ("docs/performance.md", "make bench BENCH_ARGS=resizes"): "takes minutes; the flags are read below",
    ("docs/performance.md", "make bench BENCH_ARGS=kubelets"): "takes two minutes; the flags are read below",
    (
        "docs/performance.md",
        'make bench BENCH_ARGS="node',
    ): "needs a real node, and minutes; the flags are read below",
    (
        "docs/performance.md",
        "make bench BENCH_ARGS=hostile",
    ): "takes half a minute; tests/unit/benchmarks/test_hostile.py runs a part",
}
"""Blocks of commands that no test runs, and why."""
OTHER_YAML = {
    ("docs/export.md", None): "tests/unit/lab/export/test_page.py",
    ("docs/export.md", "Kustomization"): "tests/unit/lab/export/test_page.py",
    ("docs/gitops.md", "Application"): "tests/unit/test_documents.py",
    ("docs/gitops.md", "Kustomization"): "tests/unit/test_documents.py",
    ("docs/init.md", None): "tests/unit/lab/init/test_page.py",
    ("docs/keda.md", "ScaledObject"): "tests/unit/test_documents.py",
    ("docs/migrating-from-hpa-and-vpa.md", "HorizontalPodAutoscaler"): "tests/e2e/full/test_pages.py",
    ("docs/migrating-from-hpa-and-vpa.md", "VerticalPodAutoscaler"): "tests/e2e/full/test_pages.py",
    ("docs/migrating-from-postmates.md", "CHPA"): "tests/unit/test_documents.py",
    ("docs/operations.md", None): "tests/e2e/bare/actuation/test_undo.py",
    ("docs/pod-level-resources.md", "Deployment"): "tests/e2e/bare/actuation/test_pod_level.py",
    ("docs/runtimes.md", None): "tests/unit/lab/simulate/scenario/test_documented.py",
    ("docs/review.md", None): "tests/e2e/bare/scaling/test_review.py",
    ("docs/policies.md", "HvpaPolicy"): "tests/e2e/full/test_policies.py",
    ("docs/policies.md", "ClusterHvpaPolicy"): "tests/e2e/full/test_policies.py",
    ("docs/simulate.md", None): "tests/unit/lab/simulate/scenario/test_documented.py",
}
"""YAML that is no Hvpa and no part of one, by page and kind, and what reads it."""
MOST_MODULES = 12
NAME_OF_A_FILE = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`")
NAMED = sorted(
    {("hvpa", name) for name in NAME_OF_A_FILE.findall(ARCHITECTURE)}
    | {("hvpa_lab", name) for name in NAME_OF_A_FILE.findall(LABORATORY)}
)


@pytest.mark.parametrize(("package", "name"), NAMED)
def test_files_that_the_architecture_names_exist(package: str, name: str) -> None:
    assert (ROOT / package / name).exists() or (ROOT / name).exists()


@pytest.mark.parametrize(
    ("page", "package", "folders"),
    [(ARCHITECTURE, "hvpa", (".", "core")), (LABORATORY, "hvpa_lab", (".",))],
)
def test_the_picture_shows_every_room(page: str, package: str, folders: Sequence[str]) -> None:
    picture = page.partition(f"```\n{package}/")[2].partition("```")[0]
    rooms = {
        path.parent.name for folder in folders for path in (ROOT / package / folder).glob("*/__init__.py")
    }
    assert rooms
    assert {room for room in rooms if not re.search(rf"\b{room}\b", picture)} == set()


@pytest.mark.parametrize("part", ["hvpa", "hvpa_lab", "localcluster", "benchmarks"])
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
    metrics.watch_queue(lambda: 0.0, lambda: 0.0, lambda: 0.0)
    metrics.watch_limits(lambda: 0, lambda: 0)
    metrics.watch_shards(lambda: 0, 1)
    metrics.watch_kubelets(lambda: 0, lambda: 0)
    metrics.watch_policies(dict)
    metrics.watch_caches(dict)
    page = b"".join(metrics.pieces()).decode()
    names = set(re.findall(r"^# TYPE (hvpa_\w+)", page, re.MULTILINE))
    table = OPERATIONS.partition("## Metrics")[2].partition("## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `hvpa_")]
    assert set(re.findall(r"`(hvpa_\w+)`", " ".join(cells))) == names
    assert set(re.findall(r"^\| `(hvpa_\w+)`", metrics_page(), re.MULTILINE)) == names
    alerts = OPERATIONS.partition("## Alerts")[2].partition("## ")[0]
    assert set(re.findall(r"\bhvpa_\w+", alerts)) <= names


BLOCKS = every_block()


def test_every_block_of_commands_is_run_by_a_test_or_said_not_to_be() -> None:
    commands = [block for block in BLOCKS if block.has_commands]
    claimed = {
        claim: [block for block in commands if block.page == claim[0] and block.text.startswith(claim[1])]
        for claim in RUN | NOT_HERE
    }
    assert {claim: blocks for claim, blocks in claimed.items() if len(blocks) != 1} == {}, (
        "stale, or not one block"
    )
    known = [block for blocks in claimed.values() for block in blocks]
    assert [block for block in commands if block not in known and block.page not in IN_ORDER] == []
    assert IN_ORDER.keys() - {block.page for block in commands} == set(), "stale"


@pytest.mark.parametrize("test", sorted({*RUN.values(), *OTHER_YAML.values()}))
def test_a_test_that_runs_or_reads_blocks_is_there(test: str) -> None:
    assert (ROOT / test).is_file()


@pytest.mark.parametrize("test", sorted(set(IN_ORDER.values())))
def test_a_test_that_runs_all_blocks_of_a_page_names_each(test: str) -> None:
    """Its import fails where a page has another number of blocks: that it is run by pytest is not needed for it."""
    text = (ROOT / test).read_text()
    module = test.removesuffix(".py").replace("/", ".")
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [page for page in IN_ORDER if IN_ORDER[page] == test and Path(page).name not in text] == []


def test_no_block_is_overlooked() -> None:
    fences = {str(page.relative_to(ROOT)): page.read_text().count("```") for page in PAGES}
    assert Counter(block.page for block in BLOCKS) == Counter(
        {page: count // 2 for page, count in fences.items()}
    )


def test_a_block_of_commands_is_tagged_as_one_or_shows_a_terminal() -> None:
    """So tests find it."""
    commands = [block for block in BLOCKS if block.has_commands]
    untagged = [
        block for block in commands if block.language != "sh" and not re.match(r"\$ .*\n.*\S", block.text)
    ]
    assert untagged == []


def test_every_block_of_yaml_is_a_valid_hvpa_or_a_part_of_one_or_read_elsewhere() -> None:
    others = set()
    spec_fields = {to_camel(field) for field in HvpaSpec.model_fields}
    for block in BLOCKS:
        for document in yaml.safe_load_all(block.text) if block.language == "yaml" else ():
            if document.get("kind") == "Hvpa":
                assert validate_manifest(document) == [], block
            elif document.keys() <= spec_fields or document.keys() == {"spec"}:
                assert validate_manifest(whole(document.get("spec", document))) == [], block
            else:
                others.add((block.page, document.get("kind")))
    assert others == OTHER_YAML.keys()


def whole(part: dict[str, Any]) -> dict[str, Any]:
    """An Hvpa with this part of a spec."""
    manifest = base()
    manifest["spec"] |= {"blend": "Trajectory"} | part
    if "intervals" in part.get("trajectory", {}):
        del manifest["spec"]["weightBasedScalingIntervals"]
    return manifest


def test_each_page_installs_the_chart_as_the_one_about_the_first_day() -> None:
    installs = {
        re.sub(r"repository=\S+|(?<=\S)  +#", "", block.text)
        for block in BLOCKS
        if block.has_commands and "helm install hvpa charts/hvpa" in block.text
    }
    assert len(installs) == 1


def test_the_page_of_the_chart_names_the_helm_that_the_tests_run() -> None:
    modules = (ROOT / "localcluster/programs/modules/helm/go.mod").read_text()
    (version,) = re.findall(r"^\thelm\.sh/helm/v\d+ v(\d+\.\d+)\.", modules, re.MULTILINE)
    assert f"tested with Helm {version}." in (ROOT / "charts/hvpa/README.md").read_text()


@pytest.mark.parametrize(
    "arguments",
    re.findall(r'^make bench BENCH_ARGS="?(.*?)"?$', (ROOT / "docs/performance.md").read_text(), re.M),
)
def test_the_flags_of_a_benchmark_are_there(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *options = shlex.split(arguments)
    with pytest.raises(SystemExit):
        benchmarks.run(name, ["--help"])
    shown = capsys.readouterr().out
    assert [option for option in options if option.startswith("--") and option not in shown] == []


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
        value = workload
        for part in pointer.split("/")[1:]:
            value = value[int(part) if isinstance(value, list) else part]
    (expression,) = argo["ignoreDifferences"][0]["jqPathExpressions"]
    assert expression == ".spec.template.spec.containers[].resources"


def test_the_hvpa_in_place_of_an_hpa_and_a_vpa_has_what_these_have() -> None:
    text = (ROOT / "docs/migrating-from-hpa-and-vpa.md").read_text()
    before, after = (
        list(yaml.safe_load_all(block)) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
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
    # When the status itself can't be written, it can't report that. Events report deletion costs.
    reported = set(get_args(Operation)) - {"PatchStatus", "WritePodCosts"}
    assert set(re.findall(r"`(\w+)`", expected)) == reported


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


def test_every_line_about_runtimes_has_a_test_and_every_test_has_a_line() -> None:
    text = (ROOT / "docs/runtimes.md").read_text()
    listed = re.findall(r"^(\d+)\. `(test_\w+)`$", text, re.MULTILINE)
    module = (ROOT / "tests/e2e/node/test_runtimes.py").read_text()
    assert sorted(name for _, name in listed) == sorted(re.findall(r"^def (test_\w+)", module, re.MULTILINE))
    rows = re.findall(r"^\| .* \| .* \| ([\d, ]+) \|$", text, re.MULTILINE)
    prose = re.findall(r"\btest (\d+)", text)
    used = {number for row in rows for number in row.split(", ")} | set(prose)
    assert used == {number for number, _ in listed}
