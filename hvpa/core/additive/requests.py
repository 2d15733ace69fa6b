"""`Additive`, vertical: each request moves towards the VPA's target by the interval's weight (DESIGN 5.2)."""

from __future__ import annotations

from hvpa.core.axes.requests import VerticalScaling
from hvpa.core.axes.steps import RequestsResult
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import ObservedState
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import Basis, remembered_while
from hvpa.core.values.weight import Weight


def _basis(seen: ObservedState, context: GateContext, weight: Weight, wants_out: bool) -> Basis:
    """What `VerticalScaling` looks at."""
    assert seen.workload is not None
    return Basis(
        (seen.metadata.namespace, seen.metadata.name),
        (seen.spec, seen.vpa.object, seen.workload.spec.template.spec.containers, seen.vertical),
        (
            context.is_settled,
            context.settles_at,
            weight.vertical_ppm,
            wants_out,
            seen.legacy_override,
            seen.pods.starving,
            seen.pods.sizes,
            seen.horizontal.last_scale_time if wants_out else None,
        ),
    )


def scale_vertically(
    seen: ObservedState, context: GateContext, weight: Weight, wants_out: bool
) -> RequestsResult:
    """Decide on the requests and limits of a workload that has a VPA with a recommendation."""
    return _scaled(context.clock, seen, context, weight, wants_out)


@remembered_while(_basis)
def _scaled(
    clock: Clock, seen: ObservedState, context: GateContext, weight: Weight, wants_out: bool
) -> RequestsResult:
    own = GateContext(clock, context.spec, context.is_settled, context.settles_at)
    return VerticalScaling(seen, own, weight, wants_out).outcome()
