"""The values of `hvpa export --format helm` in a chart, by the real Helm."""

from __future__ import annotations

from pathlib import Path

import yaml

from hvpa.cli.main import main
from tests.e2e.chart.command import documents, succeed
from tests.unit.cli.support import DATA, NOW

TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: {{ .Values.shop.replicaCount }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - name: app
          image: {{ .Values.shop.image }}
          resources: {{ toYaml .Values.shop.resources | nindent 12 }}
"""
VALUES = {
    "shop": {
        "image": "shop:1",
        "replicaCount": 2,
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
    }
}
PATHS = {"workloads": [{"containers": {"app": "{name}.resources"}, "replicas": "{name}.replicaCount"}]}


def test_a_chart_takes_the_exported_values_beside_its_own(helm: Path, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "templates/web.yaml").write_text(TEMPLATE)
    for name, content in (
        ("chart/Chart.yaml", {"apiVersion": "v2", "name": "shop", "version": "1.0.0"}),
        ("chart/values.yaml", VALUES),
        ("paths.yaml", PATHS),
    ):
        (tmp_path / name).write_text(yaml.safe_dump(content))
    objects = (
        (DATA / "trajectory.yaml")
        .read_text()
        .replace("  replicas: 4\n", "  mode: Recommend\n  replicas: 4\n", 1)
    )
    (tmp_path / "objects.yaml").write_text(objects)
    to, values = tmp_path / "sizes", str(tmp_path / "paths.yaml")
    argv = ["export", "-f", str(tmp_path / "objects.yaml"), "--now", NOW, "--to", str(to)]
    assert main([*argv, "--format", "helm", "--values", values]) == 0
    (file,) = to.rglob("*.yaml")
    (rendered,) = documents(succeed(helm, "template", "shop", chart, "-f", file))
    (container,) = rendered["spec"]["template"]["spec"]["containers"]
    requests = {"cpu": "1200m", "memory": "1887437k"}
    assert container == {
        "name": "app",
        "image": "shop:1",
        "resources": {"requests": requests, "limits": {"memory": "4Gi"}},
    }
    assert rendered["spec"]["replicas"] == 4
