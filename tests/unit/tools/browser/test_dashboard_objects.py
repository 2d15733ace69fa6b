"""The objects in the pictures of docs/dashboard.md."""

from __future__ import annotations

import yaml

from hvpa.api.hvpa.resource import validate_manifest
from tools.browser.check_page import ROOT


def test_its_hvpas_are_valid_and_two_have_no_workload() -> None:
    objects = yaml.safe_load((ROOT / "tools/browser/dashboard.yaml").read_text())["items"]
    hvpas = [item for item in objects if item["kind"] == "Hvpa"]
    workloads = {item["metadata"]["name"] for item in objects if item["kind"] == "Deployment"}
    assert [validate_manifest(hvpa) for hvpa in hvpas] == [[]] * 6
    targets = {hvpa["spec"]["targetRef"]["name"] for hvpa in hvpas}
    assert targets - workloads == {"checkout", "payment"}
