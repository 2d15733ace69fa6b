"""A simulation's result as one HTML page that needs nothing else: no network, no fonts, no files beside it.

Needs plotly (the extra `plots`), of which only its script is used. All that comes from a scenario is escaped, and the
page's own content security policy lets nothing run but the two scripts that are in it, and nothing load at all. The
same results give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any, Final

from plotly.offline import get_plotlyjs

from hvpa.simulate.figures import FIGURES, PHASES, best, columns, names, reactions
from hvpa.simulate.model import PolicyResult, SimulationEvent, SimulationResult
from hvpa.simulate.plots import EVENT_ORDER, Line, choose, colour, dash, panels
from hvpa.simulate.table import facts
from hvpa.simulate.text import plain, short
from hvpa.simulate.wire import when

MARKED: Final = 400
"""Events of a policy that are marked in the plot."""
LISTED: Final = 250
"""Events of a policy that are listed."""
LONGEST_MESSAGE: Final = 400
LONGEST_NAME: Final = 60


def to_html(results: Sequence[SimulationResult]) -> str:
    """The page of all results."""
    script, plotly = _own("page.js"), get_plotlyjs()
    data = {"eventKinds": EVENT_ORDER, "scenarios": [_data(result) for result in results]}
    title = ", ".join(plain(result.name) for result in results)
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy((plotly, script))}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{_escaped(short(title, 120))} – hvpa simulate</title>\n",
            f"<style>\n{_own('page.css')}</style>\n</head>\n<body>\n<main>\n",
            "<noscript><p class=note>The plots need JavaScript; the tables don't.</p></noscript>\n",
            _contents(results),
            *(_section(number, result) for number, result in enumerate(results)),
            "</main>\n",
            f'<script type="application/json" id="data">{_embedded(data)}</script>\n',
            f"<script>{plotly}</script>\n<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _own(name: str) -> str:
    """A file of the page that stands beside this one."""
    return resources.files("hvpa.simulate").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """The content security policy: these scripts and no other, styles, and pictures that the page itself makes."""
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _embedded(data: object) -> str:
    """JSON that can't end the element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _escaped(text: str) -> str:
    return html.escape(plain(text))


# --- data of the plots ----------------------------------------------------------------------------------------
def _for_plotly(text: str) -> str:
    """The text as plotly shows it: it knows these three entities and no other."""
    return html.escape(text, quote=False)


