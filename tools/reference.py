"""Prints a page of docs/reference from the code: the fields of an Hvpa (`python -m tools.reference spec`, `status`),
the commands and flags (`commands`), or the metrics (`metrics`)."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry

from builders import build
from hvpa.api.crd import render_crd
from hvpa.api.hvpa.status import Axes, HvpaStatus, OriginalSize, TrustedHistory, VerticalAxis
from hvpa.cli.main import COMMANDS
from hvpa.core.model import Decision, ReplicaView, ResourceRequirements
from hvpa.kube.server.metrics import Metrics
from hvpa.reconcile.ports import Key

Schema = Mapping[str, Any]
GENERATED: Final = "`make generate` writes this page."
SPEC: Final = f"""# Fields of `spec`

All fields of the `spec` of `autoscaling.k8s.io/v1alpha1`, kind `Hvpa`, with the descriptions of the CRD (`kubectl
explain hvpa.spec`). [How a decision is made](../decision.md) describes how they work together. {GENERATED}

A quantity is an amount as in resource requests: `200m`, `1`, `256Mi`. A duration has Go's format: `90s`, `5m`, `1h30m`.
"""
STATUS: Final = f"""# Fields of `status`

All fields of the `status` of an Hvpa, with the descriptions of the CRD (`kubectl explain hvpa.status`).
[Operations](../operations.md#conditions) explains the conditions. {GENERATED}
"""
COMMANDS_PAGE: Final = f"""# Commands and flags

Each command also works as `kubectl hvpa …` if both programs are on PATH. `hvpa COMMAND --help` prints the same;
`--debug` shows tracebacks, with any command. {GENERATED}

Exit codes: 0 done; 1 an input is wrong, or an operation failed; 2 the command line is wrong; 3 the cluster can't
be reached; 130 after Ctrl-C.
"""
METRICS: Final = f"""# Metrics

The operator's metrics at `/metrics`, in addition to `process_*` and `python_*`. [Operations](../operations.md#metrics)
explains the address and the values of some labels, and [Alerts and dashboard](../alerts.md) the use of the metrics.
{GENERATED}

"""
PER_OBJECT: Final = "with `--per-object-metrics`"


# --- fields ---------------------------------------------------------------------------------------------------------
def fields_page(part: str) -> str:
    """Each object of `spec` or `status` as a section, only once even if it occurs in several places."""
    (version,) = render_crd()["spec"]["versions"]
    sections: dict[str, tuple[str, Schema]] = {}
    _collect(part, version["schema"]["openAPIV3Schema"]["properties"][part], sections)
    return "".join(_section(path, schema, sections) for path, schema in sections.values())


def _collect(path: str, schema: Schema, sections: dict[str, tuple[str, Schema]]) -> None:
    """Add an object and its inner objects to `sections`, by identity."""
    if "properties" not in schema or _identity(schema) in sections:
        return
    sections[_identity(schema)] = path, schema
    for name, field in schema["properties"].items():
        suffix, inner = _inner(field)
        _collect(f"{path}.{name}{suffix}", inner, sections)


def _identity(schema: Schema) -> str:
    """An object's fields as text: two objects with the same text are described once."""
    return json.dumps(schema["properties"], sort_keys=True)


def _inner(field: Schema) -> tuple[str, Schema]:
    """The suffix of a field's name in the paths of its elements, and the schema of these (of itself, for an object)."""
    if "items" in field:
        return "[]", field["items"]
    if isinstance(values := field.get("additionalProperties"), Mapping):
        return "{}", values
    return "", field


def _section(path: str, schema: Schema, sections: Mapping[str, tuple[str, Schema]]) -> str:
    required = schema.get("required", ())
    rows = ""
    for name, field in schema["properties"].items():
        kind = _kind(field, sections) + (", required" if name in required else "")
        default = f"`{_scalar(field['default'])}`" if field.get("default", "") != "" else ""
        rows += f"| `{name}` | {kind} | {default} | {_cell(field.get('description', ''))} |\n"
    rules = "".join(
        f"- {_rule(rule)}\n" for rule in schema.get("x-kubernetes-validations", ()) if "message" in rule
    )
    refused = f"\nRefused by the API server:\n\n{rules}" if rules else ""
    return (
        f"\n## `{path}`\n\n{schema.get('description', '')}\n\n"
        f"| field | type | default | |\n| --- | --- | --- | --- |\n{rows}{refused}"
    )


def _rule(rule: Schema) -> str:
    where = rule.get("fieldPath", "").removeprefix(".")
    return _cell(f"`{where}`: {rule['message']}" if where else rule["message"])


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(field: Schema, sections: Mapping[str, tuple[str, Schema]]) -> str:
    """A field's type in words, with a link if it has a section."""
    suffix, inner = _inner(field)
    if suffix:
        return ("list of " if suffix == "[]" else "map of ") + _kind(inner, sections)
    if "properties" in field:
        path, _ = sections[_identity(field)]
        return f"[object](#{re.sub('[^a-z0-9_-]', '', path.lower())})"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        pattern = field.get("pattern", "")
        return "number or percentage" if "%" in pattern else "quantity" if "[numk" in pattern else "number"
    low, high = field.get("minimum"), field.get("maximum")
    if low is None and high is None:
        return str(field.get("type", "object"))
    bounds = (
        f"{low} to {high}" if low is not None and high is not None and high < 2**31 - 1 else f"from {low}"
    )
    return f"{field['type']}, {bounds}"


# --- commands -------------------------------------------------------------------------------------------------------
def commands_page() -> str:
    """Each command with its arguments and flags."""
    return COMMANDS_PAGE + "".join(_command(name, *of) for name, of in COMMANDS.items())


def _command(name: str, module: str, text: str) -> str:
    parser = argparse.ArgumentParser(prog=f"hvpa {name}", add_help=False)
    importlib.import_module(module).add_arguments(parser)
    section = f"\n## `hvpa {name}`\n\n{text[0].upper()}{text[1:]}.\n"
    rows = "".join(
        f"| {_names(action)} | {_cell(_help(action))} |\n"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
    )
    return f"{section}\n| argument or flag | |\n| --- | --- |\n{rows}" if rows else section


def _names(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        optional = action.nargs in ("?", "*")
        return f"`[{value}]`" if optional else f"`{value}`"
    takes = action.nargs != 0 and not action.choices
    return ", ".join(f"`{flag}`" for flag in action.option_strings) + (f" `{value}`" if takes else "")


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%")
    if action.choices:
        values = " or ".join(f"`{value}`" for value in action.choices)
        default = "" if "default" in text or not action.default else f"default: {action.default}"
        text = "; ".join(part for part in (values, text, default) if part)
    return text


# --- metrics --------------------------------------------------------------------------------------------------------
class Shown(NamedTuple):
    """A metric: its name without `_total`, its type, labels and help text."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def metrics_page() -> str:
    """A table of the metrics."""
    rows = "".join(
        f"| `{metric.name}{'_total' if metric.kind == 'counter' else ''}` | {metric.kind} | "
        f"{', '.join(f'`{label}`' for label in metric.labels)} | {_cell(metric.text)} |\n"
        for metric in sorted(_metrics())
    )
    return f"{METRICS}| metric | type | labels | |\n| --- | --- | --- | --- |\n{rows}"


def _metrics() -> Iterator[Shown]:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    metrics.watch_queue(lambda: 0.0, lambda: 0.0, lambda: 0.0)
    metrics.watch_limits(lambda: 0, lambda: 0)
    metrics.watch_shards(lambda: 0, 1)
    metrics.watch_kubelets(lambda: 0, lambda: 0)
    metrics.watch_policies(dict)
    metrics.watch_caches(dict)
    yield from _registered(metrics.registry)
    # The others are rendered as text from decisions: here of one Hvpa, whose write failed.
    wanted = {"app": ResourceRequirements({"cpu": 1500, "memory": 1000}, {})}
    short = TrustedHistory(container="app", ratio=1441, short_since=build.NOW)
    original = OriginalSize(since=build.NOW, requests={"app": {"cpu": "2"}})
    status = HvpaStatus(axes=Axes(vertical=VerticalAxis(history=(short,))), original_size=original)
    decision = Decision(status, replicas=ReplicaView(2, 4, 3, 4), containers=wanted, recommended=wanted)
    metrics.decided(Key("default", "web"), decision, build.workload())
    metrics.write_failed(Key("default", "web"), "PatchStatus", "failed")
    page = b"".join(list(metrics.pieces())[1:]).decode()
    for name, text in re.findall(r"^# HELP (\S+) (.*)$", page, re.MULTILINE):
        (labels, *_) = re.findall(rf"^{name}{{(.*)}} ", page, re.MULTILINE)
        only = (
            ""
            if name in ("hvpa_problem", "hvpa_short_history_start_timestamp_seconds")
            else f" ({PER_OBJECT})"
        )
        yield Shown(name, "gauge", tuple(re.findall(r'(\w+)="', labels)), text.rstrip(".") + only + ".")


def _registered(registry: CollectorRegistry) -> Iterator[Shown]:
    for collector in registry._collector_to_names:
        for family in collector.collect():
            labels: Iterable[str] = getattr(collector, "_labelnames", ()) or getattr(
                family, "_labelnames", ()
            )
            yield Shown(family.name, family.type, tuple(labels), family.documentation)


def _cell(text: str) -> str:
    """A text in the form of a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


PAGES: Final = {
    "spec": lambda: SPEC + fields_page("spec"),
    "status": lambda: STATUS + fields_page("status"),
    "commands": commands_page,
    "metrics": metrics_page,
}

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
