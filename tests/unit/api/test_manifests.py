"""Whole manifests: the tables of good and bad ones, what the cluster holds, and anything else."""

from __future__ import annotations

import copy
import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import HvpaObject, parse_spec, read_hvpa, validate_manifest
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.schema.base import FieldError, dotted_path
from tests.manifests import Case, Manifest, bad, base, changed, good

GOOD = {case.name: case for case in good()}
BAD = {case.name: case for case in bad()}


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_accepted(case: Case) -> None:
    assert validate_manifest(case.manifest) == []


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_refused_with_the_path_of_its_field(case: Case) -> None:
    errors = validate_manifest(case.manifest)
    paths = [error.path for error in errors]
    # An entry of a map is named `labels[a]` here and `labels.a` by the API server; the table names the map.
    assert case.path in paths or any(path.startswith(f"{case.path}[") for path in paths), paths
    # Here a message may go on with the value, which the API server shows in its own way.
    assert not case.message or any(
        error.path == case.path and error.message.startswith(case.message) for error in errors
    )


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_read_from_the_cluster(case: Case) -> None:
    read = read_manifest(case.manifest)
    assert read.problems == ()
    assert read.spec is not None


def test_a_bad_spec_is_read_as_none_with_its_problems() -> None:
    read = read_manifest(changed(base(), {"spec.hpa.template.spec.minReplicas": 11, "spec.mode": "Off"}))
    assert read.spec is None
    assert [str(problem) for problem in read.problems] == [
        "spec.hpa.template.spec.minReplicas: must not be greater than maxReplicas",
        "spec.mode: must be 'Apply', 'Review', 'Recommend' or 'Paused'",
    ]


@pytest.mark.parametrize("spec", [b'{"a":', b'{"a":"\xff"}', b""])
def test_a_spec_that_is_no_json_is_a_problem(spec: bytes) -> None:
    read = read_hvpa(RawHvpa(metadata=Meta(name="a"), spec=msgspec.Raw(spec)))
    assert read.spec is None
    assert [problem.path for problem in read.problems] == ["spec"]


def test_an_hvpa_without_a_spec_lacks_its_target() -> None:
    read = read_hvpa(msgspec.json.decode(b'{"metadata":{"name":"a"}}', type=RawHvpa))
    assert [str(problem) for problem in read.problems] == ["spec.targetRef: is required"]


def test_a_status_that_can_not_be_read_is_named() -> None:
    read = read_manifest({**base(), "status": {"replicas": 3, "axes": 1}})
    assert read.status.replicas == 3
    assert read.unreadable_status == ("axes",)


def test_a_spec_that_is_no_object_is_a_problem() -> None:
    assert parse_spec("x") == (None, (FieldError("spec", "must be an object"),))


OTHERS: dict[str, tuple[object, str]] = {
    "text": ("Hvpa", "manifest"),
    "nothing": (None, "manifest"),
    "a list": ([base()], "manifest"),
    "another kind": (changed(base(), {"kind": "Deployment"}), "kind"),
    "another version": (changed(base(), {"apiVersion": "autoscaling.k8s.io/v1"}), "apiVersion"),
    "an unknown field at the top": (changed(base(), {"data": {}}), "data"),
    "no metadata": ({"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "spec": {}}, "metadata"),
    "metadata that is text": (changed(base(), {"metadata": "a"}), "metadata"),
    "a namespace that is none": (changed(base(), {"metadata.namespace": "A B"}), "metadata.namespace"),
    "a key that is no text": (changed(base(), {"metadata": {"name": "a", 1: 2}}), "metadata[1]"),
    "an annotation that is a number": (
        changed(base(), {"metadata.annotations": {"a.b/c": 1}}),
        "metadata.annotations[a.b/c]",
    ),
}


@pytest.mark.parametrize(("document", "path"), OTHERS.values(), ids=OTHERS.keys())
def test_what_is_no_hvpa_is_refused(document: object, path: str) -> None:
    assert path in [error.path for error in validate_manifest(document)]


def test_a_generated_name_is_a_name() -> None:
    assert validate_manifest(changed(base(), {"metadata": {"generateName": "a-"}})) == []


def test_a_timestamp_that_yaml_has_read_is_accepted() -> None:
    aware = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    for stamp in (aware, aware.replace(tzinfo=None)):
        manifest = changed(base(), {"spec.hpa.template.metadata.creationTimestamp": stamp})
        assert validate_manifest(manifest) == []
    assert validate_manifest(changed(base(), {"spec.hpa.template.metadata.creationTimestamp": 3})) != []


def test_a_path_shows_list_items_and_keys_of_maps_in_brackets() -> None:
    assert dotted_path(("spec", "list", 1, "labels", "labels", "x")) == "spec.list[1].labels[labels].x"


WARNINGS: dict[str, tuple[list[Manifest], int]] = {
    "a shared boundary": ([{"startReplicaCount": 1, "lastReplicaCount": 3}, {"startReplicaCount": 3}], 0),
    "a gap": ([{"startReplicaCount": 1, "lastReplicaCount": 3}, {"startReplicaCount": 7}], 0),
    "a larger overlap": ([{"startReplicaCount": 1, "lastReplicaCount": 3}, {"startReplicaCount": 2}], 1),
    "an interval without an end before another": ([{"startReplicaCount": 1}, {"startReplicaCount": 2}], 1),
    "an interval without a start after another": ([{"lastReplicaCount": 3}, {"lastReplicaCount": 4}], 1),
}


@pytest.mark.parametrize(("intervals", "count"), WARNINGS.values(), ids=WARNINGS.keys())
def test_weight_based_scaling_intervals_that_overlap_are_warned_about(
    intervals: list[Manifest], count: int
) -> None:
    manifest = changed(base(), {"spec.weightBasedScalingIntervals": intervals})
    spec = read_manifest(manifest).spec
    assert spec is not None
    assert len(spec.warnings) == count


# --- anything --------------------------------------------------------------------------------------------
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["1e3", "3m", "-1", "Auto", "Off", "220000+0100", 10**400, dt.date(2026, 1, 1), b"x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything inside a document."""
    match document:
        case dict():
            children = list(document.items())
        case list():
            children = list(enumerate(document))
        case _:
            children = []
    inside = [places(child, (*path, key)) for key, child in children]
    return [(*path, key) for key, _ in children] + [place for paths in inside for place in paths]


@given(anything)
def test_any_document_is_judged(document: object) -> None:
    assert validate_manifest(document)


@given(manifest=st.sampled_from([case.manifest for case in good()]), data=st.data())
def test_a_manifest_with_anything_anywhere_is_judged(manifest: Manifest, data: st.DataObject) -> None:
    document = copy.deepcopy(manifest)
    *parents, last = data.draw(st.sampled_from(places(document)))
    place: Any = document
    for parent in parents:
        place = place[parent]
    place[last] = data.draw(anything)
    for error in validate_manifest(document):
        assert error.path
        assert error.message


def read_manifest(manifest: Manifest) -> HvpaObject:
    """The manifest as the cluster would hold it."""
    return read_hvpa(msgspec.json.decode(json.dumps(manifest).encode(), type=RawHvpa))
