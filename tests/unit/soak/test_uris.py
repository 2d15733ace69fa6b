"""Which requests the soak accepts of an operator and of the dashboard."""

from __future__ import annotations

import pytest

from tests.e2e.soak.uris import is_expected, is_expected_of_dashboard


@pytest.mark.parametrize(
    "uri",
    [
        "/apis/argoproj.io/v1alpha1",
        "/api/v1/pods?limit=500&resourceVersion=0",
        "/apis/apps/v1/deployments?allowWatchBookmarks=true&watch=true",
        "/apis/apps/v1/namespaces/a/deployments/web/scale?fieldManager=hvpa",
        "/api/v1/namespaces/a/pods/web-1/resize",
        "/apis/autoscaling.k8s.io/v1alpha1/namespaces/a/hvpas/web/status?fieldManager=hvpa",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/coordination.k8s.io/v1/namespaces/hvpa-system/leases?labelSelector=hvpa.autoscaling.k8s.io/lease%3Dhvpa",
    ],
)
def test_what_the_operator_sends_is_expected(uri: str) -> None:
    assert is_expected(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "/apis/argoproj.io/v1alpha1?x0=",
        "/apis/argoproj.io/v1alpha1?x0=/namespaces/a/rollouts/web",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/namespaces/a/deployments/../../../kube-system/deployments/dns",
        "/apis/apps/v1/namespaces/a/deployments/%2e%2e/x",
        "/apis/apps/v1/namespaces/a/deployments/web%3Fwatch=true",
        "/api/v1/namespaces/a/pods/web/exec/x",
        "/apis/apps/v1%2F..%2Fv1/namespaces/a/deployments/web",
    ],
)
def test_a_text_of_an_object_that_leads_a_request_elsewhere_is_not(uri: str) -> None:
    assert not is_expected(uri)


@pytest.mark.parametrize(
    ("uri", "accepted"),
    [
        ("/apis/autoscaling.k8s.io/v1alpha1/hvpas?allowWatchBookmarks=true&watch=true", True),
        ("/api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Dweb&limit=500", True),
        ("/apis/argoproj.io/v1alpha1/namespaces/a/rollouts/web/scale", True),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", True),
        ("/apis/argoproj.io/v1alpha1?x0=/namespaces/a/rollouts/web/scale", False),
        ("/apis/apps/v1/namespaces/a/deployments/..%2F..%2Fx", False),
        ("/api/v1/namespaces/a/pods/web-1/resize", False),
    ],
)
def test_the_dashboard_reads_and_reviews_and_no_text_leads_it_elsewhere(uri: str, accepted: bool) -> None:
    assert is_expected_of_dashboard(uri) is accepted
