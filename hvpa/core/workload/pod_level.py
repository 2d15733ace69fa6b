"""Resources of a pod itself (`spec.resources`, docs/decisions/0082).

The part of a pod's request that no container requests counts as one more container, `SHARED`, which every decision
treats like the others. `with_pod` turns it back into the pod's own amounts, before anything is written. The limit of
`SHARED` is the pod's own limit.

Example: a pod requests 1000m, its app 300m, its sidecar nothing. `(shared)` requests 700m. With 500m for the app and
900m for `(shared)`, the pod requests 1400m.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import (
    Container,
    ContainerRecommendation,
    ContainerStatus,
    Pod,
    PodSpec,
    Quantity,
    Recommendation,
    ResourceList,
    Resources,
    TemplateSpec,
    Vpa,
    VpaStatusRead,
    Workload,
    policies_by_name,
)
from hvpa.api.values.quantity import RESOURCES, Resource, format_resource
from hvpa.core.model import BoundRatio, ResourceRequirements, WorkloadPatch
from hvpa.core.rules import params_of
from hvpa.core.values.arithmetic import scale_limit
from hvpa.core.values.memo import remembered
from hvpa.core.workload.containers import (
    SHARED,
    ContainerResource,
    amount,
    amounts,
    changes,
    governs,
    policies,
    present_resources,
    read_all,
    recommendations,
    reported,
    sharing,
    wire,
)
from hvpa.recommend.hpa.pods import lasting, sidecars

CGROUP_ROUNDS: Final[Mapping[Resource, int]] = {"cpu": 30, "memory": 65_536}
"""Largest difference between the amount in a pod's spec and in its cgroup: a weight of cgroup v2 stands for 26m, and
pages of memory have up to 64Ki."""
POD: Final = "(pod)"
"""Stands for the pod itself among the names of its containers."""

Spec = TypeVar("Spec", PodSpec, TemplateSpec)
Sizes = Mapping[str, ResourceRequirements]


# --- the container that stands for what containers share -------------------------------------------------------------
@remembered
def with_shared(spec: Spec) -> Spec:
    """Returns a pod spec with `SHARED`; if it has it or no CPU and memory of its own, the same spec.

    A missing pod request is the sum of the containers' requests; without any, it is the pod's limit
    (`defaultPodRequests` in pkg/apis/core/v1 of Kubernetes).
    """
    if any(one.name == SHARED for one in spec.containers):
        return spec
    requests, limits, own = dict[str, Quantity](), dict[str, Quantity](), own_resources(spec)
    for resource in RESOURCES:
        request, limit = own.requests.get(resource), own.limits.get(resource)
        if request is None and limit is None:
            continue
        if request is not None:
            rest = max(0, request - sum(requested(spec, resource).values()))
        else:
            rest = 0 if total(spec, {}, resource) else limit or 0
        requests[resource] = format_resource(resource, rest)
        if limit is not None:
            limits[resource] = format_resource(resource, limit)
    if not requests:
        return spec
    shared = Container(SHARED, Resources(requests, limits))
    return structs.replace(spec, containers=[*spec.containers, shared])


def own_resources(spec: PodSpec) -> ResourceRequirements:
    """Returns the resources of a pod itself as numbers; none if it has none."""
    own = spec.resources or Resources()
    return ResourceRequirements(amounts(own.requests), amounts(own.limits))


def requested(spec: PodSpec, resource: Resource) -> dict[str, int]:
    """Returns the requests of a pod's containers and native sidecars. A missing request is equal to the limit."""
    sizes = {
        one.name: amount(one.resources.limits | one.resources.requests, resource) for one in lasting(spec)
    }
    return {name: size for name, size in sizes.items() if size is not None}


def pod_request(spec: PodSpec, resource: Resource, containers: Sizes) -> int:
    """Returns what a pod with these containers requests. A missing request is equal to the limit. Native sidecars count
    in addition. The pod's own request counts instead if `containers` lacks `SHARED`."""
    whole = own_resources(spec).requests.get(resource)
    if whole is not None and SHARED not in containers:
        return whole
    every = (*containers.values(), *present_resources(tuple(sidecars(spec))).values())
    return sum([size.requests.get(resource, size.limits.get(resource, 0)) for size in every])


