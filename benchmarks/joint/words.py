"""The sentences about the kept evidence: nobody types its figures into the documents by hand.

This module selects the results for each sentence and words it; `report` calculates them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from benchmarks.joint.jumps import GOAL, SHOWN, in_place_beside_hpa
from benchmarks.joint.kept import Jumps, Kept, Phases, Place
from benchmarks.joint.policies import BASELINE, LINE, POLICY, RESIZE_DELAY
from benchmarks.joint.policies import headroom as headroom_of
from benchmarks.joint.report import (
    GOALS,
    NAMES,
    RESIZES,
    Beside,
    Rows,
    beside,
    front,
    kinds,
    lines_of,
    markdown,
    median,
    of_kind,
    point,
    point_beside,
    ratio,
)
from hvpa.api.values.duration import parse_duration

WIDTH: Final = 118


def wrapped(text: str) -> str:
    """The text as a paragraph of the documents."""
    return f"{textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)}\n"


def item(text: str) -> str:
    """The text as a list item of the documents."""
    lines = textwrap.wrap(text, WIDTH - 2, break_on_hyphens=False, break_long_words=False)
    return f"- {textwrap.indent(chr(10).join(lines), '  ').lstrip()}\n"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


# --- the runs -------------------------------------------------------------------------------------------------------
def provenance(kept: Kept) -> str:
    """The runs that the figures are from."""
    loads = len({place.load for place in kept.places})
    runs = kept.seeds * sum(len(place.lines) for place in kept.places)
    took = f", in {kept.wall / 60:.1f} minutes with {kept.processes} processes" if kept.wall else ""
    return wrapped(
        f"{kept.date}, commit {kept.commit} (hash of the code: {kept.code}): {loads} kinds of loads,"
        f" {_seeds(kept)}, {kept.days:g} days each (the first day is not counted), {runs:,} runs{took}."
    )


def _seeds(kept: Kept) -> str:
    first, last = kept.first_seed, kept.first_seed + kept.seeds - 1
    if first == last:
        return f"seed {first}"
    return f"seeds {first} {'and' if last == first + 1 else 'to'} {last}"


# --- goals -----------------------------------------------------------------------------------------------------------
def _each(kept: Kept, resize: str | None = None) -> Iterator[tuple[str, float, Beside]]:
    """Name, goal and results for each kind of workload and resizes."""
    for kind, workload in kinds(kept):
        if resize in (None, kind):
            result = beside(of_kind(kept, kind, workload))
            yield f"{NAMES[workload]}, {RESIZES[kind]}", GOALS[workload, kind], result


def goals(kept: Kept) -> str:
    """The goals, and which of them are missed."""
    each = list(_each(kept))
    missed = [
        f"{name}: {result.cost:.3f} (goal {goal:.2f})" for name, goal, result in each if result.cost > goal
    ]
    by_seed = sum(result.by_seed <= goal for _, goal, result in each)
    ways = {resize: [result.way for _, _, result in _each(kept, resize)] for resize in RESIZES}
    beyond = [
        sum(ratio(place, [seed]).outside != 0 for place in of_kind(kept, *kind) for seed in range(kept.seeds))
        for kind in kinds(kept)
    ]
    cases = len(of_kind(kept, *kinds(kept)[0])) * kept.seeds
    return wrapped(
        f"**Goals.** Joint scaling goes {_span(ways['InPlace'])} percent of the way to the oracle if pods are resized"
        f" in place (goal: two thirds), and {_span(ways['Recreate'])} percent if they are replaced. Of {len(each)}"
        f" goals for the cost, it misses {_count(missed)} with the same line for all seeds. It meets"
        f" {by_seed or 'none'} by the mean of seeds that each have their own line. Neither figure is exact. With the"
        " same line for all seeds, a"
        " seed that serves less makes up for a seed that serves more. With its own line, a seed is beyond the end of"
        f" that line in {min(beyond)} to {max(beyond)} of {cases} cases, and is then compared with the end."
    )


def _span(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}"


def restarts(kept: Kept) -> str:
    """Restarts of joint scaling in place, compared with replaced pods."""
    results = {
        (resize, workload): beside(of_kind(kept, resize, workload)) for resize, workload in kinds(kept)
    }
    before, after = (
        sum(results[resize, workload].restarts for workload in NAMES) for resize in ("Recreate", "InPlace")
    )
    ooms = sum(results["InPlace", workload].ooms for workload in NAMES)
    fewer = [
        f"{NAMES[workload]} "
        f"{100 * (1 - results['InPlace', workload].restarts / results['Recreate', workload].restarts):.0f}"
        for workload in NAMES
        if results["Recreate", workload].restarts
    ]
    return wrapped(
        f"**Restarts.** Joint scaling has {after} restarts in place and {before} with pods replaced:"
        f" {100 * (1 - after / before):.1f} percent fewer (goal: 90). {ooms} of the {after} are"
        f" containers that ran out of memory. By kind, in percent: {'; '.join(fewer)}."
    )


# --- losses ----------------------------------------------------------------------------------------------------------
def losses(kept: Kept) -> str:
    """The cases in which joint scaling is worse than HPA and VPA, as a list."""
    parts = []
    for resize, name in RESIZES.items():
        cells = {
            f"{load}, {NAMES[workload]}": beside(places)
            for kind, workload in kinds(kept)
            if kind == resize
            for load, places in _by_load(of_kind(kept, resize, workload)).items()
        }
        dear = [f"{cell}: {result.cost:.2f}" for cell, result in cells.items() if result.cost > 1]
        once = [cell for cell, result in cells.items() if result.high > 1]
        less = [cell for cell, result in cells.items() if result.less]
        worst, high = max(((cell, result.high) for cell, result in cells.items()), key=itemgetter(1))
        parts.append(
            f"Pods {name}, {len(cells)} cells of the table: more expensive over all seeds: {_count(dear)}; more"
            f" expensive in a single seed: {len(once) or 'none'}, {high:.2f} at worst ({worst}); more unmet than with"
            f" any headroom: {_count(less)}."
        )
    each = list(_each(kept))
    ooms = [
        f"{name}: {result.ooms} ({result.base_ooms})"
        for name, _, result in each
        if result.ooms > result.base_ooms
    ]
    again = [
        f"{name}: {result.restarts} ({result.base_restarts})"
        for name, _, result in each
        if result.restarts > result.base_restarts
    ]
    parts.append(f"More OOMs: {_count(ooms)}. More restarts: {_count(again)}.")
    return f"{wrapped('**Losses**, compared with HPA and VPA:')}\n{''.join(map(item, parts))}"


def _count(cells: Sequence[str]) -> str:
    """The number of cells and their names."""
    return f"{len(cells)} ({'; '.join(cells)})" if cells else "none"


def _by_load(places: Sequence[Place]) -> Mapping[str, list[Place]]:
    return {place.load: [other for other in places if other.load == place.load] for place in places}


def single_points(kept: Kept) -> str:
    """The loads under which the line of HPA and VPA is a single point."""
    seeds = range(kept.seeds)
    places = [
        f"{place.load}, {NAMES[place.workload]}, {RESIZES[place.resize]}"
        for place in kept.places
        if lines_of(place, POLICY)
        and len(front([point(line, seeds) for line in lines_of(place, BASELINE)])) == 1
    ]
    return wrapped(
        f"Under these loads the line of HPA and VPA is a single point, because one headroom is cheaper and serves more"
        f" than the others: {'; '.join(places) or 'none'}."
    )


# --- slow pods -------------------------------------------------------------------------------------------------------
def slow(kept: Kept, usual: Kept) -> str:
    """Slow pods compared with usual pods under the same loads, and the runs that the figures are from."""
    seeds = range(kept.seeds)
    rows: Rows = [("pods", "cost", "usual pods", "OOMs", "restarts")]
    for resize, workload in kinds(kept):
        result = beside(of_kind(kept, resize, workload), seeds)
        rows.append(
            (
                f"{NAMES[workload]}, {RESIZES[resize]}",
                f"{result.cost:.2f}",
                f"{beside(of_kind(usual, resize, workload), seeds).cost:.2f}",
                f"{result.ooms} ({result.base_ooms})",
                f"{result.restarts} ({result.base_restarts})",
            )
        )
    return f"{markdown(rows)}\n{provenance(kept)}"


# --- headrooms -------------------------------------------------------------------------------------------------------
def headrooms(kept: Kept) -> str:
    """Joint scaling and HPA and VPA with several headrooms, and the runs that the figures are from."""
    kind = kinds(kept)[0]
    places = of_kind(kept, *kind)
    rows: Rows = [("headroom", "target of the Hvpa's HPA, of 1 core", "HPA and VPA", "joint scaling")]
    for target in LINE:
        cells = [
            point_beside(
                [
                    (place, line)
                    for place in places
                    for line in lines_of(place, policy)
                    if line.target == target
                ]
            )
            for policy in (BASELINE, POLICY)
        ]
        room = headroom_of(target)
        rows.append((f"{100 * room.margin:.0f} %", f"{room.share.target}m", *cells))
    name = f"{NAMES[kind[1]]}, {RESIZES[kind[0]]}"
    return f"{markdown(rows)}\n{wrapped(f'Pods {name}. {provenance(kept)}')}"


# --- jumps -----------------------------------------------------------------------------------------------------------
def jumps(kept: Jumps) -> str:
    """Joint scaling in place compared with the HPA, and the phases that it waits for."""
    ratios = in_place_beside_hpa(kept.felt)
    covers = {(result.policy, result.times): result for result in kept.felt}
    least = min(ratios)
    own, alone = covers[SHOWN[-1], least], covers[SHOWN[0], least].cover
    measured, looks = _phase(own.phases, "measured"), _phase(own.phases, "looks")
    delay = parse_duration(RESIZE_DELAY).total_seconds()
    waits = measured + looks + delay
    met = [f"× {times}" for times, share in ratios.items() if share <= GOAL]
    return wrapped(
        f"{kept.date}, commit {kept.commit}, {len(own.phases)} seeds. In place, joint scaling takes"
        f" {listed([f'{share:.2f}' for share in ratios.values()])} of the HPA's time. The goal, half of it, is met"
        f" {f'at {listed(met)}' if met else 'at no jump'}. At × {least}, {measured:.0f} seconds pass until the jump is"
        f" measured, {looks:.0f} until the HPA reads the measurement, and {delay:.0f} for the resize: {waits:.0f} of"
        f" the HPA's {alone:.0f} seconds, or {waits / alone:.2f}. So half is out of reach at × {least} for any policy"
        f" that waits for the HPA's measurement, as joint scaling does."
    )


def _phase(phases: Sequence[Phases], name: str) -> float:
    return median([getattr(phases_of_seed, name) for phases_of_seed in phases]) or 0
