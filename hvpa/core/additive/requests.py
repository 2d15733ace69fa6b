"""`Additive`, vertical: each request moves towards the VPA's target by the interval's weight (DESIGN 5.2)."""

from __future__ import annotations

from hvpa.core.axes.requests import VerticalScaling
from hvpa.core.axes.steps import VerticalOutcome
from hvpa.core.gates.gates import Moment
from hvpa.core.model import Scene
from hvpa.core.values.clock import Present
from hvpa.core.values.memo import Basis, remembered_while
from hvpa.core.values.weight import Weight


def _basis(seen: Scene, moment: Moment, weight: Weight, wants_out: bool) -> Basis:
    """What `VerticalScaling` looks at."""
    assert seen.workload is not None
    return Basis(
        (seen.metadata.namespace, seen.metadata.name),
        (seen.spec, seen.vpa.object, seen.workload.spec.template.spec.containers, seen.vertical),
        (
            moment.is_settled,
            moment.settles_at,
            weight.vertical_ppm,
            wants_out,
            seen.legacy_override,
            seen.pods.starving,
            seen.pods.sizes,
            seen.horizontal.last_scale_time if wants_out else None,
        ),
    )


def scale_vertically(seen: Scene, moment: Moment, weight: Weight, wants_out: bool) -> VerticalOutcome:
    """Decide on the requests and limits of a workload that has a VPA with a recommendation."""
    return _scaled(moment.present, seen, moment, weight, wants_out)


@remembered_while(_basis)
def _scaled(
    present: Present, seen: Scene, moment: Moment, weight: Weight, wants_out: bool
) -> VerticalOutcome:
    own = Moment(present, moment.spec, moment.is_settled, moment.settles_at)
    return VerticalScaling(seen, own, weight, wants_out).outcome()