def shared_in_template(workload: Workload) -> Workload:
    """Returns a workload whose template has `SHARED`; without resources of the pod itself, the same workload."""
    return workload if workload.spec.template.spec.resources is None else _shared_in_template(workload)


@remembered
def _shared_in_template(workload: Workload) -> Workload:
    template = workload.spec.template
    template = structs.replace(template, spec=with_shared(template.spec))
    return structs.replace(workload, spec=structs.replace(workload.spec, template=template))


def shared_in_pods(pods: tuple[Pod, ...], workload: Workload) -> tuple[Pod, ...]:
    """Returns the workload's pods with `SHARED`; without resources of its pod template itself, the same pods."""
    template = workload.spec.template.spec.resources
    return pods if template is None else tuple([_shared_in_pod(pod, template) for pod in pods])


@remembered
def _shared_in_pod(pod: Pod, template: Resources) -> Pod:
    """Returns a pod with `SHARED`, also in its kubelet's report: a container ran out of memory there if one that
    requests none did. A request that the `template` lacks is not counted as shared: what it has beyond the containers'
    is room for init containers, and goes as containers grow."""

    def shared(containers: Sequence[Container], whole: Resources) -> Container | None:
        requests = {of: size for of, size in whole.requests.items() if of in template.requests}
        asked = structs.replace(whole, requests=requests)
        last = with_shared(
            structs.replace(pod.spec, containers=list(containers), resources=asked)
        ).containers[-1]
        return last if last.name == SHARED else None

    own = shared(pod.spec.containers, pod.spec.resources or Resources())
    if own is None:
        return pod
    spec = structs.replace(pod.spec, containers=[*pod.spec.containers, own])
    have = reported(pod)
    containers = [structs.replace(one, resources=have[one.name]) for one in pod.spec.containers]
    whole = _as_reported(pod)
    actual = shared(containers, whole) or own
    names = sharing(present_resources(pod.spec.containers), "memory")
    ended = [status for status in pod.status.container_statuses if status.name in names]
    ended.sort(key=_out_of_memory)
    status = ended[-1] if ended else ContainerStatus(SHARED)
    statuses = [
        *pod.status.container_statuses,
        structs.replace(status, name=SHARED, resources=actual.resources),
    ]
    status_with_shared = structs.replace(pod.status, container_statuses=statuses, resources=whole)
    return structs.replace(pod, spec=spec, status=status_with_shared)


def _as_reported(pod: Pod) -> Resources:
    """Returns the actual resources of the pod itself. The kubelet reads them from the pod's cgroup, which rounds them;
    an amount near that of the spec counts as the spec's."""
    spec, have = pod.spec.resources or Resources(), pod.status.resources
    if have is None:
        return spec

    def near(reported: ResourceList, wanted: ResourceList) -> ResourceList:
        amounts_had, amounts_wanted = amounts(reported), amounts(wanted)
        same = [
            of
            for of in amounts_had.keys() & amounts_wanted.keys()
            if abs(amounts_had[of] - amounts_wanted[of]) <= CGROUP_ROUNDS[of]
        ]
        return {**reported, **{of: wanted[of] for of in same}}

    return Resources(near(have.requests, spec.requests), near(have.limits, spec.limits))


def _out_of_memory(status: ContainerStatus) -> bool:
    ends = (status.state.terminated, status.last_state.terminated)
    return any(end is not None and end.reason == "OOMKilled" for end in ends)


def pooled(vpa: Vpa, spec: HvpaSpec, template: PodSpec) -> Vpa:
    """Returns a VPA that recommends the total of the containers that share the pod's request for `SHARED`, and no part
    of it for these containers. The total is 0, which is no target, if the VPA governs only some of them."""
    return vpa if template.resources is None else _pooled(vpa, spec, template)


