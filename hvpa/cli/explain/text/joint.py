"""A joint decision (`blend: Trajectory`) as text for people who know an HPA and a VPA: what is needed, usually and now,
where on the path that is, what bound it, and what is done instead of what is held back.

What belongs here: the section "Path" of `hvpa explain`. Everything that is shown was decided in `hvpa.core`.
"""

from __future__ import annotations

from collections.abc import Iterable

from hvpa.api.values.quantity import readable_resource
from hvpa.cli.explain.words import counted, held, pods
from hvpa.core.model import Decision, JointResource, JointView, Observation
from hvpa.core.path.curve import NONE
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.summary import saturation
from hvpa.core.values.weight import percent

_OVERRIDDEN = "ran out of memory"
"""What a step says that has nothing to do with the path."""


def path_lines(seen: Observation, decision: Decision, view: JointView) -> Iterable[str]:
    """The lines of the section."""
    yield "replicas and requests are solved together: what the pods usually need sets their requests,"
    yield f"what they need now sets how many there are; needs are requests of all pods together{_without_base(view)}"
    yield _counts(view, decision)
    for item in view.items:
        yield from _item(view, item)
    if not view.items:
        yield "no request is scaled: there is no VPA recommendation to use"
    if view.usual is not None:
        yield f"usual demand is served by: {pods(view.usual.replicas, view.usual.sizes)}"
    yield f"wanted: {pods(view.wanted.replicas, view.wanted.sizes)}"
    yield f"because: {view.because}"
    yield from saturation(view)
    yield from _other_steps(view, decision)
    yield from _instead(seen, decision, view)


def _without_base(view: JointView) -> str:
    reserved = any(curve.size_bounds.reserve != NONE for curve in view.path.curves.values())
    return ", without what each pod uses before it does any work" if reserved else ""


def _counts(view: JointView, decision: Decision) -> str:
    lower, upper = view.path.counts.lower, view.path.counts.upper
    text = f"replicas may be {lower}{' or more' if upper is None else f' to {upper}'}"
    if decision.weight_ppm is None or decision.replicas is None or lower == upper:
        return text
    shown, current = percent(decision.weight_ppm), counted(decision.replicas.current)
    return f"{text}; at {current}, {shown} percent of an increase goes into larger pods, the rest into more of them"


def _item(view: JointView, item: JointResource) -> Iterable[str]:
    """What is known of one container's one resource."""
    key = item.key
    current, wanted = _amount(key, item.current), _amount(key, item.size)
    request = f"{current}, which stays" if item.size == item.current else f"{current} now, {wanted} wanted"
    yield f"{key.container} {key.resource}: request {request}{_near(view, item)}"
    if item.usual is not None:
        fits = "" if item.usual_replicas is None else f": {counted(item.usual_replicas)} on the path"
        yield f"  usually {_amount(key, item.usual)} ({item.usual_from}){fits}"
    if item.present is None:
        yield "  now: no metric of the HPA measures it"
        return
    takes = "" if item.present_replicas is None else f": {counted(item.present_replicas)} of {wanted}"
    yield f"  now {_amount(key, item.present)} ({item.present_from}){takes}"


def _near(view: JointView, item: JointResource) -> str:
    """Why a request stays that is not the one of the path."""
    if item.size != item.current or item.usual is None or view.usual is None:
        return ""
    exact = view.path.curves[item.key].size(view.usual.replicas, item.usual)
    return "" if exact == item.current else f" (near enough to {_amount(item.key, exact)})"


def _other_steps(view: JointView, decision: Decision) -> Iterable[str]:
    """Steps that are no matter of the path: how the count gets there, and memory that ran out."""
    shown = tuple(f"{item.key.container} {item.key.resource}: " for item in view.items)
    for step in decision.steps:
        if not step.startswith(("weight: ", *shown)) or _OVERRIDDEN in step:
            yield step


def _instead(seen: Observation, decision: Decision, view: JointView) -> Iterable[str]:
    """What is held back, and what is set for now; nothing where all that is wanted is done."""
    for entry in decision.blocked:
        yield f"held back: {held(entry, seen.now)}"
    if decision.replicas is None or (seen.spec is not None and seen.spec.mode != "Apply"):
        return
    sizes = {
        item.key: decision.containers[item.key.container].requests.get(item.key.resource, item.current)
        for item in view.items
    }
    wanted = {item.key: item.size for item in view.items}
    if decision.replicas.target != view.wanted.replicas or sizes != wanted:
        yield f"for now: {pods(decision.replicas.target, sizes)}"


def _amount(key: ResourceKey, amount: int) -> str:
    return readable_resource(key.resource, amount)
