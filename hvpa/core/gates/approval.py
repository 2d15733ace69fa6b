"""The approval of sizes, with mode Review: an annotation of the Hvpa, which `hvpa approve` or Git writes.

Example: `{"by": "ann", "until": "2026-12-07T10:00:00Z", "sizes": {"app": {"cpu": "800m", "memory": "1Gi"}}}`. With
`"only": "up"` it approves raises only. Whoever may annotate an Hvpa may also change its mode, so the annotation is not
signed.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from hvpa.api.objects.read_models import Instant
from hvpa.api.values.quantity import QuantityError, Resource, parse_resource
from hvpa.api.values.text import one_line
from hvpa.core.model import Direction, Finding
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.arithmetic import LARGEST
from hvpa.core.values.clock import LAST_INSTANT, Clock

ANNOTATION: Final = "hvpa.autoscaling.k8s.io/approval"
"""The annotation with the approval."""
MOST_CONTAINERS: Final = 100
LONGEST_NAME: Final = 256
"""Characters of who approved."""
_SHOWN = 64
"""Characters of who approved in an Event."""
_UNREADABLE = (msgspec.MsgspecError, QuantityError, UnicodeError)


class Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of the annotation."""

    until: Instant
    """When it ends."""
    sizes: Annotated[dict[str, dict[Resource, str]], msgspec.Meta(min_length=1, max_length=MOST_CONTAINERS)]
    """The approved requests, by container and resource, as quantities."""
    by: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""
    """Who approved."""
    only: Literal["up"] | None = None
    """up: raises only."""

    @property
    def requests(self) -> Mapping[ResourceKey, int]:
        """The approved requests in millicores and bytes. Raises QuantityError."""
        return {
            ResourceKey(name, resource): min(parse_resource(resource, amount), LARGEST)
            for name, size in self.sizes.items()
            for resource, amount in size.items()
        }


class Approved(msgspec.Struct, frozen=True):
    """The sizes that are approved."""

    requests: Mapping[ResourceKey, int] = {}
    until: dt.datetime | None = None
    only: Direction | None = None
    problem: Finding | None = None
    """Why the annotation can't be read."""
    by: str = ""
    """Who approved, as the annotation says, in quotation marks. Empty if it does not say."""

    def held_until(
        self, clock: Clock, key: ResourceKey, current: int, wanted: int, margin: int
    ) -> dt.datetime | None:
        """Returns None if the change is approved: its direction, and a size within `margin` percent of the approved
        one. Otherwise it returns LAST_INSTANT, since no time approves a change.

        Example: 800m are approved, and the margin is 10 percent. 720m to 880m need no other approval.
        """
        size = self.requests.get(key)
        if size is None or self.until is None or abs(wanted - size) * 100 > margin * size:
            return LAST_INSTANT
        if self.only == "up" and wanted < current:
            return LAST_INSTANT
        return LAST_INSTANT if clock.is_past(self.until) else None


NONE: Final = Approved()


def approved(annotations: Mapping[str, str]) -> Approved:
    """Returns the sizes that an Hvpa's annotation approves."""
    text = annotations.get(ANNOTATION)
    if not text:
        return NONE
    try:
        approval = msgspec.json.decode(text, type=Approval)
        by = approval.by and json.dumps(one_line(approval.by, _SHOWN), ensure_ascii=False)
        return Approved(approval.requests, approval.until, approval.only, by=by)
    except _UNREADABLE as error:
        why = f"annotation {ANNOTATION}: {one_line(str(error))}"
        return Approved(problem=Finding("ApprovalInvalid", f"{why}; it approves nothing"))
