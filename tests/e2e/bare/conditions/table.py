"""The whole table, and the reasons that are not in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tests.e2e.bare.conditions import gates, recommenders, spec, workload
from tests.e2e.bare.conditions.row import HEALTHY, Row

ROWS: Final[tuple[Row, ...]] = (*workload.ROWS, *spec.ROWS, *recommenders.ROWS, *gates.ROWS)
WALKED: Final = frozenset(reason for row in ROWS for reason in row.reasons) | {
    reason for _, _, reason in HEALTHY
}
"""The reasons that the rows walk."""


class Elsewhere(NamedTuple):
    """Why a reason has no row, and the test (file::function) that shows it instead."""

    why: str
    test: str


MOMENTARY = "holds for milliseconds, until the operator's write has come back by its watch"
FAST_SIGNAL = "takes kubelets that report usage (tests/e2e/node/test_fast_signal.py has one)"
AMONG_SEVERAL = "takes several Hvpas on one target, which a row does not have"
ELSEWHERE: Final[Mapping[str, Elsewhere]] = {
    "HpaCreated": Elsewhere(
        MOMENTARY,
        "tests/unit/core/recommenders/test_ownership.py::test_what_is_missing_is_created_under_the_hvpas_name",
    ),
    "VpaCreated": Elsewhere(
        MOMENTARY,
        "tests/unit/core/recommenders/test_ownership.py::test_what_is_missing_is_created_under_the_hvpas_name",
    ),
    "HpaAwaited": Elsewhere(
        AMONG_SEVERAL,
        "tests/unit/core/recommenders/test_read_only.py::test_of_several_the_first_creates_and_the_others_wait",
    ),
    "VpaAwaited": Elsewhere(
        AMONG_SEVERAL,
        "tests/unit/core/recommenders/test_read_only.py::test_of_several_the_first_creates_and_the_others_wait",
    ),
    "ReadAsIs": Elsewhere(
        AMONG_SEVERAL,
        "tests/unit/core/recommenders/test_read_only.py::test_an_hpa_that_scales_the_workload_is_read_as_it_is",
    ),
    "TooManyMetrics": Elsewhere(
        "takes an HPA of more than 100 metrics, which would slow down all that follows on this API server",
        "tests/unit/core/recommenders/test_desired_replicas.py::test_an_hpa_with_too_many_metrics_has_no_say",
    ),
    "PodLevelResources": Elsewhere(
        "takes a workload with a limit of the pod, and a VPA that asks for more, from the beginning",
        "tests/e2e/bare/scaling/test_resources.py::test_containers_get_no_more_than_a_limit_of_the_pod_that_stays_leaves",
    ),
    "LargestNode": Elsewhere(
        "takes nodes, and a VPA that asks for more than they have",
        "tests/e2e/bare/scaling/test_largest_node.py::test_no_request_is_raised_beyond_the_largest_node",
    ),
    "ApprovalInvalid": Elsewhere(
        "takes an annotation of the Hvpa",
        "tests/unit/core/gates/test_approval.py::test_an_invalid_annotation_makes_the_hvpa_not_ready",
    ),
    "HeapFixed": Elsewhere(
        "takes a pod template with a command that sets a heap, from the beginning",
        "tests/unit/core/actuation/test_runtimes.py::test_the_condition_names_what_a_larger_limit_is_not_worth",
    ),
    "HeapKept": Elsewhere(
        "takes a declared runtime from the beginning",
        "tests/unit/core/workload/test_runtimes_heap.py::test_memory_is_not_lowered_below_a_share_that_holds_the_usage",
    ),
    "RuntimeMismatch": Elsewhere(
        "takes a pod template with a command, and a declared runtime that it contradicts",
        "tests/unit/core/actuation/test_runtimes.py::test_the_condition_names_a_runtime_that_the_template_contradicts",
    ),
    "NodesUnknown": Elsewhere(
        "takes an operator without the right to read nodes",
        "tests/unit/core/workload/test_nodes.py::test_without_the_right_to_read_nodes_none_bounds_requests",
    ),
    "NoReplicaCount": Elsewhere(
        "takes a DaemonSet",
        "tests/e2e/bare/scaling/test_kinds.py::test_a_daemonset_has_no_replicas_to_scale",
    ),
    "TargetUnreadable": Elsewhere(
        "takes an API server that refuses a list",
        "tests/e2e/bare/faults/test_convergence.py::test_a_kind_that_cant_be_listed_is_reported_and_tried_again",
    ),
    "PodsNotResized": Elsewhere(
        "takes pods and what their kubelet says",
        "tests/e2e/bare/actuation/test_limit_range.py::test_what_it_refuses_is_reported_in_its_words_and_what_it_allows_is_set",
    ),
    "NodeForbidsResize": Elsewhere(
        "takes pods and what their kubelet says",
        "tests/e2e/bare/actuation/test_circumstances.py::test_a_node_that_resizes_no_cpu_is_named",
    ),
    "NotPermitted": Elsewhere(
        "takes an operator without the right to patch workloads",
        "tests/e2e/bare/actuation/test_profile.py::test_with_these_rights_both_axes_are_scaled_and_no_template_can_be_changed",
    ),
    "VpaNotServed": Elsewhere(
        "takes a cluster without the VPA's CRDs, which all other rows need",
        "tests/unit/core/test_observing.py::test_a_cluster_without_vpas_is_reported",
    ),
    "DecisionFailed": Elsewhere(
        "takes a defect of the operator",
        "tests/unit/core/report/test_status.py::test_a_failed_write_is_on_top_of_what_was_decided_and_reported_once",
    ),
    "DecisionPostponed": Elsewhere(
        "takes a namespace whose decisions take more than a fifth of the operator's time",
        "tests/unit/core/report/test_conditions.py::test_a_late_decision_is_reported_beside_what_is_wrong_otherwise",
    ),
    "Canary": Elsewhere(
        "takes pods of a workload that is resized in place (tests/e2e/bare/actuation/test_canary.py has it)",
        "tests/unit/core/actuation/test_trial.py::test_canary_holds_another_change_until_the_trial_is_over",
    ),
    "RolledBack": Elsewhere(
        "takes pods of a workload that is resized in place (tests/e2e/bare/actuation/test_canary.py has it)",
        "tests/unit/core/actuation/test_trial.py::test_rolled_back_holds_a_size_that_failed_for_a_day",
    ),
    "LostHistory": Elsewhere(
        "takes a recommender that starts without its checkpoints",
        "tests/e2e/full/test_lost_history.py::test_lost_history_holds_every_decrease_until_it_is_back",
    ),
    "NotInPlace": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_pods_that_are_replaced_have_no_fast_signal",
    ),
    "NothingRaised": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_kubelets_are_not_polled_if_nothing_may_be_raised",
    ),
    "Reporting": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_the_condition_says_whether_kubelets_report",
    ),
    "SampleAwaited": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_the_condition_says_whether_kubelets_report",
    ),
    "SampleStale": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_the_condition_says_whether_kubelets_report",
    ),
    "KubeletsSilent": Elsewhere(
        FAST_SIGNAL,
        "tests/unit/core/fast/test_report.py::test_the_condition_says_whether_kubelets_report",
    ),
    "PodReplacement": Elsewhere(
        "takes a Trajectory with pods of the old size that are replaced (tests/e2e/bare/scaling/test_joint.py has it)",
        "tests/unit/core/trajectory/step/test_step.py::test_pod_replacement_holds_fewer_replicas_until_the_larger_pods_are_there",
    ),
    "SustainedDemand": Elsewhere(
        "takes a Trajectory that has run for minutes at maxReplicas",
        "tests/unit/core/trajectory/step/test_waits.py::test_sustained_demand_holds_larger_pods_for_five_minutes_at_max_replicas",
    ),
}
"""Reasons without a row. (kube-controller-manager's reasons for an HPA are passed on as they are: two rows have one
that can be passed on and one that can't.)"""
