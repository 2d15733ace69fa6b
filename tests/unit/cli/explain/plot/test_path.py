"""`hvpa explain --plot`: the drawing of a path, and what is refused."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.cli.explain.plot.panel import multiples, short, step
from hvpa.cli.explain.plot.path import bare_path, draw_path
from tests.unit.cli.support import NOW, Doc, Shell, changed, load

GIB = 1024**3


@pytest.fixture
def shop() -> list[Doc]:
    """An Hvpa of two resources on a path."""
    return load("trajectory.yaml")


def plot(shell: Shell, documents: list[Doc], name: str = "path.svg", *flags: str) -> Any:
    """The command's end."""
    return shell.run(
        "explain", "-f", shell.file(documents), "--now", NOW, "--plot", str(shell.folder / name), *flags
    )


def words(svg: str) -> set[str]:
    """What is written in a drawing: matplotlib draws letters as shapes, and says in comments which."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    comment: Any = ET.Comment
    return {(one.text or "").strip() for one in ET.fromstring(svg, parser).iter() if one.tag is comment}


# --- the drawing -----------------------------------------------------------------------------------------------------
def test_the_drawing_names_containers_points_and_totals(shell: Shell, shop: list[Doc]) -> None:
    ran = plot(shell, shop)
    assert (ran.code, ran.err) == (0, "")
    assert "\nPath\n" in ran.out
    told = words((shell.folder / "path.svg").read_text(encoding="utf-8"))
    assert {
        f"Hvpa default/shop, {NOW}",
        "app cpu: request of each pod",
        "app memory: request of each pod",
        "usual demand: 3 × 800m",
        "now: 2 × 1",
        "wanted: 5 × 800m",
        "wanted: 5 × 1.17Gi",
        "usually 2400m",
        "needs 3600m",
        "usually 3.52Gi",
        "20",
        "16Gi",
    } <= told


def test_the_same_decision_gives_the_same_bytes(shell: Shell, shop: list[Doc]) -> None:
    plot(shell, shop, "a.svg")
    beside = plot(shell, shop, "b.SVG", "-o", "json").json
    assert beside["path"]["wanted"]["replicas"] == 5
    first = (shell.folder / "a.svg").read_bytes()
    assert first == (shell.folder / "b.SVG").read_bytes()
    assert b"<dc:date>" not in first
    assert b"Matplotlib" not in first


def trajectory(spec: Doc) -> HvpaSpec:
    found = build.hvpa({"blend": "Trajectory", **spec}).spec
    assert found is not None
    return found


POLICY = {"containerPolicies": [{"containerName": "app", "minAllowed": {"cpu": "1"}}]}
INTERVALS = {"intervals": [{"maxReplicas": 3, "maxResources": {"memory": "2Gi"}}]}
STRETCH = [{"vpaWeight": 0, "lastReplicaCount": 3}, {"vpaWeight": 100, "startReplicaCount": 3}]


@pytest.mark.parametrize(
    ("spec", "requests", "told"),
    [
        pytest.param({}, {"cpu": "1"}, "replicas", id="weights"),
        pytest.param({"hpa": None}, {"cpu": "1"}, "replicas (the path goes on)", id="without an end"),
        pytest.param(
            {"hpa": {"template": {"spec": {"maxReplicas": 100}}}},
            {"cpu": "1"},
            "replicas (the path goes on to 100)",
            id="a long one",
        ),
        pytest.param(
            {
                "weightBasedScalingIntervals": STRETCH,
                "vpa": {"template": {"spec": {"resourcePolicy": POLICY}}},
            },
            {"cpu": "1"},
            "app cpu: request of each pod",
            id="straight up without an end",
        ),
        pytest.param(
            {"weightBasedScalingIntervals": None, "trajectory": INTERVALS, "hpa": None},
            {"memory": "1Gi"},
            "2Gi",
            id="written out",
        ),
    ],
)
def test_a_bare_path_is_drawn_from_a_spec(spec: Doc, requests: dict[str, str], told: str) -> None:
    svg = draw_path(bare_path(trajectory(spec), {"app": requests}), title="a path").decode()
    assert {"a path", told} <= words(svg)


def test_a_bare_path_is_the_one_of_a_decision() -> None:
    decision = build.decided(
        build.objects(
            build.hvpa({"blend": "Trajectory"}),
            horizontal=build.hpa(3, 50),
            vertical=build.vpa({"app": {"cpu": "2", "memory": "1Gi"}}),
        )
    )
    assert decision.joint is not None
    assert bare_path(trajectory({}), {"app": {"cpu": "1", "memory": "1Gi"}}) == decision.joint.path


def test_a_picture_of_the_path_can_be_had_too() -> None:
    path = bare_path(trajectory({}), {"app": {"cpu": "1"}})
    assert draw_path(path, kind="png").startswith(b"\x89PNG")


def test_a_path_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no container has a resource"):
        draw_path(bare_path(trajectory({}), {}))


# --- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"Hvpa__spec__blend": "Additive"},
            "Hvpa default/shop: there is no path to draw: spec.blend is not Trajectory",
        ),
        (
            {"Hvpa__spec__targetRef__name": "gone"},
            "Hvpa default/shop: there is no path to draw: Deployment gone does not exist",
        ),
        (
            {"VerticalPodAutoscaler__status": {}},
            "Hvpa default/shop: there is no path to draw: ",
        ),
    ],
)
def test_what_has_no_path_is_told_in_one_line(shell: Shell, shop: list[Doc], changes: Doc, told: str) -> None:
    ran = plot(shell, changed(shop, **changes))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"hvpa: error: {told}")
    assert len(ran.err.splitlines()) == 1
    assert not (shell.folder / "path.svg").exists()


@pytest.mark.parametrize("name", ["path.png", "path", ".svg", ""])
def test_another_kind_of_file_is_wrong_usage(shell: Shell, shop: list[Doc], name: str) -> None:
    ran = shell.run("explain", "-f", shell.file(shop), "--plot", name)
    assert (ran.code, ran.out) == (2, "")
    assert f"argument --plot: {name}: the name of an SVG file ends in .svg" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_folder_that_is_not_there_is_told(shell: Shell, shop: list[Doc]) -> None:
    ran = plot(shell, shop, "missing/path.svg")
    assert (ran.code, ran.out) == (1, "")
    assert "can't be written: it is a folder, or its folder is not there" in ran.err


def test_a_missing_library_is_told(shell: Shell, shop: list[Doc], monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest)
    )
    ran = plot(shell, shop)
    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err == "hvpa: error: --plot needs matplotlib, which is not installed: pip install 'hvpa[plots]'\n"
    )


# --- scales ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("resource", "span", "expected"),
    [
        ("cpu", 10_000, 2000),
        ("cpu", 7, 2),
        ("cpu", 0.5, 1),
        ("cpu", 31, 10),
        ("memory", 5 * GIB, GIB),
        ("memory", 1, 1),
    ],
)
def test_steps_are_round(resource: Any, span: float, expected: int) -> None:
    assert step(resource, span, 5) == expected


def test_multiples_reach_to_the_end_of_the_span() -> None:
    assert list(multiples("cpu", 1100, 5)) == [0, 500, 1000]


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", 1667, "1667m"),
        ("cpu", 12_345, "12.3"),
        ("cpu", 12_000, "12"),
        ("memory", 1_717_987_000, "1.6Gi"),
        ("memory", 123 * GIB + GIB // 3, "123Gi"),
        ("memory", 2 * GIB, "2Gi"),
        ("memory", 1000, "1000"),
    ],
)
def test_amounts_are_short(resource: Any, amount: int, expected: str) -> None:
    assert short(resource, amount) == expected