@remembered
def _pooled(vpa: Vpa, spec: HvpaSpec, template: PodSpec) -> Vpa:
    present, targets = present_resources(template.containers), recommendations(vpa)
    find_policy = policies_by_name(policies(spec, vpa))
    total, beyond, taken = dict[Resource, int](), dict[Resource, int](), set[tuple[str, Resource]]()
    for resource in pool_resources(template):
        names = sharing(present, resource)
        taken |= {(name, resource) for name in names}
        known = {
            name: size
            for name in names
            if name in targets
            and governs(find_policy(name), resource)
            and (size := amount(targets[name].target, resource))
        }
        if known:
            is_whole = len(known) == len(names) + len(sharing(_of_sidecars(template), resource))
            total[resource] = sum(known.values()) if is_whole else 0
            uncapped = {name: amount(targets[name].uncapped_target, resource) or 0 for name in known}
            beyond[resource] = sum(max(known[name], size) for name, size in uncapped.items())
    entries = [
        structs.replace(
            entry, target={of: size for of, size in entry.target.items() if (name, of) not in taken}
        )
        for name, entry in targets.items()
    ]
    higher = {of: size for of, size in beyond.items() if size > total[of] > 0}
    shared = ContainerRecommendation(SHARED, dict(wire(total)), {}, {}, dict(wire(higher)))
    recommendation = Recommendation([*entries, shared] if total else entries)
    return structs.replace(vpa, status=VpaStatusRead(recommendation, vpa.status.conditions))


def unshared(vpa: Vpa, template: PodSpec) -> dict[Resource, list[str]]:
    """Returns the resources of which the VPA governs only some of the containers that share the pod's, with these
    containers."""
    shared = recommendations(vpa).get(SHARED)
    totals = {} if shared is None else amounts(shared.target)
    present, beside = present_resources(template.containers), _of_sidecars(template)
    return {
        resource: [*sharing(present, resource), *sharing(beside, resource)]
        for resource, total in totals.items()
        if total == 0
    }


def _of_sidecars(template: PodSpec) -> Sizes:
    """Returns the resources of native sidecars. A VPA has no targets for them."""
    return read_all({one.name: one.resources for one in sidecars(template)})


def pool_resources(template: PodSpec) -> Sequence[Resource]:
    """Returns the resources of which containers without a request share the pod's: those that the pod requests, or of
    which it has a limit and no container a request."""
    whole = own_resources(template)
    of_containers = structs.replace(
        template, containers=[one for one in template.containers if one.name != SHARED]
    )
    return [
        resource
        for resource in RESOURCES
        if sharing(present_resources(template.containers), resource)
        and (
            resource in whole.requests
            or (resource in whole.limits and not total(of_containers, {}, resource))
        )
    ]


def shared_history(ratios: Sequence[BoundRatio], template: PodSpec) -> tuple[BoundRatio, ...]:
    """Returns the ratios of bounds with one for `SHARED`: the largest of the containers that share, since the shortest
    history counts."""
    present = present_resources(template.containers)
    if SHARED not in present:
        return tuple(ratios)
    names = {name for resource in pool_resources(template) for name in sharing(present, resource)}
    of_names = [ratio for ratio in ratios if ratio.container in names]
    longest = max(of_names, key=lambda ratio: ratio.ratio, default=None)
    return (*ratios, *([] if longest is None else [structs.replace(longest, container=SHARED)]))


# --- the pod's own amounts -------------------------------------------------------------------------------------------
def total(template: PodSpec, sizes: Sizes, resource: Resource) -> int:
    """Returns the request of a pod with these sizes; containers without one have the template's. It is at least what
    init containers need."""
    requests = _requests(template, sizes, resource)
    return max(sum(requests.values()), of_init(template, resource, requests))


def _requests(template: PodSpec, sizes: Sizes, resource: Resource) -> dict[str, int]:
    """Returns the requests of containers and native sidecars with these sizes; otherwise those of the template."""
    names = [container.name for container in lasting(template)]
    decided = {name: sizes[name].requests.get(resource) for name in names if name in sizes}
    changed = {name: size for name, size in decided.items() if size is not None}
    return {**requested(template, resource), **changed}


def of_init(template: PodSpec, resource: Resource, requests: Mapping[str, int]) -> int:
    """Returns the largest request of an init container with the native sidecars before it. `requests`: those of
    sidecars."""
    beside = most = 0
    for one in template.init_containers:
        own = amount(one.resources.limits | one.resources.requests, resource)
        size = requests.get(one.name, own or 0)
        is_sidecar = one.restart_policy == "Always"
        beside += size if is_sidecar else 0
        most = max(most, beside if is_sidecar else beside + size)
    return most


