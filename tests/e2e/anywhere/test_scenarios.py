"""An Hvpa resizes, replaces, adds and holds back pods, on whatever cluster."""

from __future__ import annotations

from tests.e2e.anywhere.place import LARGE, SMALL, Place, amounts


def test_running_containers_get_the_size_that_the_vpa_recommends(place: Place) -> None:
    place.start("web", updateStrategy={"type": "InPlace"})
    (before,) = place.ready("web")
    place.recommend("web", **LARGE)
    place.await_size("web", LARGE)
    (after,) = place.ready("web")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_rollout_replaces_pods_of_another_size(place: Place) -> None:
    place.start("web", updateStrategy={"type": "Rollout"})
    (before,) = place.ready("web")
    place.recommend("web", **LARGE)
    place.await_size("web", LARGE)
    assert place.template("web") == amounts(LARGE)
    assert [pod["metadata"]["uid"] for pod in place.ready("web")] != [before["metadata"]["uid"]]


def test_the_hpa_controller_adds_and_removes_pods_through_the_hvpa(place: Place) -> None:
    place.start("web", weightBasedScalingIntervals=[{"vpaWeight": 0}])
    place.bound("web", least=3)
    place.await_pods("web", 3)
    place.bound("web", most=2)
    place.await_pods("web", 2)


def test_a_paused_hvpa_writes_nothing_and_explain_says_so(place: Place) -> None:
    place.start("web", mode="Paused", updateStrategy={"type": "InPlace"})
    place.recommend("web", **LARGE)
    place.soon(lambda: place.condition("web", "Paused") == "True", "the Hvpa says that it is paused")
    assert "spec.mode is Paused" in place.explain("web")
    assert place.have("web") == [amounts(SMALL)]
    place.change("web", {"mode": "Apply"})
    place.await_size("web", LARGE)
