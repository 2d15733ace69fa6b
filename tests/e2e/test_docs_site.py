"""The docs as a site, built by mkdocs as `make docs` does (mkdocs.yml, tools/docs_site.py)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = ROOT / ".venv-docs/bin/mkdocs"
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}
"""Elements by which a browser loads something, and the attribute that says from where."""
BAD = """\
# Bad

[page](nowhere.md), [section](decision.md#nowhere), [file](../config/nowhere.yaml), [out](../../outside.md),
[its own](#nowhere), ![picture](nowhere.svg), [another's](../README.md#nowhere).

```
[code](is-no-link.md)
```
"""


class Loaded(HTMLParser):
    """Where a page loads something from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag != "link" or attributes.get("rel") != "canonical":
            self.addresses.append(attributes.get(LOADS.get(tag, "")) or "")


def build(root: Path, site: Path, repo_url: str = "") -> subprocess.CompletedProcess[str]:
    """What `make docs` does, for the docs below `root`."""
    if not MKDOCS.exists():
        pytest.fail("no .venv-docs: `make venv-docs` sets it up", pytrace=False)
    return subprocess.run(
        [MKDOCS, "build", "--strict", "--site-dir", site],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "REPO_URL": repo_url},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository's docs, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_on_the_site_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {page.relative_to(site).as_posix(): page.read_text() for page in site.rglob("*.html")}
    docs = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    expected = {re.sub(r"README$", "index", page.with_suffix("").as_posix()) + ".html" for page in docs}
    outside = {"index.html", "changelog.html", "contributing.html", "chart.html", "404.html"}
    assert pages.keys() == expected | outside
    for name, text in pages.items():
        loaded = Loaded(text).addresses
        assert any(loaded), name
        assert [address for address in loaded if re.match(r"(?:https?:)?//", address)] == [], name
    assert 'rel="preconnect"' not in "".join(pages.values())
    assert (site / "search/search_index.json").exists()


def test_links_out_of_the_docs_lead_to_copies_or_folders(site: Path) -> None:
    started = (site / "getting-started.html").read_text()
    assert 'href="repository/examples/tutorial/web.yaml"' in (site / "tutorial.html").read_text()
    assert 'href="chart.html"' in started
    sample = site / "repository/examples/tutorial/web.yaml"
    assert sample.read_bytes() == (ROOT / "examples/tutorial/web.yaml").read_bytes()
    assert '<a href="repository/examples">' not in (site / "index.html").read_text()


def test_what_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    for folder in ("tools", "charts/hvpa", "docs", "config"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("mkdocs.yml", "tools/docs_site.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "charts/hvpa/README.md", "docs/decision.md"):
        (tmp_path / name).write_text("# A page\n")
    (tmp_path / "config/there.yaml").touch()
    good = tmp_path / "docs/good.md"
    good.write_text(
        "# Good\n\n[file](../config/there.yaml), [folder](../config), [home](../README.md#a-page)\n"
    )
    built = build(tmp_path, tmp_path / "site", "https://example.test/you/hvpa")
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "site/good.html").read_text()
    assert 'href="https://example.test/you/hvpa/blob/main/config/there.yaml"' in page
    assert 'href="https://example.test/you/hvpa/blob/main/config"' in page
    assert 'href="index.html#a-page"' in page
    (tmp_path / "docs/bad.md").write_text(BAD)
    (tmp_path / "docs/unknown").mkdir()
    (tmp_path / "docs/unknown/page.md").write_text("# In no part of the navigation\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
    named = (
        "nowhere.md",
        "decision.md#nowhere",
        "config/nowhere.yaml",
        "../../outside.md",
        "link '#nowhere'",
        "nowhere.svg",
    )
    for name in (*named, "index.md#nowhere"):
        assert sum(name in line for line in warnings) == 1, (name, built.stderr)
    assert "unknown/page.md" in built.stderr
    assert "is-no-link" not in built.stderr
