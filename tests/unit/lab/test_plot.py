"""`hvpa explain --plot`: the drawing of a path, and what is refused."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from hvpa_lab.plot import multiples, short, step
from tests.unit.cli.support import NOW, Doc, Shell, changed

GIB = 1024**3


def plotting(shell: Shell, documents: list[Doc], name: str = "path.svg") -> tuple[str, ...]:
    """The arguments of the command that draws."""
    return ("explain", "-f", shell.file(documents), "--now", NOW, "--plot", str(shell.folder / name))


def words(svg: str) -> set[str]:
    """What is written in a drawing: matplotlib draws letters as shapes, and says in comments which."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    comment: Any = ET.Comment
    return {(one.text or "").strip() for one in ET.fromstring(svg, parser).iter() if one.tag is comment}


# --- the drawing -----------------------------------------------------------------------------------------------------
def test_the_drawing_names_containers_points_and_totals(shell: Shell, trajectory: list[Doc]) -> None:
    ran = shell.run(*plotting(shell, trajectory))
    assert (ran.code, ran.err) == (0, "")
    assert "\nPath\n" in ran.out
    shown = words((shell.folder / "path.svg").read_text(encoding="utf-8"))
    assert {
        f"Hvpa default/shop, {NOW}",
        "app cpu: request of each pod",
        "usual demand: 2 × 1200m",
        "now: 2 × 1",
        "wanted: 4 × 1200m",
        "usually 2400m",
        "needs 3600m",
        "20",
    } <= shown


def test_the_same_decision_gives_the_same_bytes(shell: Shell, trajectory: list[Doc]) -> None:
    shell.run(*plotting(shell, trajectory, "a.svg"))
    beside = shell.run(*plotting(shell, trajectory, "b.SVG"), "-o", "json").json
    assert beside["path"]["wanted"]["replicas"] == 4
    first = (shell.folder / "a.svg").read_bytes()
    assert first == (shell.folder / "b.SVG").read_bytes()
    assert b"<dc:date>" not in first
    assert b"Matplotlib" not in first


STRETCH = [{"vpaWeight": 0, "lastReplicaCount": 3}, {"vpaWeight": 100, "startReplicaCount": 3}]
UPWARD = {
    "Hvpa__spec__hpa__template__spec__maxReplicas": 3,
    "Hvpa__spec__weightBasedScalingIntervals": STRETCH,
    "Hvpa__spec__vpa__template__spec__resourcePolicy": {"containerPolicies": [{"containerName": "app"}]},
}
ONE_COUNT = {f"Hvpa__spec__hpa__template__spec__{name}": 2 for name in ("minReplicas", "maxReplicas")}
WRITTEN = {
    "Hvpa__spec__weightBasedScalingIntervals": None,
    "Hvpa__spec__trajectory": {
        "intervals": [{"maxReplicas": 3, "maxResources": {"cpu": "2", "memory": "2Gi"}}]
    },
}


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        pytest.param({}, "replicas", id="all of the path is shown"),
        pytest.param(ONE_COUNT, "now: 2 × 1", id="of one replica count"),
        pytest.param(
            {"Hvpa__spec__hpa__template__spec__maxReplicas": 100},
            "replicas (the path goes on to 100)",
            id="a long one",
        ),
        pytest.param(UPWARD, "app cpu: request of each pod", id="straight up without an end"),
        pytest.param(WRITTEN, "wanted: 4 × 1200m", id="written out"),
    ],
)
def test_each_form_of_a_path_is_drawn(shell: Shell, trajectory: list[Doc], changes: Doc, shown: str) -> None:
    ran = shell.run(*plotting(shell, changed(trajectory, **changes)))
    assert (ran.code, ran.err) == (0, "")
    assert shown in words((shell.folder / "path.svg").read_text(encoding="utf-8"))


# --- what is refused -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Hvpa__spec__blend": "Additive"}, ": spec.blend is not Trajectory"),
        ({"Hvpa__spec__targetRef__name": "gone"}, ": Deployment gone does not exist"),
        ({"VPA__status": {}}, ": VerticalPodAutoscaler shop has no recommendation yet"),
        ({"Hvpa__spec__hpa": {}}, ": no HPA metric measures a resource that has a VPA target"),
    ],
)
def test_what_has_no_path_is_refused_in_one_line(
    shell: Shell, trajectory: list[Doc], changes: Doc, why: str
) -> None:
    error = shell.refuses(*plotting(shell, changed(trajectory, **changes)))
    assert error == f"hvpa: error: Hvpa default/shop: there is no path to draw{why}\n"
    assert not (shell.folder / "path.svg").exists()


@pytest.mark.parametrize("name", ["path.png", "path", ".svg", ""])
def test_another_kind_of_file_is_wrong_usage(shell: Shell, name: str) -> None:
    error = shell.refuses("explain", "-f", "x.yaml", "--plot", name, code=2)
    assert f"argument --plot: {name}: the file name must end in .svg" in error


def test_a_folder_that_is_not_there_is_reported(shell: Shell, trajectory: list[Doc]) -> None:
    error = shell.refuses(*plotting(shell, trajectory, "missing/path.svg"))
    assert "can't be written: it is a folder, or its folder does not exist" in error


def test_a_missing_library_is_reported(
    shell: Shell, trajectory: list[Doc], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest)
    )
    needs = "hvpa: error: --plot needs matplotlib, which is not installed: pip install 'hvpa[lab]'\n"
    assert shell.refuses(*plotting(shell, trajectory)) == needs


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
