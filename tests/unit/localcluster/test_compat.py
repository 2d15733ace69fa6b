"""The table of `make compat`: what it counts, and that the page has the versions that are pinned."""

from __future__ import annotations

import datetime as dt
import xml.etree.ElementTree as ET

import pytest

from localcluster.programs.build import kubernetes_version, other_versions
from tests.e2e import compat

MANIFESTS, INSTALLED, POLICY = (
    "tests.e2e.test_manifests",
    "tests.e2e.bare.installed.test_installed",
    "tests.e2e.bare.installed.test_policy",
)


def report(*cases: tuple[str, str, str]) -> ET.Element:
    """pytest's report of these tests: module, name, and the element inside that says what is wrong."""
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite")
    for module, name, wrong in cases:
        case = ET.SubElement(suite, "testcase", classname=module, name=name)
        if wrong:
            ET.SubElement(case, wrong)
    return root


def test_a_test_counts_once_in_the_column_that_it_belongs_to() -> None:
    cells = compat.counted(
        report(
            (MANIFESTS, "test_a_good_manifest_is_accepted_and_read_back[a]", ""),
            (MANIFESTS, "test_a_good_manifest_is_accepted_and_read_back[b]", ""),
            (MANIFESTS, "test_every_field_is_explained", ""),
            (INSTALLED, "test_a_sample_is_accepted[web.yaml]", ""),
            (INSTALLED, "test_a_step_is_made_on_both_axes", ""),
        )
    )
    assert {name: cell for name, cell in cells.items() if cell != "**0 of 0**"} == {
        "good manifests taken": "2",
        "CRD: costs, explain, scale, status": "1",
        "samples": "1",
        "a step of the operator": "1",
    }


@pytest.mark.parametrize("wrong", ["failure", "error", "skipped"])
def test_what_did_not_pass_is_reported(wrong: str) -> None:
    cells = compat.counted(report((POLICY, "test_a", ""), (POLICY, "test_b", wrong)))
    assert cells["policies of `config/policy`"] == "**1 of 2**"


def test_the_files_of_the_columns_are_there() -> None:
    files = {file for files, _ in compat.COLUMNS.values() for file in files}
    assert [file for file in sorted(files) if not (compat.ROOT / file).exists()] == []


def test_the_page_has_the_table_of_the_pinned_versions() -> None:
    rows, page = compat.written(), compat.PAGE.read_text()
    assert list(rows) == list(other_versions().values()), "run `make compat COMPAT_ARGS=--write`"
    assert compat.BEGIN + compat.table(rows) + compat.END in page, "run `make compat COMPAT_ARGS=--write`"
    assert [row for row in rows.values() if "**" in row] == [], "a version on which something failed"
    assert f" {kubernetes_version().removeprefix('v')}," in page, "the version of all other tests"


def test_a_row_has_version_counts_and_day() -> None:
    cells = dict.fromkeys(compat.COLUMNS, "7")
    assert (
        compat.row("v1.30.14", cells, dt.date(2026, 11, 22))
        == f"| 1.30.14 |{' 7 |' * len(cells)} 2026-11-22 |"
    )


def test_the_makefile_names_the_oldest_and_the_newest_version() -> None:
    oldest, *_, newest = other_versions()
    assert f"on API servers {oldest} to {newest} " in (compat.ROOT / "Makefile").read_text()
    assert f"API servers from {oldest} on" in (compat.ROOT / "CHANGELOG.md").read_text()
