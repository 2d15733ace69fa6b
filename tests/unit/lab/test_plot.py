"""`hvpa explain --plot`: the page of a path, its data, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any

import pytest

from hvpa.cli.input.gather import gather
from hvpa.core import Decision
from hvpa_lab.plot.path import multiples, path, step
from tests.unit.cli.support import NOW, Doc, Shell, changed
from tests.unit.lab.dashboard import shop

GIB = 1024**3


def plotting(shell: Shell, documents: list[Doc], name: str = "path.html") -> tuple[str, ...]:
    """The arguments of the command that draws."""
    return ("explain", "-f", shell.file(documents), "--now", NOW, "--plot", str(shell.folder / name))


def drawn(shell: Shell, documents: list[Doc]) -> Any:
    """The data of the page's charts."""
    ran = shell.run(*plotting(shell, documents))
    assert (ran.code, ran.err) == (0, "")
    page = (shell.folder / "path.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    return json.loads(data)


# --- the page --------------------------------------------------------------------------------------------------------
def test_the_page_has_the_points_and_the_totals_that_they_serve(shell: Shell, trajectory: list[Doc]) -> None:
    (cpu,) = drawn(shell, trajectory)  # no metric measures memory
    assert (cpu["container"], cpu["resource"]) == ("app", "cpu")
    assert cpu["marks"] == {
        "usual": {"replicas": 2, "size": 1200},
        "now": {"replicas": 2, "size": 1000},
        "wanted": {"replicas": 4, "size": 1200},
    }
    totals = {total["of"]: total["demand"] for total in cpu["totals"] if total["of"]}
    assert totals == {"wanted": 3600, "usual": 2400}
    assert cpu["totals"][0]["sizes"][:4] == [3600, 1800, 1200, 900]
    assert [total["demand"] for total in cpu["totals"] if not total["of"]][:2] == [5000, 10_000]


def test_the_page_names_the_hvpa_and_the_time(shell: Shell, trajectory: list[Doc]) -> None:
    ran = shell.run(*plotting(shell, trajectory))
    assert "\nPath\n" in ran.out
    page = (shell.folder / "path.html").read_text(encoding="utf-8")
    assert f"<h1>Hvpa default/shop, {NOW}</h1>" in page


def test_the_same_decision_gives_the_same_bytes(shell: Shell, trajectory: list[Doc]) -> None:
    shell.run(*plotting(shell, trajectory, "a.html"))
    beside = shell.run(*plotting(shell, trajectory, "b.HTML"), "-o", "json").json
    assert beside["path"]["wanted"]["replicas"] == 4
    assert (shell.folder / "a.html").read_bytes() == (shell.folder / "b.HTML").read_bytes()


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
    ("changes", "counts", "goes_on", "unlimited"),
    [
        pytest.param({}, 10, False, [], id="all of the path is shown"),
        pytest.param(ONE_COUNT, 1, False, [], id="of one replica count"),
        pytest.param({"Hvpa__spec__hpa__template__spec__maxReplicas": 100}, 13, True, [], id="a long one"),
        pytest.param(UPWARD, 3, False, [3], id="straight up without an end"),
        pytest.param(WRITTEN, 10, False, [], id="written out"),
    ],
)
def test_each_form_of_a_path_is_drawn(
    shell: Shell, trajectory: list[Doc], changes: Doc, counts: int, goes_on: bool, unlimited: list[int]
) -> None:
    (cpu,) = drawn(shell, changed(trajectory, **changes))
    assert (len(cpu["counts"]), cpu["goesOn"]) == (counts, goes_on)
    assert [
        count for count, top in zip(cpu["counts"], cpu["largest"], strict=True) if top is None
    ] == unlimited


# --- the data --------------------------------------------------------------------------------------------------------
def decided(shell: Shell, documents: list[Doc]) -> Decision:
    return shop.decided(gather([shell.file(documents)], None).objects)[1]


@pytest.mark.parametrize("most", [10, 400])
def test_the_path_has_each_count_and_where_the_hvpa_stands_on_it(shell: Shell, most: int) -> None:
    documents = shop.documents()
    for document in documents:
        if document["kind"] == "HorizontalPodAutoscaler":
            document["spec"]["maxReplicas"] = most
        if document["kind"] == "Hvpa":
            document["spec"]["hpa"]["template"]["spec"]["maxReplicas"] = most
    decision = decided(shell, documents)
    (cpu,) = path(decision)  # no metric measures memory
    assert (cpu["container"], cpu["resource"]) == ("app", "cpu")
    assert cpu["counts"][0] == 1
    assert cpu["counts"] == list(range(1, len(cpu["counts"]) + 1))
    assert (len(cpu["counts"]) == 10, cpu["goesOn"]) == (most == 10, most == 400)
    assert all(low <= top for low, top in zip(cpu["smallest"], cpu["largest"], strict=True))
    assert cpu["largest"][0] == 1000  # the first request: minAllowed is a floor
    assert cpu["largest"] == sorted(cpu["largest"])
    assert cpu["marks"]["now"] == {"replicas": 2, "size": 1000}
    assert decision.joint is not None
    wanted = decision.joint.wanted
    assert cpu["marks"]["wanted"]["replicas"] == wanted.replicas
    assert cpu["marks"].keys() == {"now", "wanted", "usual"}


def test_there_is_no_path_with_blend_additive(shell: Shell) -> None:
    assert path(decided(shell, shop.documents(blend="Additive"))) == []


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
    assert not (shell.folder / "path.html").exists()


@pytest.mark.parametrize("name", ["path.svg", "path", ".html", ""])
def test_another_kind_of_file_is_wrong_usage(shell: Shell, name: str) -> None:
    error = shell.refuses("explain", "-f", "x.yaml", "--plot", name, code=2)
    assert f"argument --plot: {name}: the file name must end in .html" in error


def test_a_folder_that_is_not_there_is_reported(shell: Shell, trajectory: list[Doc]) -> None:
    error = shell.refuses(*plotting(shell, trajectory, "missing/path.html"))
    assert "can't be written: it is a folder, or its folder does not exist" in error


def test_a_missing_library_is_reported(
    shell: Shell, trajectory: list[Doc], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "jinja2" else find(name, *rest)
    )
    needs = "hvpa: error: --plot needs jinja2, which is not installed: pip install 'hvpa[lab]'\n"
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
