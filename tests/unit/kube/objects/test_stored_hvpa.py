"""Hvpas in the local copy: parsed once, and only what has changed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.kube.objects.stored_hvpa import NO_LINKS, StoredHvpa, stored

SPEC: dict[str, Any] = {
    "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "hpa": {"name": "web-hpa"},
}


def hvpa(spec: Any = SPEC, status: Any = None, before: StoredHvpa | None = None) -> StoredHvpa:
    stored_hvpa = stored(
        RawHvpa(
            Meta(name="web", namespace="shop"),
            msgspec.Raw(spec if isinstance(spec, bytes) else json.dumps(spec).encode()),
            msgspec.Raw(json.dumps(status or {}).encode()),
        )
    )
    stored_hvpa.succeed(before)
    return stored_hvpa


def read(*versions: StoredHvpa) -> list[HvpaObject]:
    return [version.read() for version in versions]


def test_it_is_parsed_once_and_then_without_its_bytes() -> None:
    stored_hvpa = hvpa(status={"replicas": 2})
    assert stored_hvpa.links.target_ref.name == "web"
    assert stored_hvpa.links.hpa is not None
    assert stored_hvpa.links.hpa.name == "web-hpa"
    assert stored_hvpa.read() is stored_hvpa.read()
    assert stored_hvpa.read().status.replicas == 2
    assert (bytes(stored_hvpa.spec), bytes(stored_hvpa.status)) == (b"{}", b"{}")


def test_what_has_not_changed_is_taken_over() -> None:
    first = hvpa(status={"replicas": 2})
    first.read()
    second = hvpa(status={"replicas": 3}, before=first)
    assert second.links is first.links
    first_hvpa, two = read(first, second)
    assert two.spec is first_hvpa.spec
    assert (first_hvpa.status.replicas, two.status.replicas) == (2, 3)
    third = hvpa({**SPEC, "mode": "Off"}, {"replicas": 3}, before=second)
    assert third.read().status is two.status
    assert third.read().spec != two.spec


def test_a_version_that_was_never_read_is_passed_over() -> None:
    first = hvpa()
    first.read()
    third = hvpa(before=hvpa({**SPEC, "replicas": 4}, before=first))
    assert third.read().spec is first.read().spec


def test_other_scale_replicas_leave_the_parts_of_a_spec_as_they_are() -> None:
    first = hvpa({**SPEC, "replicas": 1})
    second = hvpa({"replicas": 2, **SPEC}, before=first)
    first_spec = first.read().spec
    second.succeed(first)
    two = second.read().spec
    assert first_spec is not None
    assert two is not None
    assert (first_spec.replicas, two.replicas) == (1, 2)
    assert two.hpa is first_spec.hpa
    assert two == hvpa({**SPEC, "replicas": 2}).read().spec


@pytest.mark.parametrize("spec", [b"[]", b'{"targetRef": 1}', b'"x"'])
def test_a_spec_that_can_not_be_read_has_no_links(spec: bytes) -> None:
    stored_hvpa = hvpa(spec)
    assert stored_hvpa.links == NO_LINKS
    assert stored_hvpa.read().spec is None
    assert stored_hvpa.read().problems
