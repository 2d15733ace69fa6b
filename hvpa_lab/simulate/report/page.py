"""A simulation's result as a self-contained HTML page: no network, no fonts, no other files.

The page is smaller than 1 MB: the numbers of points and of rows are limited. All text from a scenario is escaped. The
content security policy allows only the embedded script, and no requests. The same results give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import groupby
from typing import Any, Final

from hvpa_lab.simulate.report.compare import Comparison, PolicyRank, conclusion
from hvpa_lab.simulate.report.figures import PHASES, RESOURCES, VERDICT, Figure, reactions
from hvpa_lab.simulate.report.json import when
from hvpa_lab.simulate.report.plots import choose, colour, dash, panels
from hvpa_lab.simulate.report.table import facts, notes, priced
from hvpa_lab.simulate.report.text import plain_text, short

POINTS: Final = 30_000
"""Maximum points of all lines together, about 15 bytes each."""
FEWEST: Final = 40
"""Points that each line may have in any case."""
MOST: Final = 1_000
"""Maximum points of a line: few screens have more columns."""
LISTED: Final = 800
"""Maximum number of events of all policies together, in the list and as marks."""
FEWEST_LISTED: Final = 20
"""Events that each policy may have in any case."""
LONGEST_MESSAGE: Final = 200
LONGEST_NAME: Final = 60


def to_html(comparisons: Sequence[Comparison]) -> str:
    """The HTML page with all results."""
    script = _file_text("page.js")
    listed = max(
        FEWEST_LISTED, LISTED // max(1, sum(len(comparison.standings) for comparison in comparisons))
    )
    limit = _limit(comparisons)
    data = {"scenarios": [_data(comparison, limit) for comparison in comparisons]}
    title = ", ".join(plain_text(comparison.result.name) for comparison in comparisons)
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{_escaped(short(title, 120))} – hvpa simulate</title>\n",
            f"<style>\n{_file_text('page.css')}</style>\n</head>\n<body>\n<main>\n",
            "<noscript><p class=note>The plots need JavaScript; the rest doesn't.</p></noscript>\n",
            _contents(comparisons),
            *(_section(number, comparison, listed) for number, comparison in enumerate(comparisons)),
            "</main>\n",
            f'<script type="application/json" id="data">{_embedded(data)}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _file_text(name: str) -> str:
    """The text of a file in this folder, to embed in the page."""
    return resources.files("hvpa_lab.simulate.report").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """The content security policy, which allows only this script and inline styles."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _embedded(data: object) -> str:
    """The data as JSON that can't close the element around it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _escaped(text: str) -> str:
    return html.escape(plain_text(text))


# --- data of the plots ----------------------------------------------------------------------------------------
def _limit(comparisons: Sequence[Comparison]) -> int:
    """The maximum points of each line, so that all lines together have at most `POINTS`."""
    lines = sum(len(panel.lines) for comparison in comparisons for panel in panels(comparison.result, FEWEST))
    return min(MOST, max(FEWEST, POINTS // max(1, lines)))


def _data(comparison: Comparison, limit: int) -> dict[str, Any]:
    """The data that page.js draws. Texts are not escaped: page.js does that."""
    result = comparison.result
    return {
        "start": round(result.start.timestamp() * 1000),
        "duration": result.duration,
        "warmUp": result.warm_up,
        "step": result.step,
        "policies": [
            {
                "name": short(standing.name, LONGEST_NAME),
                "colour": colour(at),
                "dash": dash(at),
                "cost": standing.cost,
                "beaten": bool(standing.beaten_by),
                "unmet": 100 * standing.policy.totals.unmet_demand_share,
            }
            for at, standing in enumerate(comparison.standings)
        ],
        "panels": [
            {
                "title": panel.title,
                "unit": panel.unit,
                "lines": [
                    {
                        "policy": line.policy,
                        "dash": line.dash,
                        "steps": line.steps,
                        "x": line.indices,
                        "y": line.values,
                    }
                    for line in panel.lines
                ],
            }
            for panel in panels(result, limit)
        ],
    }


# --- text -----------------------------------------------------------------------------------------------------
def _contents(comparisons: Sequence[Comparison]) -> str:
    """The links to the scenarios; empty for a single scenario."""
    if len(comparisons) < 2:
        return ""
    entries = "".join(
        f'<li><a href="#scenario-{number}">{_escaped(comparison.result.name)}</a></li>'
        for number, comparison in enumerate(comparisons)
    )
    return f"<nav><ul>{entries}</ul></nav>\n"


def _section(number: int, comparison: Comparison, listed: int) -> str:
    result, remarks = comparison.result, notes(comparison)
    described = f"<p class=description>{_escaped(result.description)}</p>\n" if result.description else ""
    return "".join(
        (
            f'<section id="scenario-{number}">\n<header>\n<h1>{_escaped(result.name)}</h1>\n',
            described,
            f"<p class=facts>{_escaped(facts(result))}<br>{_escaped(priced(comparison))}</p>\n</header>\n",
            _card("Conclusion", _list("conclusion", conclusion(comparison))),
            f"{_list('note', remarks)}\n" if remarks else "",
            _card(
                "Comparison",
                f"{_comparison(comparison, VERDICT)}\n<p class=hint><b>Bold</b>: no policy beats it on cost and "
                "unmet demand together. Point at a column heading to see its meaning.</p>",
            ),
            _card(
                "Cost and unmet demand",
                "<p class=hint>Lower left is better. Filled: no policy beats it on both.</p>"
                f'<div class=plot id="cost-{number}"></div>',
            ),
            _card(
                "Over time",
                "<p class=hint>Drag to zoom, double-click to see all. A policy's name shows or hides it.</p>"
                f'<div class=plot id="time-{number}"></div>',
            ),
            _card("Details of costs and restarts", _comparison(comparison, RESOURCES)),
            _reactions(comparison),
            _events(number, comparison, listed),
            "</section>\n",
        )
    )


def _card(title: str, body: str) -> str:
    return f"<article>\n<h2>{title}</h2>\n{body}\n</article>\n"


def _list(kind: str, texts: Iterable[str]) -> str:
    return f"<ul class={kind}>{''.join(f'<li>{_escaped(text)}</li>' for text in texts)}</ul>"


def _table(head: str, rows: str) -> str:
    return f"<div class=wide><table class=figures>{head}</thead>\n<tbody>\n{rows}</tbody></table></div>"


def _swatch(at: int, policy: PolicyRank) -> str:
    """The HTML of a policy's colour, number and name."""
    return f'<span class=swatch style="background:{colour(at)}"></span>{_numbered(at, policy)}'


