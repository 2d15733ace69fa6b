"""Which pods the updater evicts, and which it resizes in place. Numbers of `priority_processor_test.go`,
`update_priority_calculator_test.go`, `pods_eviction_restriction_test.go`, `pods_inplace_restriction_test.go` and
`updater_test.go`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import ContainerRecommendation, Recommendation, Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.state import Resize, ResizeState, SimContainer, SimPod
from hvpa_lab.simulate.policy.admission import Amounts, RecommendedRequests
from hvpa_lab.simulate.policy.updater import Priority, Updater, UpdaterSettings, priority_of

HOUR = 3600.0
NOW = 100 * HOUR
OLD = NOW - 13 * HOUR
YOUNG = NOW - 11 * HOUR


def amounts(**quantities: str) -> Amounts:
    sizes: Amounts = {}
    names: tuple[Resource, ...] = ("cpu", "memory")
    for name in names:
        if name in quantities:
            sizes[name] = parse_resource(name, quantities[name])
    return sizes


def requesting(**quantities: str) -> dict[str, ResourceRequirements]:
    return {"app": ResourceRequirements(amounts(**quantities), {})}


def pod(name: str, cpu: str = "1", resize: ResizeState | None = None, **changes: Any) -> SimPod:
    """A pod that is old, and runs."""
    sim_pod = SimPod(name, 1, {}, requesting(cpu=cpu), 0.0)
    if resize is not None:
        sim_pod.resize = Resize(sim_pod, {}, 0.0, resize)
    for field, value in ({"started": OLD, "node": 0} | changes).items():
        setattr(sim_pod, field, value)
    return sim_pod


def container(name: str, oom_at: float | None = None, oom_started: float | None = None) -> SimContainer:
    sim_container = SimContainer(name)
    sim_container.oom_at, sim_container.oom_started = oom_at, oom_started
    return sim_container


def vpa(
    target: str = "10",
    lower: str | None = None,
    upper: str | None = None,
    mode: str = "Recreate",
    **policy: Any,
) -> Vpa:
    spec = {
        "updatePolicy": {"updateMode": mode},
        "resourcePolicy": {"containerPolicies": [{"containerName": "app", **policy}]},
    }
    recommendation = ContainerRecommendation(
        container_name="app",
        target={"cpu": target},
        lower_bound={"cpu": lower} if lower else {},
        upper_bound={"cpu": upper} if upper else {},
    )
    return Vpa(
        metadata=VpaMeta(name="app"),
        raw_spec=msgspec.Raw(msgspec.json.encode(spec)),
        status=VpaStatusRead(recommendation=Recommendation(container_recommendations=[recommendation])),
    )


def evicted(pods: list[SimPod], wanted: Vpa, replicas: int = 4, **settings: Any) -> list[str]:
    updates = Updater(UpdaterSettings(**settings)).loop(pods, wanted, replicas, NOW, lambda _: True)
    assert not updates.resize
    return [pod.name for pod in updates.evict]


def four(*first: SimPod) -> list[SimPod]:
    """These pods, and as many that need no change as make four."""
    rest = [pod(f"rest-{n}", "10") for n in range(4 - len(first))]
    return [*first, *rest]


class TestPriority:
    @pytest.mark.parametrize(
        ("requests", "target", "lower", "upper", "expected"),
        [
            ({"cpu": "2"}, {"cpu": "10"}, {}, {}, (True, 4.0, False)),
            ({"cpu": "4"}, {"cpu": "2"}, {}, {}, (False, 0.5, False)),
            ({"cpu": "2"}, {"cpu": "2"}, {}, {}, (False, 0.0, False)),
            ({"cpu": "10m"}, {"cpu": "900m"}, {}, {}, (True, 89.0, False)),
            ({"cpu": "4"}, {"cpu": "10"}, {"cpu": "6"}, {"cpu": "14"}, (True, 1.5, True)),
            ({"cpu": "8"}, {"cpu": "2"}, {"cpu": "1"}, {"cpu": "3"}, (False, 0.75, True)),
            ({"cpu": "3", "memory": "10M"}, {"cpu": "6", "memory": "20M"}, {}, {}, (True, 2.0, False)),
            ({"cpu": "4", "memory": "10M"}, {"cpu": "2", "memory": "20M"}, {}, {}, (True, 1.5, False)),
            (
                {"cpu": "4", "memory": "20M"},
                {"cpu": "2", "memory": "10M"},
                {"cpu": "1", "memory": "5M"},
                {"cpu": "3", "memory": "30M"},
                (False, 1.0, True),
            ),
            ({}, {"cpu": "1"}, {}, {}, (True, 999.0, True)),
            ({"cpu": "0"}, {"memory": "1"}, {}, {}, (True, 999.0, True)),
        ],
    )
    def test_of_one_container(
        self,
        requests: dict[str, str],
        target: dict[str, str],
        lower: dict[str, str],
        upper: dict[str, str],
        expected: tuple[bool, float, bool],
    ) -> None:
        recommendation = RecommendedRequests(amounts(**target), amounts(**lower), amounts(**upper))
        assert priority_of(requesting(**requests), {"app": recommendation}) == Priority(*expected)

    def test_of_two_containers_is_that_of_their_sums(self) -> None:
        resources = {
            "app": ResourceRequirements(amounts(cpu="6", memory="10M"), {}),
            "log": ResourceRequirements(amounts(cpu="4", memory="30M"), {}),
        }
        recommendations = {
            "app": RecommendedRequests(amounts(cpu="8", memory="20M"), {}, {}),
            "log": RecommendedRequests(amounts(cpu="7", memory="30M"), {}, {}),
        }
        assert priority_of(resources, recommendations) == Priority(True, 0.75, False)

    def test_without_a_recommendation_there_is_none(self) -> None:
        assert priority_of(requesting(cpu="5"), {}) == Priority(False, 0.0, False)

    def test_growing_pods_come_first_then_those_that_change_most(self) -> None:
        cpus = {"shrinks": "1000", "grows": "8", "grows-more": "2", "same-as-grows": "8"}
        pods = [pod(name, cpu) for name, cpu in cpus.items()]
        order = evicted(pods, vpa(), eviction_tolerance=1.0)
        assert order == ["grows-more", "grows", "same-as-grows", "shrinks"]


class TestWhoNeedsIt:
    @pytest.mark.parametrize(
        ("cpu", "started", "expected"),
        [
            ("8", OLD, True),
            ("8", YOUNG, False),
            ("8", None, False),
            ("9.5", OLD, False),
            ("9.05", OLD, True),
            ("5", YOUNG, True),
            ("16", YOUNG, True),
        ],
    )
    def test_inside_the_range_only_old_pods_that_change_enough(
        self, cpu: str, started: float | None, expected: bool
    ) -> None:
        pods = four(pod("pod", cpu, started=started))
        assert evicted(pods, vpa("10", "6", "14")) == (["pod"] if expected else [])

    def test_the_lifetime_is_reached_at_its_end(self) -> None:
        pods = four(pod("pod", "8", started=NOW - 12 * HOUR))
        assert evicted(pods, vpa("10", "6", "14")) == ["pod"]

    @pytest.mark.parametrize(
        ("ran", "ago", "cpu", "expected"),
        [
            (60.0, 60.0, "9.9", True),
            (60.0, 60.0, "10", False),
            (600.0, 60.0, "9.9", False),
            (60.0, 600.0, "9.9", False),
        ],
    )
    def test_a_quick_oom_makes_a_young_pod_due_if_anything_changes(
        self, ran: float, ago: float, cpu: str, expected: bool
    ) -> None:
        quick = container("app", oom_at=NOW - ago, oom_started=NOW - ago - ran)
        pods = four(pod("pod", cpu, started=YOUNG, containers=[quick]))
        assert evicted(pods, vpa("10", "6", "14")) == (["pod"] if expected else [])

    @pytest.mark.parametrize(
        "container",
        [container("app"), container("app", oom_at=NOW - 60), container("log", NOW - 60, NOW - 90)],
    )
    def test_other_containers_do_not(self, container: SimContainer) -> None:
        pods = four(pod("pod", "9.9", started=YOUNG, containers=[container]))
        policies = {"resourcePolicy": {"containerPolicies": [{"containerName": "log", "mode": "Off"}]}}
        wanted = vpa("10", "6", "14")
        raw = msgspec.Raw(msgspec.json.encode(policies))
        assert evicted(pods, msgspec.structs.replace(wanted, raw_spec=raw)) == []

    def test_without_a_recommendation_none(self) -> None:
        none = msgspec.structs.replace(vpa(), status=VpaStatusRead())
        assert evicted(four(pod("pod", "1")), none) == []

    @pytest.mark.parametrize(
        ("mode", "acts"), [("Auto", True), ("", True), ("Initial", False), ("Off", False)]
    )
    def test_only_modes_that_evict(self, mode: str, acts: bool) -> None:
        assert bool(evicted(four(pod("pod", "1")), vpa(mode=mode))) is acts


class TestHowMany:
    @pytest.mark.parametrize(
        ("running", "replicas", "tolerance", "expected"),
        [
            (5, 5, 0.8, 4),
            (5, 5, 0.5, 2),
            (5, 5, 0.1, 1),
            (4, 5, 0.5, 1),
            (3, 5, 0.5, 0),
            (4, 5, 0.1, 0),
            (4, 4, 0.5, 2),
            (2, 2, 0.5, 1),
            (1, 1, 0.5, 0),
            (6, 5, 0.1, 1),
            (3, 0, 0.5, 0),
        ],
    )
    def test_so_many_that_enough_stay(
        self, running: int, replicas: int, tolerance: float, expected: int
    ) -> None:
        pods = [pod(f"pod-{n}", "1") for n in range(running)]
        names = evicted(pods, vpa(), replicas, eviction_tolerance=tolerance)
        assert names == [f"pod-{n}" for n in range(expected)]

    def test_one_replica_where_that_is_allowed(self) -> None:
        assert evicted([pod("pod", "1")], vpa(), 1, min_replicas=1) == ["pod"]

    @pytest.mark.parametrize("gone", [{"node": None}, {"deleted": NOW - 1}])
    def test_pods_that_are_not_there_do_not_count(self, gone: dict[str, Any]) -> None:
        pods = [pod("pod", "1"), pod("gone", "1", **gone)]
        assert evicted(pods, vpa(), 2) == []


def pods(number: int) -> list[SimPod]:
    return [pod(f"pod-{n}") for n in range(number)]


WANTED = vpa(mode="InPlaceOrRecreate")


# --- in place ---------------------------------------------------------------------------------------------------------
class InPlace:
    def __init__(self, **settings: Any) -> None:
        self._one = Updater(UpdaterSettings(**settings)) if settings else Updater()

    def loop(
        self, pods: list[SimPod], replicas: int = 4, now: float = NOW, refused: frozenset[str] = frozenset()
    ) -> tuple[list[str], list[str]]:
        updates = self._one.loop(pods, WANTED, replicas, now, lambda pod: pod.name in refused)
        return [pod.name for pod in updates.resize], [pod.name for pod in updates.evict]


@pytest.mark.parametrize(
    ("running", "replicas", "tolerance", "expected"),
    [
        (5, 5, 0.8, 4),
        (5, 5, 0.5, 2),
        (5, 5, 0.1, 1),
        (4, 5, 0.1, 0),
        (2, 2, 0.5, 1),
        (1, 1, 0.5, 0),
        (3, 0, 0.5, 0),
    ],
)
def test_as_many_are_resized_as_might_be_evicted(
    running: int, replicas: int, tolerance: float, expected: int
) -> None:
    names = InPlace(eviction_tolerance=tolerance).loop(pods(running), replicas)
    assert names == ([f"pod-{n}" for n in range(expected)], [])


def test_in_the_order_of_their_priority() -> None:
    pods = [pod("shrinks", "1000"), pod("grows", "8"), pod("grows-more", "2"), pod("fits", "10")]
    assert InPlace(eviction_tolerance=1.0).loop(pods) == (["grows-more", "grows", "shrinks"], [])


def test_without_a_recommendation_nothing_happens() -> None:
    none = msgspec.structs.replace(WANTED, status=VpaStatusRead())
    all_pods = [pod("stuck", resize="Infeasible"), *pods(3)]
    assert Updater().loop(all_pods, none, 4, NOW, lambda _: False) == ([], [])


@pytest.mark.parametrize("state", ["Infeasible", "Error"])
def test_what_can_not_be_resized_is_evicted_at_once(state: ResizeState) -> None:
    pods = [pod("stuck", resize=state), *(pod(f"fits-{n}", "10") for n in range(3))]
    assert InPlace().loop(pods) == ([], ["stuck"])


def test_one_that_the_kubelet_has_not_reported_on_is_no_failure() -> None:
    """The updater sees a resize by the pod's conditions only (`isInPlaceUpdating`), so it is requested again."""
    pods = [pod("asked", resize=""), *(pod(f"fits-{n}", "10") for n in range(3))]
    assert InPlace().loop(pods) == (["asked"], [])


