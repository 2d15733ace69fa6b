"""A simulation's result as a self-contained HTML page.

The page is smaller than 1 MB: the numbers of points and of rows are limited. The same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from hvpa_lab.charts.standalone import render
from hvpa_lab.simulate.report.compare import Comparison, PolicyRank, conclusion
from hvpa_lab.simulate.report.figures import PHASES, RESOURCES, VERDICT, Figure, reactions
from hvpa_lab.simulate.report.json import timestamp_at
from hvpa_lab.simulate.report.plots import choose, colour, panels
from hvpa_lab.simulate.report.table import facts, notes, priced
from hvpa_lab.simulate.report.text import plain_text, shortened

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
    listed = max(
        FEWEST_LISTED, LISTED // max(1, sum(len(comparison.standings) for comparison in comparisons))
    )
    limit = _limit(comparisons)
    title = shortened(", ".join(plain_text(comparison.result.name) for comparison in comparisons), 120)
    return render(
        "hvpa_lab.simulate.report",
        title=f"{title} – hvpa simulate",
        tables=True,
        data={"scenarios": [_data(comparison, limit) for comparison in comparisons]},
        scenarios=[_scenario(comparison, listed) for comparison in comparisons],
        verdict=_groups(VERDICT),
        resources=_groups(RESOURCES),
        phases=PHASES,
        reactions=reactions,
        colour=colour,
        numbered=_numbered,
        shortened=shortened,
        longest_message=LONGEST_MESSAGE,
    )


# --- data of the charts ---------------------------------------------------------------------------------------
def _limit(comparisons: Sequence[Comparison]) -> int:
    """The maximum points of each line, so that all lines together have at most `POINTS`."""
    lines = sum(len(panel.lines) for comparison in comparisons for panel in panels(comparison.result, FEWEST))
    return min(MOST, max(FEWEST, POINTS // max(1, lines)))


def _data(comparison: Comparison, limit: int) -> dict[str, Any]:
    """The data that page.js draws, with times in seconds. Texts are not escaped: page.js sets them as text."""
    result = comparison.result
    return {
        "start": result.start.timestamp(),
        "duration": result.duration,
        "warmUp": result.warm_up,
        "step": result.step,
        "policies": [
            {
                "name": shortened(standing.name, LONGEST_NAME),
                "colour": colour(at),
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
                        "name": shortened(line.name, LONGEST_NAME),
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
def _scenario(comparison: Comparison, listed: int) -> dict[str, Any]:
    """What the template shows of a scenario."""
    return {
        "comparison": comparison,
        "result": comparison.result,
        "facts": facts(comparison.result),
        "priced": priced(comparison),
        "conclusion": conclusion(comparison),
        "notes": notes(comparison),
        "events": _events(comparison, listed),
    }


def _groups(figures: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """The figures by their groups, in order."""
    return [(group, list(members)) for group, members in groupby(figures, key=lambda figure: figure.group)]


def _numbered(at: int, policy: PolicyRank) -> str:
    return f"{at + 1} {shortened(policy.name, LONGEST_NAME)}"


def _events(comparison: Comparison, most: int) -> dict[str, Any]:
    """The events of all policies in order of time, at most `most` of each: policy, time as text, event."""
    standings, start = comparison.standings, comparison.result.start
    listed = sorted(
        (
            (event.time, at, event)
            for at, standing in enumerate(standings)
            for event in choose(standing.policy.events, most)
        ),
        key=lambda entry: entry[:2],
    )
    happened = sum(len(standing.policy.events) + standing.policy.dropped_events for standing in standings)
    return {
        "rows": [
            (at, timestamp_at(start, time).replace("T", " ").removesuffix("Z"), event)
            for time, at, event in listed
        ],
        "kinds": sorted({event.kind for _, _, event in listed}),
        "others": happened - len(listed),
    }
