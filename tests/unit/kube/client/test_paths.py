"""Paths of requests: whatever a name is, it stays one segment, or there is no request."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from hvpa.kube.client.paths import PathError, api_path, escaped_path, valid_path
from hvpa.kube.objects.resources import PODS, custom_resource

names = st.one_of(st.text(), st.text("./%?#\\;&=\n\r\x00a", max_size=6))


@given(names, names)
def test_any_text_stays_one_segment_below_its_collection(namespace: str, name: str) -> None:
    try:
        path = PODS.path(namespace, name, "resize")
    except PathError:
        return
    before, pods, escaped, resize = path.removeprefix("/api/v1/namespaces/").split("/")
    assert (unquote(before), pods, unquote(escaped), resize) == (namespace, "pods", name, "resize")
    assert valid_path(path) == path
    parts = urlsplit(f"https://server{path}")
    assert (parts.path, parts.query, parts.fragment) == (path, "", "")
    assert URL(f"https://server{path}", encoded=True).raw_path == path
    assert URL(f"https://server{path}").raw_path.count("/") == path.count("/")


@given(st.text(), st.text())
def test_any_api_version_is_a_group_and_a_version(api_version: str, plural: str) -> None:
    try:
        path = custom_resource(api_version, "Rollout", plural).path("shop", "web", "scale")
    except PathError:
        return
    root, *version, namespaces, shop, last, web, scale = path.removeprefix("/").split("/")
    assert (root, len(version)) in (("apis", 2), ("api", 1))
    assert "/".join(map(unquote, version)) == api_version
    assert (namespaces, shop, unquote(last), web, scale) == ("namespaces", "shop", plural, "web", "scale")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "%", "/", "\ud800"])
def test_what_nothing_can_be_called_is_not_requested(name: str) -> None:
    with pytest.raises(PathError, match="is not a valid name in a cluster"):
        escaped_path("api", name)


def test_where_an_api_version_is_served() -> None:
    assert api_path("v1") == "/api/v1"
    assert api_path("apps/v1") == "/apis/apps/v1"


@pytest.mark.parametrize(
    "path",
    [
        *("", "x", "/a?b", "/a#b", "/a\n", "/a b", "/a/../b", "/./a", "/a/.."),
        *("//a", "/a//b", "/a/", "/é", "/a\x00", "/a\\b"),
    ],
)  # fmt: skip
def test_what_is_no_path_is_not_sent(path: str) -> None:
    with pytest.raises(PathError, match="is not a request path"):
        valid_path(path)


def test_paths_that_are_sent() -> None:
    for path in ("/", "/version", "/api/v1/namespaces/a.b/pods/web-0", "/apis/a/v1/x/a%20b", "/...", "/a..b"):
        assert valid_path(path) == path
