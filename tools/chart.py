"""Prints a generated file of the chart: a template made from manifests of `config/` (`python -m tools.chart
operator-policy.yaml`), or the README with its table of values (`python -m tools.chart README.md`).

Templates differ from their manifests in names, namespace and labels, which follow the release, and in the condition
around them. Templates with values of their own (the Deployment, for example) are written by hand.
`tests/e2e/chart/test_template.py` compares the whole chart with the output of kustomize.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "hvpa"
SIZES: Final = 'eq (include "hvpa.sizeAtCreation" .) "true"'
TEMPLATES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "crds.yaml": (".Values.crds.install", ("crd/autoscaling.k8s.io_hvpas.yaml",)),
    "crd-hvpasizes.yaml": (SIZES, ("size-at-creation/crd.yaml",)),
    "crds-hvpa-policy.yaml": (
        "and .Values.crds.install .Values.hvpaPolicies",
        ("hvpa-policy/crd_hvpapolicies.yaml", "hvpa-policy/crd_clusterhvpapolicies.yaml"),
    ),
    "custom-kinds.yaml": (
        ".Values.customKinds",
        ("custom-kinds/operator_role.yaml", "custom-kinds/operator_role_binding.yaml"),
    ),
    "dashboard.yaml": (
        ".Values.dashboard.enabled",
        (
            "dashboard/service_account.yaml",
            "dashboard/role.yaml",
            "dashboard/role_binding.yaml",
            "dashboard/service.yaml",
        ),
    ),
    "dashboard-custom-kinds.yaml": (
        "and .Values.customKinds .Values.dashboard.enabled",
        ("custom-kinds/dashboard_role.yaml", "custom-kinds/dashboard_role_binding.yaml"),
    ),
    "deletion-cost.yaml": (
        ".Values.deletionCost",
        (
            "deletion-cost/operator_role.yaml",
            "deletion-cost/operator_role_binding.yaml",
            "deletion-cost/policy.yaml",
        ),
    ),
    "export.yaml": (".Values.exportRole", ("export/role.yaml",)),
    "fast-signal.yaml": (
        ".Values.fastSignal",
        (
            "fast-signal/kubelets_service_account.yaml",
            "fast-signal/kubelets_role.yaml",
            "fast-signal/kubelets_role_binding.yaml",
            "fast-signal/token_role.yaml",
            "fast-signal/token_role_binding.yaml",
        ),
    ),
    "flow-control.yaml": (".Values.flowControl", ("flow-control/flow_schemas.yaml",)),
    "hvpa-policy.yaml": (
        ".Values.hvpaPolicies",
        (
            "hvpa-policy/operator_role.yaml",
            "hvpa-policy/operator_role_binding.yaml",
            "hvpa-policy/editor_role.yaml",
            "hvpa-policy/viewer_role.yaml",
        ),
    ),
    "operator-policy.yaml": (
        "and .Values.operatorPolicy (not .Values.inPlaceOnly)",
        ("operator-policy/policy.yaml",),
    ),
    "policy-bounds.yaml": (".Values.policies.bounds", ("policy/hvpa_bounds.yaml",)),
    "prometheusrule.yaml": (".Values.prometheusRule.enabled", ("monitoring/prometheus_rule.yaml",)),
    "policy-target.yaml": (".Values.policies.target", ("policy/hvpa_target.yaml",)),
    "node-room.yaml": (
        ".Values.nodeRoom",
        ("node-room/operator_role.yaml", "node-room/operator_role_binding.yaml"),
    ),
    "rollback-metrics.yaml": (
        ".Values.rollbackMetrics",
        ("rollback-metrics/operator_role.yaml", "rollback-metrics/operator_role_binding.yaml"),
    ),
    "rbac.yaml": (
        "",
        (
            "rbac/operator_role.yaml",
            "rbac/operator_role_binding.yaml",
            "rbac/leader_election_role.yaml",
            "rbac/leader_election_role_binding.yaml",
            "rbac/lease_viewer_role.yaml",
            "rbac/lease_viewer_role_binding.yaml",
            "rbac/hvpa_editor_role.yaml",
            "rbac/hvpa_viewer_role.yaml",
        ),
    ),
    "rbac-secure-metrics.yaml": (
        ".Values.metrics.secure",
        (
            "secure-metrics/metrics_auth_role.yaml",
            "secure-metrics/metrics_auth_role_binding.yaml",
            "secure-metrics/metrics_reader_role.yaml",
        ),
    ),
    "rbac-sharded.yaml": (
        "gt (int .Values.shards) 1",
        (
            "sharded/shards_role.yaml",
            "sharded/shards_role_binding.yaml",
            "sharded/shards_viewer_role.yaml",
            "sharded/shards_viewer_role_binding.yaml",
        ),
    ),
    "size-at-creation.yaml": (SIZES, ("size-at-creation/policy.yaml",)),
}
"""By template: the condition for rendering it (always if empty), and its manifests in `config/`."""
FULL_NAME: Final = '{{ include "hvpa.fullname" . }}'
ACCOUNT: Final = '{{ include "hvpa.serviceAccountName" . }}'
NAMESPACE: Final = "{{ .Release.Namespace }}"
KEEP: Final = "    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"
EXTRA_LABELS: Final = (
    "    {{- with .Values.prometheusRule.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
)
DOCS_URL: Final = '{{ trimSuffix "/" .Values.prometheusRule.docsUrl }}'
_LABELS = r"(?<=^  labels:\n)    app\.kubernetes\.io/name: "
_KIND = r"^  - apiGroups: \[argoproj\.io\]\n    resources: \[rollouts/scale\]\n    verbs: (.*)$"
_EACH_KIND = r"""  {{- range .Values.customKinds }}
  - apiGroups: [{{ .group }}]
    resources: [{{ .resource }}/scale]
    verbs: \g<1>
  {{- end }}"""
_WORKLOADS = r"(resources: \[(?:deployments, .*|replicationcontrollers)\]\n    verbs: )\[list, watch, patch\]"
SUBSTITUTIONS: Final = (
    (_LABELS + r"hvpa$", '    {{- include "hvpa.labels" . | nindent 4 }}'),
    (_LABELS + r"hvpa-dashboard$", '    {{- include "hvpa.dashboardLabels" . | nindent 4 }}'),
    (r"(kind: ServiceAccount\n +name: )hvpa$", rf"\g<1>{ACCOUNT}"),
    (r"(paramRef:\n    name: )hvpa(?=\n    namespace:)", rf"\g<1>{ACCOUNT}"),
    (r"(serviceAccount: \{namespace: )hvpa-system, name: hvpa\}", rf"\g<1>{NAMESPACE}, name: {ACCOUNT}}}"),
    (r"hvpa-system", NAMESPACE),
    # The HvpaSizes object has the same name in every namespace, regardless of the release's name.
    (r"(?<!paramRef:\n    )((?<!/)(?:name|policyName): )hvpa(-[a-z-]+)?$", rf"\g<1>{FULL_NAME}\g<2>"),
    (r"(resourceNames: \[)hvpa(-kubelets\])$", rf"\g<1>{FULL_NAME}\g<2>"),
    (_KIND, _EACH_KIND),
    (_WORKLOADS, r"\g<1>[list, watch{{ if not .Values.inPlaceOnly }}, patch{{ end }}]"),
)
"""Patterns and replacements, applied to each manifest in order."""
_ROWS = re.compile(r"(<!-- values: begin -->\n).*(<!-- values: end -->)", re.DOTALL)


def template(name: str) -> str:
    """Return the template of this name."""
    condition, sources = TEMPLATES[name]
    note = f"{{{{- /* make generate writes this from config/: {', '.join(sources)} */ -}}}}\n"
    text = "---\n".join(map(_adapted, sources))
    return note + (f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text)


def _adapted(source: str) -> str:
    text = (ROOT / "config" / source).read_text().replace("{{", '{{ "{{" }}')  # for Prometheus, not for Helm
    for pattern, by in SUBSTITUTIONS:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    if source.startswith(("crd/", "hvpa-policy/crd_")):
        text = text.replace("  annotations:\n", f"  annotations:\n{KEEP}", 1)
    if source == "monitoring/prometheus_rule.yaml":
        text = text.replace("spec:\n", f"{EXTRA_LABELS}spec:\n", 1)
        text = re.sub(r"(runbook_url: )https://hvpa\.example\.org", rf"\g<1>{DOCS_URL}", text)
    return text


def values() -> dict[str, tuple[str, str]]:
    """Return the default and the comment of each value in `values.yaml`."""
    values_by_name: dict[str, tuple[str, str]] = {}
    path: list[str] = []
    comment: list[str] = []
    text = (CHART / "values.yaml").read_text()
    defaults = yaml.safe_load(text)
    for line in text.splitlines():
        if match := re.match(r" *# (.*)", line):
            comment.append(match[1])
        elif (match := re.match(r"( *)([\w]+):", line)) and comment:
            path = [*path[: len(match[1]) // 2], match[2]]
            default = defaults
            for key in path:
                default = default[key]
            values_by_name[".".join(path)] = (
                yaml.safe_dump(default, default_flow_style=True, width=999),
                " ".join(comment),
            )
            comment = []
        elif match:
            path = [*path[: len(match[1]) // 2], match[2]]
    return values_by_name


def readme() -> str:
    """Return the README with its table of values."""
    rows = "".join(
        f"| `{name}` | `{default.removesuffix('...' + chr(10)).strip()}` | {text} |\n"
        for name, (default, text) in values().items()
    )
    table = f"| value | default | |\n| --- | --- | --- |\n{rows}"
    return _ROWS.sub(lambda match: f"{match[1]}{table}{match[2]}", (CHART / "README.md").read_text())


def main(name: str) -> None:
    """Print the file of this name."""
    sys.stdout.write(readme() if name == "README.md" else template(name))


if __name__ == "__main__":
    main(sys.argv[1])
