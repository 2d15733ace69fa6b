"""The dashboard's Deployment: its flags, port and probes, and what a restricted namespace asks of its pods. That its
rights are enough is shown end to end."""

from __future__ import annotations

import argparse

from hvpa.kube.server.endpoints import parse_address
from hvpa_lab.dashboard.command import add_arguments
from tests.unit.config.folders import only

POD = only("dashboard", "Deployment", "hvpa-dashboard")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def test_flags_port_and_certificate_fit_together() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    command, *flags = CONTAINER["args"]
    args = parser.parse_args(flags)
    (port,) = CONTAINER["ports"]
    assert (command, args.all_namespaces) == ("dashboard", True)
    assert parse_address(args.secure_bind_address) == (None, port["containerPort"])
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts == {"tls": str(args.cert_dir), "what-ifs": "/tmp"}
    (served,) = only("dashboard", "Service", "hvpa-dashboard")["spec"]["ports"]
    assert served["targetPort"] == CONTAINER["readinessProbe"]["httpGet"]["port"] == port["name"]


def test_it_runs_as_the_operator_does() -> None:
    operator = only("manager", "Deployment", "hvpa")["spec"]["template"]["spec"]
    (its,) = operator["containers"]
    assert CONTAINER["securityContext"] == its["securityContext"]
    assert CONTAINER["image"] == its["image"]
    assert POD["securityContext"] == operator["securityContext"] | {"fsGroup": 65532}
