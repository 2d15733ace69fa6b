"""HTML pages as a browser reads them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

LOADING = {
    "src",
    "srcset",
    "href",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "xlink:href",
    "ping",
}
"""Attributes by which an element loads or leads somewhere."""


class Read(HTMLParser):
    """A page as a browser reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open, data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def shape(self) -> list[str]:
        """The elements without their contents."""
        return [f"{tag} {' '.join(sorted(attributes))}" for tag, attributes in self.elements]

    @property
    def data(self) -> Any:
        """What the plots are drawn from."""
        (text,) = [text for tag, text in self.texts if tag == "script" and text.startswith('{"scenarios"')]
        return json.loads(text)

    @property
    def words(self) -> str:
        """What is read without the plots."""
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))


def check_loads_nothing(read: Read) -> None:
    """No element of the page loads anything or leads to another page."""
    for tag, attributes in read.elements:
        for name in LOADING & attributes.keys():
            assert (tag, name) == ("a", "href"), f"{tag} {name}"
            assert str(attributes[name]).startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert not {"link", "iframe", "img", "object", "embed", "base"} & {tag for tag, _ in read.elements}
    styles = " ".join(text for tag, text in read.texts if tag == "style")
    assert not re.search(r"url\(|@import|@font-face|//", styles)
