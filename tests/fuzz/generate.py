"""Objects made by chance: whole Hvpas of all that the CRD's schema accepts, and what belongs to each, with any values
in any places."""

from __future__ import annotations

import copy
import functools
import random
import re
from pathlib import Path
from typing import Any, Final

import yaml

from hvpa.kube.objects.resources import HVPAS
from tests.unit.hostile import values
from tests.unit.hostile.documents import BLENDS, KINDS, PLACES, RECORD_PLACES, documents, put, put_in_record

Json = dict[str, Any]

CRD: Final = Path(__file__).parents[2] / "config/crd/autoscaling.k8s.io_hvpas.yaml"
KINDS_OF_TARGETS: Final = (
    ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"), ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"), ("argoproj.io/v1alpha1", "Rollout"),
    ("example.com/v1", "Thing"), ("apps/v1", "Nothing"),
)  # fmt: skip
TEXTS: Final = (
    "10m", "1", "0", "100%", "1%", "500m", "64Mi", "1e3", "99999999", "0.001", "+5", ".5", "8Ei", "app", "cpu",
    "memory", "a", "* * * * *", "7 3 31 2,4,6,9,11 *", "0 0 29 2 *", "@hourly", "Europe/Berlin", "UTC", "1h", "5m30s",
    "90d", "080000+0000", "2026-11-27T16:00:00Z", "1970-01-01T00:00:00Z", "",
)  # fmt: skip
"""Values that mean something, in whatever place they fit."""
REFERENCES: Final = (
    "web?x0=", "../../kube-system/pods/a", "web/scale", "a%2e%2e", "we b", "a\r\nb", "\x7f", "é", "v1?watch=true",
    "..", "#", "%",
)  # fmt: skip
"""What a name, a kind or an API version may say to be taken for a part of a URL."""
DEEPEST: Final = 12
IS_ESCAPED: Final = "?" not in HVPAS.path("ns", "a?b")
"""Whether paths are made of escaped segments; names that are none are tried only then."""


@functools.cache
def schema() -> Json:
    """The schema of an Hvpa's `spec`."""
    crd = yaml.safe_load(CRD.read_text())
    whole: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return whole["properties"]["spec"]  # type: ignore[no-any-return]


