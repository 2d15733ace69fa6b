"""`python -m tests.recorded.released` records the CRD and decisions of this version, when it is released: from then on
`tests/unit/test_released.py` holds all later ones against them. With `--again`, the stored objects stay those of the
release, and what is decided about them is recorded anew: where that changes on purpose, with a line in CHANGELOG.md."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hvpa.api.crd import render_crd
from hvpa.api.values.timestamp import format_timestamp
from hvpa.core import decide, observe
from hvpa.core.model import Decision, Objects, Observation, Settings
from hvpa.reconcile import reconciler
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.scenario.read import load_scenario
from tests.recorded import answers
from tests.recorded.released.cases import cases
from tests.recorded.released.decisions import decided, step
from tests.recorded.replay import Json

DECISIONS = "released/decisions"
MOST_HELD = 2
"""Decisions of one Hvpa that are recorded because of what holds a change back; of those that change something, the
first of each sort is."""


def main() -> None:
    """Write `crd.json` and `decisions.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="the objects stay as they are recorded")
    if parser.parse_args().again:
        kept = answers.read(DECISIONS)
        again = {
            name: [{**kept_step, "decided": decided(kept_step)} for kept_step in steps]
            for name, steps in kept.items()
        }
        answers.write(DECISIONS, again)
        return
    quiet()
    answers.write(DECISIONS, {name: steps(scenario) for name, scenario in cases().items()})
    text = json.dumps(without_texts(render_crd()), separators=(",", ":"))
    (Path(__file__).parent / "crd.json").write_text(f"{text}\n")


def steps(scenario: Json) -> list[Json]:
    """The recorded decisions of a scenario's Hvpa."""
    by_changes: dict[object, Json] = {}
    last: list[tuple[Objects, dt.datetime]] = []

    def observing(objects: Objects, now: dt.datetime, settings: Settings) -> Observation:
        last[:] = [(objects, now)]
        return observe(objects, now, settings)

    def deciding(observation: Observation) -> Decision:
        decision, (objects, now) = decide(observation), last[0]
        changes: object = (decision.applied, bool(decision.resizes), bool(decision.owned))
        if changes == ((), False, False):
            changes = frozenset(block.reason for block in decision.blocked)
            if len([key for key in by_changes if isinstance(key, frozenset)]) >= MOST_HELD:
                return decision
        if changes and changes not in by_changes:
            spec = scenario["policies"][0]["hvpa"]["spec"]
            by_changes[changes] = kept = step(objects, spec, format_timestamp(now), decision)
            assert decided(kept) == kept["decided"], "what is recorded is not all that counts"
        return decision

    with TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.json"
        path.write_text(json.dumps(scenario))
        loaded = load_scenario(path, seed=0)
    with patch.object(reconciler, "observe", observing), patch.object(reconciler, "decide", deciding):
        simulate(loaded, loaded.policies[0])
    return list(by_changes.values())


def without_texts(schema: object) -> object:
    """A schema without its descriptions, which promise nothing."""
    if isinstance(schema, list):
        return [without_texts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_texts(value)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str)
    }


if __name__ == "__main__":
    main()
