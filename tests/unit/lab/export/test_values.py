"""The file with the paths of Helm values."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Workload, WorkloadMeta
from hvpa.cli.errors import CommandError
from hvpa.cli.input.files import FileError
from hvpa.core.model import ResourceRequirements
from hvpa_lab.export.sizes import Sizes
from hvpa_lab.export.values import ValuePaths

WEB = Workload(
    WorkloadMeta("web", "shop", labels={"team": "red.one"}), kind="Deployment", api_version="apps/v1"
)
SMALL, LARGE = ResourceRequirements({"cpu": 100}, {}), ResourceRequirements({"cpu": 200}, {"cpu": 400})
SIZES = Sizes({"web": LARGE, "log": SMALL}, 3)
RESOURCES = {
    "web": {"requests": {"cpu": "200m"}, "limits": {"cpu": "400m"}},
    "log": {"requests": {"cpu": "100m"}},
}


def paths(folder: Path, *entries: Any) -> ValuePaths:
    """The paths of a file with these entries."""
    return read(folder, yaml.safe_dump({"workloads": list(entries)}))


def read(folder: Path, text: str) -> ValuePaths:
    """The paths of a file with this text."""
    path = folder / "paths.yaml"
    path.write_text(text)
    return ValuePaths(str(path))


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        (
            {"containers": {"*": "{container}.resources"}},
            {name: {"resources": resources} for name, resources in RESOURCES.items()},
        ),
        (
            {"containers": {"web": "resources", "log": ""}, "replicas": "replicaCount"},
            {"resources": RESOURCES["web"], "replicaCount": 3},
        ),
        (
            {"containers": {"web": ["{label:team}", "a.b"], "*": "{namespace}.{kind}-{name}.{container}"}},
            {"red.one": {"a.b": RESOURCES["web"]}, "shop": {"Deployment-web": {"log": RESOURCES["log"]}}},
        ),
    ],
)
def test_values_are_at_the_paths(tmp_path: Path, entry: Any, values: Any) -> None:
    assert paths(tmp_path, entry).document(WEB, SIZES) == values


def test_resources_of_the_pod_itself_need_a_path_of_their_own(tmp_path: Path) -> None:
    sizes = Sizes({"web": SMALL}, pod=LARGE)
    whole = paths(tmp_path, {"containers": {"*": "{container}", "(pod)": "whole"}}).document(WEB, sizes)
    assert whole == {"web": RESOURCES["log"], "whole": RESOURCES["web"]}
    assert paths(tmp_path, {"containers": {"*": "a", "(pod)": ""}}).document(WEB, sizes) == {
        "a": RESOURCES["log"]
    }
    with pytest.raises(CommandError, match=r"no path for the pod itself, \(pod\) \(an empty path"):
        paths(tmp_path, {"containers": {"*": "{container}"}}).document(WEB, sizes)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ({}, True),
        ({"namespace": "shop", "kind": "Deployment", "name": "w*"}, True),
        ({"name": "v*"}, False),
        ({"labels": {"team": "red.*"}}, True),
        ({"labels": {"team": "blue"}}, False),
        ({"labels": {"app": "*"}}, False),
    ],
)
def test_the_first_entry_that_matches_applies(tmp_path: Path, match: Any, matches: bool) -> None:
    first, second = ({"containers": {"web": name, "log": ""}} for name in ("first", "second"))
    values = paths(tmp_path, {"match": match, **first}, second).document(WEB, SIZES)
    assert list(values) == ["first" if matches else "second"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"match": {"name": "api"}}, "no entry of FILE matches it"),
        ({"containers": {"web": "a"}}, "FILE has no path for container log (an empty path leaves it out)"),
        ({"containers": {"*": "resources"}}, "two paths of FILE collide at resources"),
        (
            {"containers": {"web": "a", "log": "a.requests.cpu.c"}},
            "two paths of FILE collide at a.requests.cpu.c",
        ),
        (
            {"containers": {"web": "a.b", "log": "a"}},
            "two paths of FILE collide at a",
        ),
        ({"containers": {"*": "{label:tier}"}}, "it has no label tier, which FILE uses in a path"),
        ({"containers": {"*": ""}}, "its entry of FILE leaves everything out"),
    ],
)
def test_a_workload_without_values_is_reported(tmp_path: Path, entry: Any, why: str) -> None:
    found = paths(tmp_path, entry)
    with pytest.raises(CommandError) as raised:
        found.document(WEB, SIZES)
    assert str(raised.value) == why.replace("FILE", str(tmp_path / "paths.yaml"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be a single document with a list `workloads`, has 0"),
        ("a: 1\n---\nb: 1\n", "must be a single document with a list `workloads`, has 2"),
        ("a: [", "paths.yaml:2:1: not YAML"),
        ("[]", "must be an object"),
        ("paths: []", "paths: is unknown; known are workloads"),
        ("{}", "1: workloads: must be a list"),
        ("x: 1", "x: is unknown"),
        ("workloads: {}", "workloads: must be a list with entries"),
        ("workloads: []", "workloads: must be a list with entries"),
        ("workloads: [1]", "workloads[0]: must be an object"),
        ("workloads: [{path: a}]", "workloads[0].path: is unknown; known are match, containers, replicas"),
        (
            "workloads:\n- match: {nam: a}",
            "2: workloads[0].match.nam: is unknown; known are namespace, kind, name, labels",
        ),
        ("workloads: [{match: {name: 1}}]", "workloads[0].match.name: must be text"),
        ("workloads: [{match: {labels: {a: 1}}}]", "workloads[0].match.labels.a: must be text"),
        ("workloads: [{containers: [a]}]", "workloads[0].containers: must be an object"),
        ("workloads: [{containers: {a: a..b}}]", "workloads[0].containers.a: must be a path"),
        ("workloads: [{containers: {a: [1]}}]", "workloads[0].containers.a: must be a path"),
        ("workloads: [{containers: {a: []}}]", "workloads[0].containers.a: must be a path"),
        ("workloads: [{containers: {a: 1}}]", "workloads[0].containers.a: must be a path"),
        (
            "workloads: [{containers: {a: '{pod}'}}]",
            "{pod} is unknown; known are {namespace}, {kind}, {name}, {container}, {label:KEY}",
        ),
        (
            "workloads: [{replicas: '{container}'}]",
            "{container} is unknown; known are {namespace}, {kind}, {name}, {label:KEY}",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_line_and_field(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(FileError) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "paths.yaml"))
    assert why in str(raised.value)


PLAIN = st.recursive(
    st.text(max_size=6) | st.integers() | st.booleans() | st.none(),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(
            st.sampled_from(["match", "containers", "replicas", "labels", "name", "*", "web"]),
            values,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.lists(PLAIN, max_size=2) | st.text(max_size=50))
def test_any_file_has_values_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "paths.yaml"
    text = content if isinstance(content, str) else yaml.safe_dump({"workloads": content})
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(CommandError):
        assert ValuePaths(str(path)).document(WEB, SIZES)
