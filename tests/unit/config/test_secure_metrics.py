"""The overlay that protects /metrics: what it adds to the default. That it deploys and works is shown end to end."""

from __future__ import annotations

import argparse
from typing import Any

import yaml

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.server.auth import ACCESS_REVIEWS, TOKEN_REVIEWS
from tests.unit.config.folders import CONFIG, objects, only

PATCH: list[dict[str, Any]] = yaml.safe_load((CONFIG / "secure-metrics/deployment_patch.yaml").read_text())


def _value(path: str) -> Any:
    (found,) = (one["value"] for one in PATCH if one["path"] == f"/spec/template/spec/{path}")
    return found


def test_the_operator_may_ask_for_reviews_and_nothing_more() -> None:
    rules = only("secure-metrics", "ClusterRole", "hvpa-metrics-auth")["rules"]
    requested = {(rule["apiGroups"][0], rule["resources"][0], tuple(rule["verbs"])) for rule in rules}
    paths = [path.split("/") for path in (TOKEN_REVIEWS, ACCESS_REVIEWS)]
    assert requested == {(group, resource, ("create",)) for _, _, group, _, resource in paths}
    binding = only("secure-metrics", "ClusterRoleBinding", "hvpa-metrics-auth")
    assert binding["subjects"] == only("rbac", "ClusterRoleBinding", "hvpa-operator")["subjects"]


def test_who_scrapes_may_get_the_metrics_and_nothing_more() -> None:
    rules = only("secure-metrics", "ClusterRole", "hvpa-metrics-reader")["rules"]
    assert rules == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    bound = {one["roleRef"]["name"] for one in objects("secure-metrics") if "roleRef" in one}
    assert "hvpa-metrics-reader" not in bound  # to whom is for the administrator to say


def test_the_flags_are_those_of_hvpa_run_and_the_certificate_is_where_they_say() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = [one["value"] for one in PATCH if one["path"] == "/spec/template/spec/containers/0/args/-"]
    settings = run_settings(parser.parse_args(flags))
    assert settings.metrics_secure
    (mount,), (volume,) = _value("containers/0/volumeMounts"), _value("volumes")
    assert settings.metrics_cert_dir == mount["mountPath"]
    assert mount["readOnly"] is True
    assert mount["name"] == volume["name"]
    assert volume["secret"]["defaultMode"] == 0o440


def test_by_default_the_metrics_are_open_and_no_review_is_allowed() -> None:
    assert not [one for one in objects("default") if "metrics-auth" in one["metadata"]["name"]]
    arguments = only("manager", "Deployment", "hvpa")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--metrics-secure" not in arguments
