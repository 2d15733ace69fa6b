"""The result of `hvpa init` as JSON (docs/init.schema.json)."""

from __future__ import annotations

from collections.abc import Sequence

from hvpa.cli.output import Json, indented, timestamp
from hvpa_lab.init.draft import Draft
from hvpa_lab.init.result import InitResult
from hvpa_lab.init.scenario import LOAD, MANIFEST, SCENARIO, STEP, span_of
from hvpa_lab.init.trial import TrialOutcome
from hvpa_lab.init.verdict import on_the_target
from hvpa_lab.simulate.history.regression import FittedLine


def to_json(result: InitResult) -> str:
    """The whole result."""
    verdict, span = result.verdict, span_of(result.recent)
    files = {"manifest": MANIFEST, "scenario": SCENARIO, "load": LOAD}
    return indented(
        {
            "workload": _workload(result),
            "history": _history(result),
            "fit": _fit(result),
            "simulated": {"seconds": span.seconds, "warmUpSeconds": span.warm_up, "stepSeconds": STEP},
            "today": [_outcome(outcome) for outcome in result.trial.today],
            "tried": [
                {
                    "name": trial.draft.name,
                    "target": trial.draft.target,
                    "chosen": trial.draft is result.trial.draft,
                    "outcomes": [_outcome(outcome) for outcome in trial.hvpa],
                    "todayAtThisTarget": [_outcome(outcome) for outcome in trial.rival],
                }
                for trial in result.tried
            ],
            "hvpa": _draft(result.trial.draft),
            "verdict": verdict.advice,
            "conclusion": verdict.words,
            "targetAlone": on_the_target(result.trial),
            "doubts": list(verdict.doubts),
            "files": {kind: str(result.folder / name) for kind, name in files.items()},
        }
    )


def _workload(result: InitResult) -> Json:
    present = result.present
    return {
        "kind": present.workload.kind,
        "namespace": present.namespace,
        "name": present.name,
        "scaledBy": present.scaled_by,
        "notes": list(present.notes),
    }


def _history(result: InitResult) -> Json:
    history, shape = result.history, result.pattern
    return {
        "source": history.source,
        "start": timestamp(history.start),
        "seconds": history.length,
        "rows": len(history.times),
        "notes": list(history.notes),
        "daily": shape.is_daily,
        "explainedByHour": shape.explained,
        "hours": {str(hour): value for hour, value in shape.hours.items()},
        "throttledStarts": dict(history.throttled_starts),
    }


def _fit(result: InitResult) -> Json:
    return {
        "loadIsCpu": result.fit.is_cpu,
        "isPoor": result.fit.is_poor,
        "notes": list(result.fit.notes),
        "containers": {
            name: {"cpu": _line(usage.cpu), "memory": {**_line(usage.memory), "above": usage.memory_above}}
            for name, usage in result.fit.containers.items()
        },
    }


def _line(line: FittedLine) -> Json:
    return {
        "perReplica": line.per_replica,
        "perUnit": line.per_unit,
        "explained": line.explained,
        "error": line.error,
    }


def _outcome(outcome: TrialOutcome) -> Json:
    return {
        "seed": outcome.seed,
        "costPerWeek": outcome.cost,
        "unmetShare": outcome.unmet,
        "ooms": outcome.ooms,
        "restartsPerWeek": outcome.restarts,
        "meanReplicas": outcome.replicas,
    }


def _draft(draft: Draft) -> Json:
    bounds: Sequence[tuple[str, Json]] = [
        (name, {"minAllowed": dict(allowed.least), "maxAllowed": dict(allowed.most)})
        for name, allowed in draft.bounds.items()
    ]
    return {
        "target": draft.target,
        "minReplicas": draft.min_replicas,
        "maxReplicas": draft.max_replicas,
        "containers": dict(bounds),
        "basePerReplica": dict(draft.base),
        "startupBoost": list[Json](draft.boosts),
        "runtimes": list[Json](draft.runtimes),
    }
