"""The page for managers: complete in itself, and safe from whatever others wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.support import NOW, Doc, Shell, with_fields, without
from tests.unit.lab.pages import Read, check_loads_nothing


def drawn(shell: Shell, documents: list[Doc], *flags: str) -> str:
    """The page of a report."""
    page = shell.folder / "page.html"
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW, "--html", str(page), *flags)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out
    return page.read_text(encoding="utf-8")


def test_the_page_has_the_sums_the_groups_and_the_first_workloads(shell: Shell, shop: list[Doc]) -> None:
    page = drawn(shell, shop, "--by", "namespace,team", "--top", "1")
    words = " ".join(Read(page).words.split())
    for reported in (
        "3 workloads at 2026-11-21T10:00:00Z. Nothing was changed.",
        "197.15 requested per month",
        "-36.27 saving per month with Hvpas: they would cost more",
        "53.17 of the saving rests on at least a day of VPA history or a week of usage, with fixed replicas",
        "120 % / ? of the requested CPU / memory is used now",
        "By namespace, team",
        "(none)",
        "Largest differences: 1 of 3 workloads",
        "Deployment shop/web",
        "LimitTooSmall, RequestTooSmall, UtilizationBesideVpa",
        "1 workloads without any measurement, and 1 objects that could not be used",
    ):
        assert reported in words
    assert "shop/worker" not in words


def test_the_page_needs_nothing_else_and_runs_no_scripts(shell: Shell, shop: list[Doc]) -> None:
    page = drawn(shell, shop, "--by", "namespace")
    read = Read(page)
    check_loads_nothing(read)
    assert not read.all("script")
    (policy,) = [meta for meta in read.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy["content"]).startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert page == drawn(shell, shop, "--by", "namespace")


def test_what_others_wrote_stays_text(shell: Shell, shop: list[Doc]) -> None:
    label = "<script>alert(1)</script>\u202e"
    documents = with_fields(shop, "Deployment", "web", {"metadata.labels": {"team": label}})
    page = drawn(shell, documents, "--by", "team")
    assert not Read(page).all("script")
    assert "&lt;script&gt;" in page
    assert page.replace("\n", "").isprintable()


def test_the_currency_is_that_of_the_prices(shell: Shell, shop: list[Doc]) -> None:
    prices = shell.file("CPU: 0\nRAM: 0\ncurrencyCode: EUR\n", "prices.yaml")
    words = Read(drawn(shell, shop, "--prices", prices, "--by", "namespace")).words
    assert "0 EUR" in words


def test_without_workloads_the_page_is_empty(shell: Shell, shop: list[Doc]) -> None:
    words = Read(drawn(shell, without(shop, "HPA", "VPA"))).words
    assert "0 workloads" in words
    assert "none" in words


@pytest.mark.parametrize("flag", ["page.html", "missing/page.html"])
def test_a_page_that_can_not_be_written_is_refused_before_the_work(shell: Shell, flag: str) -> None:
    Path(shell.folder / "page.html").mkdir()
    error = shell.refuses("report", "-f", "x.yaml", "--html", str(shell.folder / flag))
    assert error.startswith("hvpa: error: --html: ")