def test_a_deferred_one_when_it_has_been_seen_so_for_more_than_five_minutes() -> None:
    pods = [pod("stuck", resize="Deferred"), *(pod(f"fits-{n}", "10") for n in range(3))]
    updater = InPlace()
    assert [updater.loop(pods, now=NOW + at)[1] for at in (0.0, 60.0, 300.0, 360.0)] == [
        [],
        [],
        [],
        ["stuck"],
    ]


def test_one_that_was_deferred_long_ago_is_not_waited_for_again() -> None:
    """The updater never forgets when it first saw a pod of this name so."""
    rest = [pod(f"fits-{n}", "10") for n in range(3)]
    updater = InPlace()
    assert updater.loop([pod("stuck", resize="Deferred"), *rest]) == ([], [])
    assert updater.loop([pod("stuck", "10"), *rest], now=NOW + 60.0) == ([], [])
    assert updater.loop([pod("stuck", resize="Deferred"), *rest], now=NOW + 3600.0) == ([], ["stuck"])


def test_while_too_many_are_missing_nothing_is_evicted_but_the_time_counts() -> None:
    pods = [pod("stuck", resize="Deferred"), pod("fits", "10")]
    updater = InPlace()
    assert updater.loop(pods) == ([], [])
    assert updater.loop(pods, now=NOW + 360.0) == ([], [])
    assert updater.loop([*pods, pod("back", "10")], now=NOW + 361.0) == ([], ["stuck"])


def test_one_that_has_what_it_needs_is_not_evicted_however_long_it_waits() -> None:
    pods = [pod("stuck", "10", resize="Infeasible"), *(pod(f"fits-{n}", "10") for n in range(3))]
    assert InPlace().loop(pods) == ([], [])


def test_evictions_come_out_of_what_resizes_leave() -> None:
    """Four of which two may be missing: two are resized, and the one that is stuck stays for now; with one to resize it
    goes."""
    stuck = pod("stuck", "9", resize="Infeasible", started=NOW - 13 * 3600.0)
    assert InPlace().loop([stuck, *pods(3)]) == (["pod-0", "pod-1"], [])
    assert InPlace().loop([stuck, pod("pod-0"), pod("a", "10"), pod("b", "10")]) == (["pod-0"], ["stuck"])


def test_where_the_api_server_refuses_a_resize_the_pod_is_evicted_after_the_others_were_resized() -> None:
    assert InPlace().loop(pods(4), refused=frozenset({"pod-0"})) == (["pod-1", "pod-2"], [])
    assert InPlace(eviction_tolerance=0.75).loop(pods(4), refused=frozenset({"pod-0", "pod-3"})) == (
        ["pod-1", "pod-2"],
        ["pod-0"],
    )
