"""`config/size-at-creation`, without the operator: what the policy decides of a new pod, and what it leaves as the
template has it. No pod is refused for a size."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import serves_mutating_policies
from localcluster.workloads.scenario import new_namespace

SIZE: Json = {"cpu": "800m", "memory": "600M"}
TEMPLATE: Json = {"cpu": "500m", "memory": "500M"}
AS_IT_WAS: Json = {"app": TEMPLATE}
NOTHING: Json = {}
FULL: Json = {"cpu": "1", "memory": "1G"}


def container(name: str = "app", limits: Json | None = None, requests: Json = TEMPLATE) -> Json:
    """A container of a new pod."""
    return {"name": name, "image": "app", "resources": {"requests": requests, "limits": limits or {}}}


def size(name: str = "app", limits: Json = NOTHING, **requests: str) -> str:
    """A container's part of an entry."""
    both = [f"{(requests or SIZE).get(resource, '')}:{limits.get(resource, '')}" for resource in SIZE]
    return " ".join((name, *both))


class Case(NamedTuple):
    """A pod that is created where these `sizes` are written for its owner, and the requests that it has then by
    container. `controller`: how its controller differs from that owner."""

    sizes: tuple[str, ...] = (size(),)
    containers: tuple[Json, ...] = (container(),)
    then: Json = AS_IT_WAS
    spec: Json = NOTHING
    controller: Json | None = NOTHING
    labels: Json = NOTHING
    kind: str = "StatefulSet"

    def pod(self, namespace: str, owner: str) -> Json:
        """The pod."""
        usual: Json = {
            "apiVersion": "apps/v1",
            "kind": self.kind,
            "name": owner,
            "uid": "u",
            "controller": True,
        }
        owners = [] if self.controller is None else [usual | self.controller]
        for reference in owners:
            reference["name"] = reference["name"].format(owner)
        metadata = {"generateName": f"{owner}-", "namespace": namespace, "labels": self.labels}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "ownerReferences": owners},
            "spec": {"containers": list(self.containers), **self.spec},
        }


def whole(**resources: Json) -> Json:
    """A pod's own resources."""
    return {"resources": resources}


LIMITED = container(limits={"cpu": "600m"})
SIDECAR: Json = {"initContainers": [{**container("sidecar"), "restartPolicy": "Always"}]}
REPLICA_SET: Json = {"kind": "ReplicaSet", "name": "{}-5d"}
GUARANTEED = container(limits=FULL, requests=FULL)
CASES = {
    # --- decided
    "one container": Case(then={"app": SIZE}),
    "a larger request": Case(containers=(container(requests=FULL),), then={"app": SIZE}),
    "a limit that grows with the request": Case((size(limits=FULL),), (LIMITED,), {"app": SIZE}),
    "a guaranteed pod that stays one": Case((size(limits=SIZE),), (GUARANTEED,), {"app": SIZE}),
    "one of two containers": Case(
        containers=(container("proxy"), container()), then={"app": SIZE, "proxy": TEMPLATE}
    ),
    "a container that fits and one that does not": Case(
        (size(), size("proxy")),
        (container(), container("proxy", limits={"cpu": "600m"})),
        {"app": SIZE, "proxy": TEMPLATE},
    ),
    "CPU alone": Case((size(cpu="800m"),), then={"app": {**TEMPLATE, "cpu": "800m"}}),
    "a sidecar": Case((size(), size("sidecar")), then={"app": SIZE, "sidecar": SIZE}, spec=SIDECAR),
    "an init container": Case(
        (size("setup"),),
        then={"app": TEMPLATE, "setup": SIZE},
        spec={"initContainers": [container("setup")]},
    ),
    "the first of two sizes": Case((size(), size(cpu="700m")), then={"app": SIZE}),
    "a pod of a Deployment": Case(
        then={"app": SIZE}, kind="Deployment", controller=REPLICA_SET, labels={"pod-template-hash": "5d"}
    ),
    "room in the pod as a whole": Case(then={"app": SIZE}, spec=whole(requests={"cpu": "800m"})),
    # (1.36 sets the request that the pod lacks before it asks the policy, which leaves the pod as it is then.)
    "a limit of the pod as a whole": Case(then={"app": SIZE}, spec=whole(limits={"cpu": "800m"})),
    "room for a sidecar as well": Case(
        then={"app": SIZE, "sidecar": TEMPLATE}, spec={**SIDECAR, **whole(requests={"cpu": "1300m"})}
    ),
    # --- left
    "no controller": Case(controller=None),
    "an owner that does not control": Case(controller={"controller": False}),
    "another owner": Case(controller={"name": "another"}),
    "a kind of the same name": Case(controller={"kind": "Job", "apiVersion": "batch/v1"}),
    "a group of the same kind": Case(controller={"apiVersion": "apps.kruise.io/v1beta1"}),
    "a ReplicaSet without a hash": Case(kind="Deployment", controller=REPLICA_SET),
    "a ReplicaSet of another hash": Case(
        kind="Deployment", controller=REPLICA_SET, labels={"pod-template-hash": "6e"}
    ),
    "another container": Case((size("other"),)),
    "a request above the limit": Case(containers=(LIMITED,)),
    "a size above its own limit": Case((size(limits={"cpu": "600m"}),)),
    "a pod that would be guaranteed": Case(containers=(container(limits=SIZE),)),
    "a guaranteed pod that would not be": Case(containers=(GUARANTEED,), then={"app": FULL}),
    "no quantity": Case((size(cpu="many"),)),
    "more than the pod as a whole": Case(spec=whole(requests={"cpu": "799m"})),
    "more than the limit of the pod": Case(spec=whole(limits={"cpu": "799m"})),
    "a limit above that of the pod": Case(
        (size(limits={"cpu": "2"}),), spec=whole(requests={"cpu": "1"}, limits={"cpu": "1"})
    ),
    "containers and a sidecar": Case(
        then={"app": TEMPLATE, "sidecar": TEMPLATE}, spec={**SIDECAR, **whole(requests={"cpu": "1299m"})}
    ),
}


