"""Hooks for building the site with mkdocs (mkdocs.yml): pages outside of `docs/`, patterns in the navigation, and links
that lead out of `docs/`. GitHub follows those links unchanged."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = get_plugin_logger("docs_site")

PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "charts/hvpa/README.md": "chart.md",
}
"""Pages outside of `docs/`, and their paths on the site."""
COPIES: Final = "repository"
"""Folder of the site for other linked files, while the repository has no public address."""
SOURCES: Final = {uri: source for source, uri in PAGES.items()}
_FENCE: Final = re.compile(r"(^ *```.*?^ *```\n)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[((?:[^][]|\[[^][]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
"""Text, path and anchor of a link or picture within the repository."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of `docs/`, and expand the navigation."""
    for source, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(_root(config) / source)))
    config.nav = navigation(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to the paths of their targets on the site."""

    def replaced(match: re.Match[str]) -> str:
        return link(match, page.file.src_uri, config, files)

    parts = _FENCE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(replaced, part) for number, part in enumerate(parts))


def navigation(entries: Iterable[Any], pages: list[str]) -> list[Any]:
    """Return the entries without missing pages, and with pages instead of patterns."""
    entries = list(entries)
    named = set(_names(entries))

    def written_out(entry: Any) -> list[Any]:
        if isinstance(entry, dict):
            return [
                {title: [page for nested in inner for page in written_out(nested)]}
                for title, inner in entry.items()
            ]
        # `*` does not match a slash: a pattern covers a single folder
        matching = [
            page for page in pages if fnmatch.fnmatch(page, entry) and page.count("/") == entry.count("/")
        ]
        return [page for page in sorted(matching) if page == entry or page not in named]

    return [page for entry in entries for page in written_out(entry)]


def link(match: re.Match[str], uri: str, config: MkDocsConfig, files: Files) -> str:
    """Return a link of the page `uri` as it is on the site. Warns if its target is missing, which fails the build."""
    text, path, anchor = match[1], match[2], match[3] or ""
    source = SOURCES.get(uri, f"docs/{uri}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    file = _root(config) / target
    if file.is_dir() and (file / "README.md").exists():
        target, file = f"{target}/README.md", file / "README.md"
    if target in PAGES or target.startswith("docs/"):
        there = PAGES.get(target, target.removeprefix("docs/"))
    elif target.startswith("..") or not file.exists():
        log.warning("%s links to %s, which is not there", source, path)
        return text
    elif config.repo_url:
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{target}{anchor})"
    elif file.is_dir():
        return f"`{target}`" if text == target else f"{text} (`{target}`)"
    else:
        there = f"{COPIES}/{target}"
        if files.get_file_from_path(there) is None:
            files.append(File.generated(config, there, abs_src_path=str(file)))
    return f"[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"


def _names(entries: Iterable[Any]) -> Iterable[str]:
    for entry in entries:
        if isinstance(entry, dict):
            for inner in entry.values():
                yield from _names(inner)
        else:
            yield entry


def _root(config: MkDocsConfig) -> Path:
    return Path(config.config_file_path).parent