def _data(result: SimulationResult) -> dict[str, Any]:
    """What page.js draws. Texts are escaped for plotly, which reads a few tags and entities in them."""
    shown = names(result)
    return {
        "start": round(result.start.timestamp() * 1000),
        "duration": result.duration,
        "warmUp": result.warm_up,
        "step": next((one.series.step for one in result.policies), result.step),
        "policies": [
            {
                "name": _for_plotly(short(name, LONGEST_NAME)),
                "tick": _for_plotly(short(name, 18)),
                "colour": colour(at),
                "dash": dash(at),
                "cost": [
                    policy.totals.core_hours_requested,
                    policy.totals.unmet_core_seconds,
                    policy.totals.gib_hours_requested,
                ],
                "events": _marks(policy),
            }
            for at, (name, policy) in enumerate(zip(shown, result.policies, strict=True))
        ],
        "panels": [
            {"title": panel.title, "unit": panel.unit, "lines": [_line(line) for line in panel.lines]}
            for panel in panels(result)
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "policy": line.policy,
        "name": _for_plotly(short(line.name, LONGEST_NAME)),
        "dash": line.dash,
        "steps": line.steps,
        "x": line.indices,
        "y": line.values,
    }


def _marks(policy: PolicyResult) -> dict[str, Any]:
    chosen = choose(policy.events, MARKED)
    return {
        "x": [round(event.time, 3) for event in chosen],
        "kind": [_for_plotly(plain(event.kind)) for event in chosen],
        "text": [_for_plotly(_told(event, 160)) for event in chosen],
    }


def _told(event: SimulationEvent, limit: int) -> str:
    reason = "" if event.reason in ("", event.kind) else f" ({event.reason})"
    return short(plain(f"{event.kind}{reason}: {event.message}"), limit)


# --- text -----------------------------------------------------------------------------------------------------
def _contents(results: Sequence[SimulationResult]) -> str:
    """Where several scenarios stand; nothing for one."""
    if len(results) < 2:
        return ""
    entries = "".join(
        f'<li><a href="#scenario-{number}">{_escaped(result.name)}</a></li>'
        for number, result in enumerate(results)
    )
    return f"<nav><ul>{entries}</ul></nav>\n"


def _section(number: int, result: SimulationResult) -> str:
    described = f"<p class=description>{_escaped(result.description)}</p>\n" if result.description else ""
    notes = "".join(f"<li>{_escaped(note)}</li>" for note in result.notes)
    return "".join(
        (
            f'<section id="scenario-{number}">\n<header>\n<h1>{_escaped(result.name)}</h1>\n',
            described,
            f"<p class=facts>{_escaped(facts(result))}</p>\n</header>\n",
            f"<ul class=note>{notes}</ul>\n" if notes else "",
            _card("Comparison", _comparison(result)),
            _card(
                "Cost and starvation",
                "<p class=hint>Lower left is better: fewer requested core-hours, less unmet demand.</p>"
                f'<div class=plot id="cost-{number}"></div>',
            ),
            _card(
                "Over time",
                "<p class=hint>Drag to zoom, double-click to see all. A policy's name shows or hides it.</p>"
                f'<div class=plot id="time-{number}"></div>',
            ),
            _reactions(result),
            _events(number, result),
            "</section>\n",
        )
    )


def _card(title: str, body: str) -> str:
    return f"<article>\n<h2>{title}</h2>\n{body}\n</article>\n"


def _swatch(policy: int, name: str) -> str:
    """A policy's name with its colour."""
    style = f"background:{colour(policy)}"
    return f'<span class=swatch style="{style}"></span>{_escaped(short(name, LONGEST_NAME))}'


def _head(policy: int, name: str) -> str:
    """A policy's name as the head of a row."""
    return f"<th scope=row>{_swatch(policy, name)}</th>"


def _comparison(result: SimulationResult) -> str:
    groups: dict[str, int] = {}
    for figure in FIGURES:
        groups[figure.group] = groups.get(figure.group, 0) + 1
    top = "".join(f"<th colspan={count} scope=colgroup>{group}</th>" for group, count in groups.items())
    first: set[str] = set()
    under = []
    for figure in FIGURES:
        begins = "" if figure.group in first else " class=first"
        first.add(figure.group)
        under.append(f'<th scope=col{begins} title="{figure.meaning}">{figure.name}</th>')
    cells, leaders = columns(result), [best(result, figure) for figure in FIGURES]
    rows = []
    for at, policy in enumerate(result.policies):
        row = "".join(
            _cell(cells[column][at], column, at in leaders[column]) for column in range(len(FIGURES))
        )
        rows.append(f"<tr>{_head(at, policy.name)}<td class=kind>{policy.kind}</td>{row}</tr>\n")
    return (
        "<div class=wide><table class=figures>\n<thead><tr><th colspan=2></th>"
        f"{top}</tr>\n<tr><th scope=col>policy</th><th scope=col class=kind>kind</th>{''.join(under)}</tr></thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody></table></div>\n"
        "<p class=hint><b>Bold</b>: the least of a column.</p>"
    )


def _cell(text: str, column: int, leads: bool) -> str:
    begins = column == 0 or FIGURES[column].group != FIGURES[column - 1].group
    cell = f"<b>{html.escape(text)}</b>" if leads else html.escape(text)
    return f"<td class=first>{cell}</td>" if begins else f"<td>{cell}</td>"


def _reactions(result: SimulationResult) -> str:
    if not any(policy.reactions for policy in result.policies):
        return ""
    head = "".join(f'<th scope=col title="{meaning}">{name}</th>' for name, meaning, _ in PHASES)
    rows = "".join(
        f"<tr>{_head(at, policy.name)}{''.join(f'<td>{cell}</td>' for cell in reactions(policy))}</tr>\n"
        for at, policy in enumerate(result.policies)
    )
    return _card(
        "Reaction to a rise of the load",
        "<p class=hint>Median / longest of the rises in which a phase was reached; "
        "total is until the first change.</p>"
        "<div class=wide><table class=figures><thead><tr><th scope=col>policy</th><th scope=col>rises</th>"
        f"<th scope=col>answered</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>",
    )


# --- events ---------------------------------------------------------------------------------------------------
def _events(number: int, result: SimulationResult) -> str:
    """The list of all policies' events in order of time, with what filters it."""
    listed = sorted(
        (
            (event.time, at, event)
            for at, one in enumerate(result.policies)
            for event in choose(one.events, LISTED)
        ),
        key=lambda entry: entry[:2],
    )
    if not listed:
        return _card("Events", "<p class=hint>None.</p>")
    happened = sum(len(one.events) + one.dropped_events for one in result.policies)
    rest = happened - len(listed)
    cut = f"<p class=hint>{rest:,} more are not listed.</p>" if rest else ""
    rows = "".join(_event(result, at, event) for _, at, event in listed)
    return _card(
        "Events",
        f"{_filters(number, result, sorted({event.kind for _, _, event in listed}))}\n"
        f'<div class=tall><table class=events id="events-{number}"><thead><tr><th scope=col>time</th>'
        "<th scope=col>policy</th><th scope=col>kind</th><th scope=col>reason</th>"
        f"<th scope=col>message</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>{cut}",
    )


def _filters(number: int, result: SimulationResult, kinds: Sequence[str]) -> str:
    policies = "".join(
        f"<option value={at}>{_escaped(short(name, LONGEST_NAME))}</option>"
        for at, name in enumerate(names(result))
    )
    options = "".join(f'<option value="{_escaped(kind)}">{_escaped(kind)}</option>' for kind in kinds)
    return (
        f'<form class=filters data-of="events-{number}">'
        f"<select name=policy aria-label=policy><option value=''>all policies</option>{policies}</select>"
        f"<select name=kind aria-label=kind><option value=''>all kinds</option>{options}</select>"
        "<input name=text type=search placeholder='reason or message' aria-label='reason or message'>"
        "<output></output></form>"
    )


def _event(result: SimulationResult, at: int, event: SimulationEvent) -> str:
    cells = "".join(
        f"<td>{_escaped(text)}</td>"
        for text in (event.kind, event.reason, short(event.message, LONGEST_MESSAGE))
    )
    time = when(result.start, event.time).replace("T", " ").removesuffix("Z")
    policy = _swatch(at, result.policies[at].name)
    return (
        f'<tr data-policy={at} data-kind="{_escaped(event.kind)}"><td class=time>{time}</td>'
        f"<td>{policy}</td>{cells}</tr>\n"
    )