class Generator:
    """Draws by one random generator: the same seed makes the same objects."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._fullness = self.rng.choice((0.1, 0.3, 0.6, 0.95))
        """How many of the optional fields are there."""

    def objects(self, namespace: str) -> list[tuple[str, Json]]:
        """All of one Hvpa in a namespace, by kind: itself, its workload, HPA, VPA and pods."""
        rng = self.rng
        made = documents(rng.choice(sorted(BLENDS)))
        for _ in range(rng.choice((0, 0, 0, 1, 3, 10))):
            self._disturb(made)
        known = made[0].get("spec")
        if isinstance(known, dict) and rng.random() < 0.9:  # most that is drawn whole contradicts itself
            spec = known
            for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
                self._graft(spec, schema())
        else:
            spec = self.value(schema())
        if rng.random() < 0.1:
            spec["maintenanceWindows"] = self._windows(rng.choice((1, 10, 100)))
        spec["targetRef"] = self._target()
        made[0]["spec"] = spec
        objects = []
        for number, document in enumerate(made):
            kind = KINDS[min(number, len(KINDS) - 1)]
            objects.append((kind, _named(document, namespace, number, rng)))
        return objects

    def value(self, part: Json, depth: int = 0) -> Any:
        """A value that a part of the schema accepts, as far as the schema itself says."""
        rng = self.rng
        if part.get("nullable") and rng.random() < 0.1:
            return None
        if "enum" in part:
            return rng.choice(part["enum"])
        if part.get("x-kubernetes-int-or-string"):
            return rng.choice((self._text(part), self._integer(part)))
        match part.get("type"):
            case "object":
                return self._object(part, depth)
            case "array":
                most = min(part.get("maxItems", 5), rng.choice((1, 2, 5, 300 if depth < 3 else 5)))
                return [
                    self.value(part["items"], depth + 1)
                    for _ in range(rng.randint(part.get("minItems", 0), most))
                ]
            case "integer":
                return self._integer(part)
            case "number":
                return rng.uniform(part.get("minimum", -1e6), part.get("maximum", 1e6))
            case "boolean":
                return rng.random() < 0.5
            case "string":
                return self._text(part)
        return rng.choice(values.ALL)

    def _windows(self, count: int) -> list[Json]:
        """Windows whose texts all differ, on days that come rarely or never: what costs most to look up."""
        hours, days = (
            self.rng.choice(("3", "*", "0-5")),
            self.rng.choice(("31 2,4,6,9,11 *", "29 2 1", "* * *", "30 2 *")),
        )
        window = {"duration": "1h", "timeZone": self.rng.choice(("UTC", "Europe/Berlin"))}
        return [{"schedule": f"{number % 60} {hours} {days}", **window} for number in range(count)]

    def _graft(self, known: Json, part: Json) -> None:
        """Replace one field of what is there, at any depth, by another value."""
        name = self.rng.choice(sorted(part["properties"]))
        below = part["properties"][name]
        if isinstance(known.get(name), dict) and below.get("properties") and self.rng.random() < 0.8:
            self._graft(known[name], below)
        else:
            known[name] = self.value(below, 1)

    def _object(self, part: Json, depth: int) -> Json:
        made: Json = {}
        for name, subschema in part.get("properties", {}).items():
            if name in part.get("required", ()) or (depth < DEEPEST and self.rng.random() < self._fullness):
                made[name] = self.value(subschema, depth + 1)
        if isinstance(more := part.get("additionalProperties"), dict):
            for name in ("cpu", "memory", "app", "*", "x")[
                : self.rng.randint(0, min(5, part.get("maxProperties", 5)))
            ]:
                made[name] = self.value(more, depth + 1)
        if not part.get("properties") and part.get("x-kubernetes-preserve-unknown-fields"):
            made["x"] = self.rng.choice(values.ALL)
        return made

    def _integer(self, part: Json) -> int:
        least, most = int(part.get("minimum", -(2**31))), int(part.get("maximum", 2**31 - 1))
        if part.get("exclusiveMinimum"):
            least += 1
        return self.rng.choice(
            (least, most, self.rng.randint(least, most), min(most, max(least, self.rng.randint(0, 10))))
        )

    def _text(self, part: Json) -> str:
        pattern = re.compile(part.get("pattern", ""))
        most, least = part.get("maxLength", 300), part.get("minLength", 0)
        drawn = self.rng.choice(("a", "0 ", "é", "\U0001f600", "\n", "<b>")) * self.rng.choice((1, 10, most))
        known = (*TEXTS, *values.TEXTS, drawn[:most])
        fitting = [text for text in known if least <= len(text) <= most and pattern.search(text)]
        return self.rng.choice(fitting) if fitting else "1"[:most] * max(1, least)

    def _target(self) -> Json:
        api_version, kind = self.rng.choice(KINDS_OF_TARGETS[:1] * 16 + KINDS_OF_TARGETS)
        target = {"apiVersion": api_version, "kind": kind, "name": "web"}
        if IS_ESCAPED and self.rng.random() < 0.2:
            target[self.rng.choice(sorted(target))] = self.rng.choice(REFERENCES)
        return target

    def _disturb(self, made: list[Json]) -> None:
        """Put a value of any kind in any place."""
        rng = self.rng
        value = rng.choice(values.ALL)
        if rng.random() < 0.3:
            put_in_record(made[1], rng.choice(RECORD_PLACES), value)
            return
        number, place = rng.choice(PLACES)
        put(made[number], place, value)


def _named(document: Json, namespace: str, number: int, rng: random.Random) -> Json:
    """With the metadata that an API server would have seen to, whatever was drawn."""
    document = copy.deepcopy(document)
    metadata = document.get("metadata") if isinstance(document.get("metadata"), dict) else {}
    name = "web" if number < 4 else f"web-{number}"
    fixed = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}-{number}",
        "generation": rng.randint(1, 9),
    }
    owners = (metadata or {}).get("ownerReferences")
    if isinstance(owners, list):
        uid = f"{namespace}-0"
        fixed["ownerReferences"] = [
            {**owner, "uid": uid} if isinstance(owner, dict) else owner for owner in owners
        ]
    document["metadata"] = {**(metadata or {}), **fixed}
    return document
