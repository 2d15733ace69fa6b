"""The parts of `make publish` that need no registry. (Publishing: tests/e2e/test_publish.py.)"""

from __future__ import annotations

import ipaddress
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tools import publish, release
from tools.dependencies.lockfile import ROOT
from tools.distributions import ReleaseError

VALUES = (ROOT / "charts/hvpa/values.yaml").read_text()


@pytest.mark.parametrize(
    "registry",
    [
        "registry.example.com",
        "registry.example.com/you",
        "localhost:5000",
        "127.0.0.1:5000/a/b-c",
        "registry:5000/x",
    ],
)
def test_a_registry_by_name_or_on_this_machine_is_accepted(registry: str) -> None:
    publish.check_registry(registry)


@pytest.mark.parametrize(
    ("registry", "complaint"),
    [
        ("", "REGISTRY is needed: make publish REGISTRY="),
        ("https://registry.example.com", "is not HOST"),
        ("oci://registry.example.com/you", "is not HOST"),
        ("registry.example.com/", "is not HOST"),
        ("registry.example.com/You", "is not HOST"),
        ("registry.example.com/you/hvpa:1", "is not HOST"),
        ("registry.example.com/a//b", "is not HOST"),
        ("[::1]:5000/you", "is not HOST"),
        ("-v", "is not HOST"),
        ("you/images", "names no host"),
        ("10.0.0.7:5000/you", "10.0.0.7: crane may use plain HTTP"),
        ("192.168.1.2", "plain HTTP"),
        ("8.8.8.8/you", "plain HTTP"),
    ],
)
def test_a_bad_registry_is_refused_with_the_reason(registry: str, complaint: str) -> None:
    with pytest.raises(publish.PublishError, match=re.escape(complaint)):
        publish.check_registry(registry)


@given(st.one_of(st.text(), st.from_regex(publish.REGISTRY, fullmatch=True)))
def test_whatever_is_accepted_is_a_name_that_a_release_can_have(registry: str) -> None:
    try:
        publish.check_registry(registry)
    except publish.PublishError:
        return
    changed = yaml.safe_load(release.with_default_image(VALUES, f"{registry}/hvpa:0.1.0", "0.1.0"))
    assert changed["image"]["repository"] == f"{registry}/hvpa"


@given(st.ip_addresses(v=4).filter(lambda address: not address.is_loopback))
def test_no_address_of_another_machine_is_accepted(address: ipaddress.IPv4Address) -> None:
    with pytest.raises(publish.PublishError):
        publish.check_registry(f"{address}:5000/you")


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("hvpa:0.1.0", "", ""),
        ("registry.example.com/you/hvpa:0.1.0", "registry.example.com/you/hvpa", ""),
        ("localhost:5000/hvpa:9", "localhost:5000/hvpa", "9"),
    ],
)
def test_the_chart_gets_the_image_of_its_registry(image: str, repository: str, tag: str) -> None:
    before, after = VALUES, release.with_default_image(VALUES, image, "0.1.0")
    wanted = yaml.safe_load(before)
    wanted["image"] |= {"repository": repository, "tag": tag}
    assert yaml.safe_load(after) == wanted


@pytest.mark.parametrize(
    "image", ["", "hvpa", "you/other:1", "hvpa:", 'x"\nhvpa:1', "hvpa@sha256:00", "hvpa:a b"]
)
def test_a_bad_image_name_is_refused(image: str) -> None:
    with pytest.raises(ReleaseError, match="is no image name like"):
        release.with_default_image(VALUES, image, "0.1.0")


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(ReleaseError, match=r"values\.yaml has no image\.repository"):
        release.with_default_image("image: {}\n", "example.com/hvpa:1", "1")
