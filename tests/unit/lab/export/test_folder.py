"""The folder: whatever the names are, only files below it that `hvpa export` wrote are touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.api.values.names import is_label, is_subdomain
from hvpa.cli.errors import CommandError
from hvpa.kube.cache.targeting import Target
from hvpa_lab.export.document import HEADER
from hvpa_lab.export.folder import Folder, file_name

PART = st.text(st.sampled_from("a./-\\0 \n~é"), min_size=1, max_size=6)


@given(PART, PART)
def test_the_name_of_every_valid_object_is_a_file_in_a_folder(namespace: str, name: str) -> None:
    if is_label(namespace) and is_subdomain(name):
        path = Path(file_name(Target(namespace, "Deployment", name)))
        assert path.parts == (namespace, f"deployment-{name}.yaml")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(content=st.binary(max_size=100))
def test_a_file_without_the_header_is_refused_and_not_listed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shop/deployment-web.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    folder = Folder(tmp_path)
    if content.startswith(HEADER.encode()):
        return
    with pytest.raises(CommandError, match="was not written by hvpa export"):
        folder.read("shop/deployment-web.yaml")
    assert list(folder.names(None)) == []


def test_a_folder_is_removed_with_its_last_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for name in ("a", "b"):
        folder.write(f"shop/{name}.yaml", HEADER)
    assert list(folder.names("shop")) == ["shop/a.yaml", "shop/b.yaml"]
    folder.remove("shop/a.yaml")
    assert list(folder.names(None)) == ["shop/b.yaml"]
    folder.remove("shop/b.yaml")
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("namespace", ["*", "sho?", "[s]hop", "**"])
def test_a_namespace_is_no_pattern(tmp_path: Path, namespace: str) -> None:
    """`hvpa export -n '*'` finds no Hvpas, and must not remove the files of all namespaces."""
    folder = Folder(tmp_path)
    folder.write("shop/a.yaml", HEADER)
    assert list(folder.names(namespace)) == []


def test_a_folder_in_the_place_of_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shop/deployment-web.yaml").mkdir(parents=True)
    with pytest.raises(CommandError, match="can't be read: Is a directory"):
        Folder(tmp_path).read("shop/deployment-web.yaml")
    with pytest.raises(CommandError, match="can't be written: File name too long"):
        Folder(tmp_path).write(f"shop/{'a' * 300}.yaml", HEADER)
    assert Folder(tmp_path).read("market/deployment-web.yaml") is None
