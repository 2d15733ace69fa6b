"""The result as a page: complete in itself, the same to the byte, and safe from whatever a scenario holds."""

from __future__ import annotations

import base64
import hashlib
import re
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.charts import standalone
from hvpa_lab.simulate.model import SimulationEvent
from hvpa_lab.simulate.report import page
from hvpa_lab.simulate.report.compare import compare
from hvpa_lab.simulate.report.page import LISTED, MOST, to_html
from tests.unit.lab.pages import Read, check_loads_nothing
from tests.unit.lab.simulate.report.results import PRICES, busy, compared, policy, result, series


def test_a_page_needs_nothing_else() -> None:
    check_loads_nothing(Read(to_html([compared(), compared()])))


def test_the_policy_lets_only_the_pages_own_scripts_run() -> None:
    read = Read(to_html([compared()]))
    (policy_of_page,) = [
        attributes
        for attributes in read.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    content = str(policy_of_page["content"])
    assert content.startswith("default-src 'none'; ")
    assert not re.search(r"https?:|\*|script-src[^;]*unsafe", content)
    scripts = [text for tag, text in read.texts if tag == "script" and not text.startswith("{")]
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in scripts
        if script.strip()
    ]
    assert re.findall(r"'sha256-([^']+)'", content) == hashes
    assert len(hashes) == 1


@pytest.mark.long
@pytest.mark.parametrize(("scenarios", "policies"), [(1, 6), (7, 6), (1, 40)])
def test_a_page_stays_below_a_megabyte(scenarios: int, policies: int) -> None:
    """More steps than a line has points, no two alike, and more events with long messages than are listed."""
    whole = busy(steps=1_500, policies=policies)
    assert len(to_html([whole] * scenarios).encode()) < 1_000_000


def test_a_peak_of_one_step_is_on_the_page() -> None:
    month = series([2] * 20_000)
    for at, value in ((17_777, 99_000.0), (50, 0.0)):
        month.unmet[at] = value
    noisy = replace(month, unmet=array("d", (amount + at % 7 for at, amount in enumerate(month.unmet))))
    (scenario,) = Read(to_html([compared(policy(series=noisy))])).data["scenarios"]
    (line,) = scenario["panels"][-1]["lines"]
    assert max(line["y"]) == 99.004
    assert 17_777 in line["x"]
    assert len(line["x"]) <= MOST


def test_the_same_result_gives_the_same_bytes() -> None:
    assert to_html([compared()]) == to_html([compared()])


def test_what_was_simulated_and_what_came_out_is_reported() -> None:
    words = Read(to_html([compared(warm_up=30.0, notes=("the load has a gap",))])).words
    for reported in (
        "day and night",
        "A web shop's week",
        "1m from 2026-11-16T00:00:00Z in steps of 15s; the first 30s not counted; seed 7",
        "the load has a gap",
        "1,234",
        "2026-11-16 00:00:45.500000",
        "app of web-1 used 1.1Gi of 1Gi",
        "10s / 10s",
    ):
        assert reported in words


def test_what_nothing_beats_is_marked_and_nothing_else_is_praised() -> None:
    text = to_html([compared()])
    assert text.count('<tr class="unbeaten">') == 2, "one policy, in both tables"
    assert "<b>" not in text.replace("<b>Bold</b>", "")


def test_the_conclusion_stands_before_all_else() -> None:
    words = Read(to_html([compared()])).words
    assert 0 < words.index("hvpa costs 18 % less than hpa at equal unmet demand") < words.index("Comparison")


def test_the_plots_have_their_data() -> None:
    (scenario,) = Read(to_html([compared(warm_up=15.0)])).data["scenarios"]
    assert scenario["start"] == 1_794_787_200
    assert (scenario["step"], scenario["duration"], scenario["warmUp"]) == (15.0, 60.0, 15.0)
    first = scenario["policies"][0]
    assert (first["name"], round(first["cost"], 3), first["unmet"]) == ("hvpa", 37.419, 0.02)
    assert len({policy["colour"] for policy in scenario["policies"]}) == 2
    assert scenario["panels"][0]["title"] == "Load"
    assert [line["name"] for line in scenario["panels"][1]["lines"]] == ["demand", "hvpa", "hpa"]


def test_scenarios_have_sections_and_contents() -> None:
    read = Read(to_html([compared(), compared(name="flash crowd")]))
    assert [attributes["id"] for attributes in read.all("section")] == ["scenario-0", "scenario-1"]
    assert [attributes["href"] for attributes in read.all("a")] == ["#scenario-0", "#scenario-1"]
    assert not Read(to_html([compared()])).all("nav")
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_what_there_is_none_of_is_left_out() -> None:
    bare = compared(policy(events=(), reactions=()), description="")
    read = Read(to_html([bare]))
    assert "reaction to a rise" not in read.words
    assert not read.all("form")
    assert "None." in read.words
    assert not [attributes for attributes in read.all("ul") if attributes.get("class") == "note"]


def test_without_policies_a_page_is_still_a_page() -> None:
    (scenario,) = Read(to_html([compare(replace(result(), policies=()), PRICES)])).data["scenarios"]
    assert scenario["policies"] == scenario["panels"] == []


def test_a_long_list_is_cut_and_says_so() -> None:
    events = tuple(SimulationEvent(float(at), "Replicas", "HPA", "1 -> 2") for at in range(1000))
    read = Read(to_html([compared(policy(events=events, dropped_events=500))]))
    assert len([attributes for attributes in read.all("tr") if "data-policy" in attributes]) == LISTED
    assert f"{1500 - LISTED:,} more are not listed." in read.words
    assert len(read.all("tr")) > LISTED, "rows of the other tables, too"


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
                    compared(
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


def test_the_script_never_makes_markup_of_a_text() -> None:
    for script in (Path(page.__file__).parent / "page.js", Path(standalone.__file__).parent / "charts.js"):
        markup = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\("
        assert not re.search(markup, script.read_text())


def test_a_page_has_the_vendored_library_and_its_licence() -> None:
    folder, text = Path(standalone.__file__).parent, to_html([compared()])
    for name in ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE.txt", "charts.js", "charts.css"):
        assert (folder / name).read_text() in text


def test_names_are_read_as_they_were_written() -> None:
    name = """<script>"it's" & </script>"""
    read = Read(to_html([compared(policy(name), name=name)]))
    assert read.words.count(name) >= 3
    assert read.data["scenarios"][0]["policies"][0]["name"] == name
