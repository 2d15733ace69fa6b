"""The result as a page: complete in itself, the same to the byte, and safe from whatever a scenario holds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs

from hvpa.simulate import page
from hvpa.simulate.model import SimulationEvent
from hvpa.simulate.page import LISTED, MARKED, to_html
from tests.unit.simulate.results import policy, result

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


@pytest.fixture(autouse=True)
def small_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plotly's script is 5 MB, and not ours to test."""
    monkeypatch.setattr(page, "get_plotlyjs", lambda: "/* plotly */")


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
        (text,) = [text for tag, text in self.texts if tag == "script" and text.startswith('{"eventKinds"')]
        return json.loads(text)

    @property
    def words(self) -> str:
        """What is read without the plots."""
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))


def test_a_page_needs_nothing_else() -> None:
    read = Read(to_html([result(), result()]))
    for tag, attributes in read.elements:
        for name in LOADING & attributes.keys():
            assert (tag, name) == ("a", "href"), f"{tag} {name}"
            assert str(attributes[name]).startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert not {"link", "iframe", "img", "object", "embed", "base"} & {tag for tag, _ in read.elements}
    styles = " ".join(text for tag, text in read.texts if tag == "style")
    assert not re.search(r"url\(|@import|@font-face|//", styles)


def test_the_policy_lets_only_the_pages_own_scripts_run() -> None:
    read = Read(to_html([result()]))
    (policy_of_page,) = [
        one for one in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy"
    ]
    content = str(policy_of_page["content"])
    assert content.startswith("default-src 'none'; ")
    assert not re.search(r"https?:|\*|script-src[^;]*unsafe", content)
    scripts = [text for tag, text in read.texts if tag == "script" and not text.startswith("{")]
    hashes = [
        base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts if one.strip()
    ]
    assert re.findall(r"'sha256-([^']+)'", content) == hashes
    assert len(hashes) == 2


def test_the_real_plotly_is_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    text = to_html([result()])
    assert "plotly.js v" in text
    assert "</script" not in get_plotlyjs().lower()
    assert len(text) < 6_000_000


def test_the_same_result_gives_the_same_bytes() -> None:
    assert to_html([result()]) == to_html([result()])


def test_what_was_simulated_and_what_came_out_is_told() -> None:
    words = Read(to_html([result(warm_up=30.0, notes=("the load has a gap",))])).words
    for told in (
        "day and night",
        "A web shop's week",
        "1m from 2026-11-16T00:00:00Z in steps of 15s; the first 30s not counted; seed 7",
        "the load has a gap",
        "1,234",
        "2026-11-16 00:00:45.500000",
        "app of web-1 used 1.1Gi of 1Gi",
        "10s / 10s",
    ):
        assert told in words


def test_the_least_of_a_column_is_marked() -> None:
    text = to_html([result()])
    assert "<b>1,234</b>" in text
    assert "<b>1,500</b>" not in text
    assert "<b>800</b>" not in text


def test_the_plots_have_their_data() -> None:
    (scenario,) = Read(to_html([result(warm_up=15.0)])).data["scenarios"]
    assert scenario["start"] == 1_794_787_200_000
    assert (scenario["step"], scenario["duration"], scenario["warmUp"]) == (15.0, 60.0, 15.0)
    first = scenario["policies"][0]
    assert (first["name"], first["cost"]) == ("hvpa", [1234.5, 17.25, 96.0])
    assert first["events"] == {
        "x": [30.0, 45.5],
        "kind": ["Replicas", "OOM"],
        "text": ["Replicas (HPA): 2 -&gt; 4", "OOM (OOMKilled): app of web-1 used 1.1Gi of 1Gi"],
    }
    assert len({one["colour"] for one in scenario["policies"]}) == 2
    assert scenario["panels"][0]["title"] == "Load"


def test_scenarios_have_sections_and_contents() -> None:
    read = Read(to_html([result(), result(name="flash crowd")]))
    assert [one["id"] for one in read.all("section")] == ["scenario-0", "scenario-1"]
    assert [one["href"] for one in read.all("a")] == ["#scenario-0", "#scenario-1"]
    assert not Read(to_html([result()])).all("nav")
    ids = [one["id"] for _, one in read.elements if "id" in one]
    assert len(set(ids)) == len(ids)


def test_what_there_is_none_of_is_left_out() -> None:
    bare = result(policy(events=(), reactions=()), description="")
    read = Read(to_html([bare]))
    assert "Reaction to a rise" not in read.words
    assert not read.all("form")
    assert "None." in read.words
    assert "class=note>" not in to_html([bare]).replace("<p class=note>", "")


def test_without_policies_a_page_is_still_a_page() -> None:
    (scenario,) = Read(to_html([replace(result(), policies=())])).data["scenarios"]
    assert scenario["policies"] == scenario["panels"] == []


def test_a_long_list_is_cut_and_says_so() -> None:
    events = tuple(SimulationEvent(float(at), "Replicas", "HPA", "1 -> 2") for at in range(1000))
    read = Read(to_html([result(policy(events=events, dropped_events=500))]))
    assert len([one for one in read.all("tr") if "data-policy" in one]) == LISTED
    assert f"{1500 - LISTED:,} more are not listed." in read.words
    (scenario,) = read.data["scenarios"]
    assert len(scenario["policies"][0]["events"]["x"]) == MARKED


def test_a_reason_that_says_nothing_more_is_not_repeated() -> None:
    events = (SimulationEvent(0.0, "OOM", "OOM", "m"), SimulationEvent(1.0, "Event", "", "n"))
    (scenario,) = Read(to_html([result(policy(events=events))])).data["scenarios"]
    assert scenario["policies"][0]["events"]["text"] == ["OOM: m", "Event: n"]


@given(
    st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            "<!--",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "&lt;b&gt;",
            "]]>",
            "\u2028</style>",
            "\x00\x1b[0m",
            "<a href='javascript:alert(1)'>x</a>",
        ]
    )
)
def test_no_text_of_a_scenario_becomes_markup(text: str) -> None:
    def whole(value: str) -> Read:
        return Read(
            to_html(
                [
                    result(
                        policy(value, events=(SimulationEvent(0.0, value, value, value),)),
                        name=value,
                        description=f"d{value}",
                        notes=(value,),
                    )
                ]
            )
        )

    read = whole(text)
    assert read.shape == whole("plain").shape
    (scenario,) = read.data["scenarios"]
    drawn = json.dumps([scenario["policies"], scenario["panels"]])
    assert "<" not in drawn.replace("<br>", "")


def test_names_are_read_as_they_were_written() -> None:
    name = """<script>"it's" & </script>"""
    read = Read(to_html([result(policy(name), name=name)]))
    assert read.words.count(name) >= 3
    assert (
        read.data["scenarios"][0]["policies"][0]["name"] == """&lt;script&gt;"it's" &amp; &lt;/script&gt;"""
    )
