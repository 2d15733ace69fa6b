"""The pods that the API server would create now."""

from __future__ import annotations

from localcluster.client.api import Json, KubeApi


def created_now(api: KubeApi, namespace: str, app: str) -> Json:
    """The next pod of a Deployment that has a pod, by a dry run: the API server's policies look at a copy of the sizes,
    so they apply an entry a little later than it is written. Raises `ApiError` if the pod is refused."""
    first = api.list("Pod", namespace, f"app={app}")[0]["metadata"]
    metadata = {key: first[key] for key in ("labels", "ownerReferences")}
    spec = api.get("Deployment", app, namespace)["spec"]["template"]["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": "tried"}, "spec": spec}
    return api.raw("POST", f"{api.path('Pod', namespace)}?dryRun=All", pod)