def least_shared(template: PodSpec, resource: Resource) -> int:
    """Returns the least request of `SHARED` with which the pod requests what its init containers need."""
    own = requested(template, resource)
    return max(0, of_init(template, resource, own) - sum(own.values()) + own.get(SHARED, 0))


def with_limits(
    template: TemplateSpec, sizes: Sizes, items: Iterable[ContainerResource], spec: HvpaSpec
) -> dict[str, ResourceRequirements]:
    """Returns the decided sizes of all containers with the pod's own limit of the resources of `items`. It keeps the
    ratio of the `template`, unless a governed container keeps its own limit (`RequestsOnly`). No container's limit is
    above the pod's."""
    fitted = dict(sizes)
    if SHARED not in sizes:
        return fitted
    governed = list(items)
    limits = dict(sizes[SHARED].limits)
    for resource in limits:
        limit = own_resources(template).limits.get(resource)
        before, after = total(template, {}, resource), total(template, sizes, resource)
        names = {item.container for item in governed if item.resource == resource}
        if limit is None or not names:
            continue
        scales = all(item.scales_limit for item in governed if item.resource == resource)
        if scales and after != before:
            gap = params_of(spec.vpa.limits_requests_gap_scale_params, resource)
            limit = scale_limit(resource, after, before, limit, gap) or limit
        others = [
            size.limits.get(resource, 0) for name, size in sizes.items() if name not in names | {SHARED}
        ]
        limits[resource] = max(limit, *others, 0)
        for name in names - {SHARED}:
            own = fitted[name].limits
            if own.get(resource, 0) > limits[resource]:
                fitted[name] = structs.replace(fitted[name], limits={**own, resource: limits[resource]})
    if limits != sizes[SHARED].limits:
        fitted[SHARED] = structs.replace(fitted[SHARED], limits=limits)
    return fitted


def with_pod(template: TemplateSpec | None, sizes: Sizes) -> Sizes:
    """Returns sizes with the pod's own amounts under the name `POD` in place of `SHARED`, as far as a size names the
    resource."""
    if template is None or POD in sizes or not sizes:
        return sizes
    present = present_resources(template.containers)
    if SHARED not in present:
        return sizes
    named = {resource for size in sizes.values() for resource in size.requests}
    requests = {
        resource: total(template, sizes, resource)
        for resource in present[SHARED].requests
        if resource in named
    }
    limits = sizes[SHARED].limits if SHARED in sizes else {}
    of_pod = ResourceRequirements(requests, limits)
    return {**{name: size for name, size in sizes.items() if name != SHARED}, POD: of_pod}


def with_rest(template: TemplateSpec, sizes: Sizes) -> Sizes:
    """Returns sizes with `SHARED` in place of the pod's own amounts: the reverse of `with_pod`."""
    if POD not in sizes:
        return sizes
    own, others = sizes[POD], {name: size for name, size in sizes.items() if name != POD}
    rest = {
        of: max(
            0, size - sum([part for name, part in _requests(template, others, of).items() if name != SHARED])
        )
        for of, size in own.requests.items()
    }
    return {**others, SHARED: ResourceRequirements(rest, own.limits)}


def for_api(target: Workload, patch: WorkloadPatch) -> WorkloadPatch:
    """Returns a patch with the pod's own amounts in place of `SHARED`. It sets no request that the template leaves
    out."""
    template, spec = target.spec.template.spec, patch.body["spec"]
    assert isinstance(spec, dict)
    if template.resources is None or "template" not in spec:
        return patch
    containers = spec["template"]["spec"]["containers"]
    changed = read_all({one["name"]: Resources(**one["resources"]) for one in containers})
    wanted = with_pod(template, changed).get(POD)
    content: dict[str, object] = {"containers": [one for one in containers if one["name"] != SHARED]}
    if wanted is not None:
        own = own_resources(template)
        requests = {of: size for of, size in wanted.requests.items() if of in own.requests}
        if resources := changes(own, ResourceRequirements(requests, wanted.limits)):
            content["resources"] = resources
    body = {**patch.body, "spec": {**spec, "template": {"spec": content}}}
    return structs.replace(patch, body=body)