def owner(case: str) -> str:
    """Who owns the case's pod."""
    return case.lower().replace(" ", "-")


@pytest.fixture(scope="module")
def sized(plane: ControlPlane) -> str:
    """A namespace with the sizes of all cases, which the policy knows."""
    if not serves_mutating_policies(plane):
        pytest.skip("the API server has no MutatingAdmissionPolicy")
    namespace = new_namespace(plane.api)
    sizes = {
        f"{case.kind}.apps/{owner(name)}": "; ".join(("web", *case.sizes)) for name, case in CASES.items()
    }
    plane.api.create(
        {
            "apiVersion": "autoscaling.k8s.io/v1alpha1",
            "kind": "HvpaSizes",
            "metadata": {"name": "hvpa", "namespace": namespace},
            "sizes": sizes,
        },
    )
    first = CASES["one container"].pod(namespace, owner("one container"))
    wait_for(lambda: requests(plane.api.create(first)) == {"app": SIZE}, 120, "the policy")
    return namespace


def requests(created: Json) -> Json:
    """A pod's requests by container."""
    every = [*created["spec"]["containers"], *created["spec"].get("initContainers", [])]
    return {container["name"]: container["resources"]["requests"] for container in every}


@pytest.mark.parametrize("name", CASES)
def test_a_new_pod_has_its_size_or_its_templates(plane: ControlPlane, sized: str, name: str) -> None:
    assert requests(plane.api.create(CASES[name].pod(sized, owner(name)))) == CASES[name].then


@pytest.mark.usefixtures("sized")
def test_a_namespace_without_sizes(plane: ControlPlane) -> None:
    made = CASES["one container"].pod(new_namespace(plane.api), owner("one container"))
    assert requests(plane.api.create(made)) == AS_IT_WAS


@pytest.mark.parametrize(
    "entry", [f"web; {size(cpu='-1')}", "web; app 1:", "web; app 1:2:3 :", "web", "web; app  :1 :"]
)
def test_what_no_pod_can_have_is_no_size(plane: ControlPlane, sized: str, entry: str) -> None:
    below = {"sizes": {"StatefulSet.apps/below": entry}}
    with pytest.raises(ApiError, match="should match"):
        plane.api.patch("HvpaSizes", "hvpa", sized, below)
