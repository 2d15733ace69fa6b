"""The container resources that a usable VPA governs, as the pods have them."""

from __future__ import annotations

from msgspec import structs

from hvpa.core.model import PodsSeen, Scene
from hvpa.core.workload.containers import Slot, present_resources, slots
from hvpa.core.workload.pod_level import within_pod


def governed(seen: Scene) -> tuple[Slot, ...]:
    """What a usable VPA has targets for, within the pod's own resources."""
    assert seen.workload is not None
    return within_pod(recommended(seen), seen.workload.spec.template.spec)


def recommended(seen: Scene) -> tuple[Slot, ...]:
    """What a usable VPA has targets for, whatever the pod's own resources leave."""
    assert seen.workload is not None and seen.vpa.object is not None and seen.spec is not None
    resources = present_resources(seen.workload.spec.template.spec.containers)
    return tuple([_as_pods_have(one, seen.pods) for one in slots(seen.spec, seen.vpa.object, resources)])


def _as_pods_have(slot: Slot, pods: PodsSeen) -> Slot:
    """A slot without a request, with the one that its pods were given (by a LimitRange, say)."""
    if slot.request is not None or slot.limit is not None or slot.key not in pods.sizes:
        return slot
    return structs.replace(slot, request=pods.sizes[slot.key].mean)