def _numbered(at: int, policy: PolicyRank) -> str:
    return f"{at + 1} {html.escape(short(policy.name, LONGEST_NAME))}"


def _comparison(comparison: Comparison, figures: Sequence[Figure]) -> str:
    """The table of these figures, with a row per policy."""
    top = under = ""
    rows = [
        f"<tr{'' if standing.beaten_by else ' class=unbeaten'}><th scope=row>{_swatch(at, standing)}</th>"
        f"<td class=kind>{standing.policy.kind}</td>"
        for at, standing in enumerate(comparison.standings)
    ]
    for group, grouped in groupby(figures, key=lambda column: column.group):
        first, members = " class=first", list(grouped)
        for figure in members:
            under += f'<th scope=col{first} title="{figure.meaning}">{figure.name}</th>'
            cells = figure.cells(comparison.standings)
            rows = [
                f"{row}<td{first}>{html.escape(cell)}</td>" for row, cell in zip(rows, cells, strict=True)
            ]
            first = ""
        top += f"<th colspan={len(members)} scope=colgroup>{group}</th>"
    return _table(
        f"\n<thead><tr><th colspan=2></th>{top}</tr>\n"
        f"<tr><th scope=col>policy</th><th scope=col class=kind>kind</th>{under}</tr>",
        "".join(f"{row}</tr>\n" for row in rows),
    )


def _reactions(comparison: Comparison) -> str:
    if not any(standing.policy.reactions for standing in comparison.standings):
        return ""
    head = "".join(f'<th scope=col title="{meaning}">{name}</th>' for name, meaning, _ in PHASES)
    rows = "".join(
        f"<tr><th scope=row>{_swatch(at, standing)}</th>"
        f"{''.join(f'<td>{cell}</td>' for cell in reactions(standing.policy, longest=True))}</tr>\n"
        for at, standing in enumerate(comparison.standings)
    )
    table = _table(
        "<thead><tr><th scope=col>policy</th><th scope=col>rises</th>"
        f"<th scope=col>reactions</th>{head}</tr>",
        rows,
    )
    hint = "<p class=hint>Median / longest of the rises in which a phase was reached.</p>"
    return _card("The HPA's reaction to a rise of the load", hint + table)


# --- events ---------------------------------------------------------------------------------------------------
def _events(number: int, comparison: Comparison, most: int) -> str:
    """The events of all policies in order of time, at most `most` of each, with filters. page.js adds their marks."""
    standings = comparison.standings
    listed = sorted(
        (
            (event.time, at, event)
            for at, standing in enumerate(standings)
            for event in choose(standing.policy.events, most)
        ),
        key=lambda entry: entry[:2],
    )
    if not listed:
        return _card("Events", "<p class=hint>None.</p>")
    happened = sum(len(standing.policy.events) + standing.policy.dropped_events for standing in standings)
    rest = happened - len(listed)
    cut = f"<p class=hint>{rest:,} more are not listed.</p>" if rest else ""
    rows = []
    for _, at, event in listed:
        texts = (event.kind, event.reason, short(event.message, LONGEST_MESSAGE))
        time = when(comparison.result.start, event.time).replace("T", " ").removesuffix("Z")
        rows.append(
            f'<tr data-policy={at} data-kind="{_escaped(event.kind)}" data-at={round(event.time, 3):g}>'
            f"<td class=time>{time}</td><td>{_swatch(at, standings[at])}</td>"
            f"{''.join(f'<td>{_escaped(text)}</td>' for text in texts)}</tr>\n"
        )
    return _card(
        "Events",
        f"{_filters(number, standings, sorted({event.kind for _, _, event in listed}))}\n"
        f'<div class=tall><table class=events id="events-{number}"><thead><tr><th scope=col>time</th>'
        "<th scope=col>policy</th><th scope=col>kind</th><th scope=col>reason</th>"
        f"<th scope=col>message</th></tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>{cut}",
    )


def _filters(number: int, standings: Sequence[PolicyRank], kinds: Sequence[str]) -> str:
    policies = "".join(
        f"<option value={at}>{_numbered(at, standing)}</option>" for at, standing in enumerate(standings)
    )
    options = "".join(f'<option value="{_escaped(kind)}">{_escaped(kind)}</option>' for kind in kinds)
    return (
        f'<form class=filters data-of="events-{number}">'
        f"<select name=policy aria-label=policy><option value=''>all policies</option>{policies}</select>"
        f"<select name=kind aria-label=kind><option value=''>all kinds</option>{options}</select>"
        "<input name=text type=search placeholder='reason or message' aria-label='reason or message'>"
        "<output></output></form>"
    )
