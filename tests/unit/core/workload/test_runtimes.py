"""Runtimes by command and environment, the heap that a template sets, and what it contradicts in `spec.runtimes`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from builders.build import GIB, MIB, container, decoded
from hvpa.api.hvpa.actuation import Runtime
from hvpa.api.objects.read_models import TemplateContainer
from hvpa.core.values.arithmetic import LARGEST
from hvpa.core.workload.runtimes import (
    VARIABLES,
    Heap,
    contradiction,
    full_heap_exits,
    heap_fixed,
    heap_of,
    heaps_of,
    read_at_start,
    runtime_of,
    shown_by,
    told,
)

LIMIT = {"valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}


def template(
    command: Sequence[object] = (), args: Sequence[object] = (), name: str = "app", **env: object
) -> TemplateContainer:
    """A container of a template; a variable is its value, or a mapping with `valueFrom`."""
    variables = [
        {"name": key, **(value if isinstance(value, Mapping) else {"value": value})}
        for key, value in env.items()
    ]
    document = {**container(name), "command": list(command), "args": list(args), "env": variables}
    return decoded(TemplateContainer, document)


def runtime(kind: str = "Java", heap_percent: int | None = None, name: str = "app") -> Runtime:
    return Runtime.model_validate({"container": name, "kind": kind, "heapPercent": heap_percent})


# --- the kind --------------------------------------------------------------------------------------------------------
KINDS: dict[str, tuple[TemplateContainer, str | None]] = {
    "java": (template(["java", "-jar", "app.jar"]), "Java"),
    "a path to java": (template(["/usr/lib/jvm/bin/java", "-version"]), "Java"),
    "java in a shell": (template(["sh", "-c"], ["exec java -Xmx1g -jar app.jar"]), "Java"),
    "after another command": (template(["sh", "-c", "cd /app;node main.js"]), "Node"),
    "node": (template(["node", "main.js"]), "Node"),
    "npm": (template(args=["npm", "start"]), "Node"),
    "python": (template(["python3.11", "-m", "app"]), "Python"),
    "gunicorn": (template(["gunicorn", "app:app"]), "Python"),
    "options of a JVM": (template(JAVA_TOOL_OPTIONS="-Xmx1g"), "Java"),
    "options of Node": (template(NODE_OPTIONS="--max-old-space-size=1"), "Node"),
    "a limit of Go": (template(GOMEMLIMIT=LIMIT), "Go"),
    "processors of Go": (template(GOMAXPROCS="2"), "Go"),
    "python's path": (template(PYTHONPATH="/app"), "Python"),
    "command before environment": (template(["python3", "app.py"], JAVA_TOOL_OPTIONS="-Xmx1g"), "Python"),
    "two in the environment": (template(NODE_OPTIONS="", GOMAXPROCS="2"), None),
    "nothing": (template(), None),
    "a word that only contains java": (template(["javascriptcore", "/srv/java-app/run"]), None),
    "other variables": (template(["/app"], PORT="80"), None),
    "numbers and nothing as words": (template(["node", 1, None, True, 1.5]), "Node"),
}


@pytest.mark.parametrize(("shown", "kind"), KINDS.values(), ids=KINDS.keys())
def test_a_runtime_is_recognised_by_command_and_environment(
    shown: TemplateContainer, kind: str | None
) -> None:
    assert runtime_of(shown) == kind


# --- the heap --------------------------------------------------------------------------------------------------------
HEAPS: dict[str, tuple[TemplateContainer, str, Heap | None]] = {
    "Xmx": (template(["java", "-Xmx512m"]), "Java", Heap("-Xmx512m in the command", 512 * MIB)),
    "in gigabytes": (template(["java", "-Xmx2G", "x"]), "Java", Heap("-Xmx2G in the command", 2 * GIB)),
    "in bytes": (template(["java", "-Xmx1048576"]), "Java", Heap("-Xmx1048576 in the command", MIB)),
    "MaxHeapSize": (
        template(["java", "-XX:MaxHeapSize=64m"]),
        "Java",
        Heap("-XX:MaxHeapSize=64m in the command", 64 * MIB),
    ),
    "in a variable": (
        template(JAVA_TOOL_OPTIONS="-Xms1g -Xmx1g"),
        "Java",
        Heap("-Xmx1g in JAVA_TOOL_OPTIONS", GIB),
    ),
    "the command after the variable": (
        template(["java", "-Xmx2g"], JAVA_TOOL_OPTIONS="-Xmx1g"),
        "Java",
        Heap("-Xmx2g in the command", 2 * GIB),
    ),
    "a variable after the command": (
        template(["java", "-Xmx2g"], _JAVA_OPTIONS="-Xmx1g"),
        "Java",
        Heap("-Xmx1g in _JAVA_OPTIONS", GIB),
    ),
    "the last of two": (template(["java", "-Xmx2g", "-Xmx1g"]), "Java", Heap("-Xmx1g in the command", GIB)),
    "a percentage": (
        template(JDK_JAVA_OPTIONS="-XX:MaxRAMPercentage=75.0"),
        "Java",
        Heap("-XX:MaxRAMPercentage=75.0 in JDK_JAVA_OPTIONS", percent=75.0),
    ),
    "a size before a percentage": (
        template(["java", "-Xmx1g", "-XX:MaxRAMPercentage=75"]),
        "Java",
        Heap("-Xmx1g in the command", GIB),
    ),
    "a size that only the container knows": (template(["java", "-Xmx$(HEAP)"]), "Java", None),
    "a size of nothing": (template(["java", "-Xmx0"]), "Java", None),
    "too many digits": (template(["java", "-Xmx" + "9" * 400]), "Java", None),
    "another option": (template(["java", "-Xms1g"]), "Java", None),
    "a variable from elsewhere": (template(JAVA_TOOL_OPTIONS={"valueFrom": {}}), "Java", None),
    "node": (
        template(NODE_OPTIONS="--max-old-space-size=400"),
        "Node",
        Heap("--max-old-space-size=400 in NODE_OPTIONS", 400 * MIB),
    ),
    "node with other characters": (
        template(["node", "--max_old_space_size", "400", "main.js"]),
        "Node",
        Heap("--max_old_space_size 400 in the command", 400 * MIB),
    ),
    "node with an option of Java": (template(["node", "-Xmx1g"]), "Node", None),
    "go": (template(GOMEMLIMIT="400MiB"), "Go", Heap("GOMEMLIMIT=400MiB", 400 * MIB)),
    "go in bytes": (template(GOMEMLIMIT=1048576), "Go", Heap("GOMEMLIMIT=1048576", MIB)),
    "go from its limit": (
        template(GOMEMLIMIT=LIMIT),
        "Go",
        Heap("GOMEMLIMIT from limits.memory", percent=100.0),
    ),
    "go without a limit": (template(GOMEMLIMIT="off"), "Go", None),
    "go in another unit": (template(GOMEMLIMIT="400Mi"), "Go", None),
    "go from a secret": (template(GOMEMLIMIT={"valueFrom": {"secretKeyRef": {}}}), "Go", None),
    "go without any": (template(), "Go", None),
    "python": (template(["python3"], GOMEMLIMIT="1GiB"), "Python", None),
}


@pytest.mark.parametrize(("shown", "kind", "heap"), HEAPS.values(), ids=HEAPS.keys())
def test_the_heap_of_a_template(shown: TemplateContainer, kind: str, heap: Heap | None) -> None:
    assert heap_of(shown, kind) == heap


def test_a_heap_needs_a_quarter_more_and_at_least_64_mib() -> None:
    assert Heap("", GIB).least_memory == GIB * 5 // 4
    assert Heap("", 16 * MIB).least_memory == 80 * MIB
    assert Heap("", percent=75).least_memory is None


@pytest.mark.parametrize(
    ("heap", "wanted", "limit"),
    [
        (Heap("", 512 * MIB), GIB, 640 * MIB),
        (Heap("", percent=75), 960 * MIB, GIB),
        (Heap("", percent=25), 320 * MIB, GIB),
        (Heap("", percent=80), GIB, GIB),
        (Heap("", percent=95), GIB, GIB),
        (Heap("", percent=50), 100 * MIB, 100 * MIB),  # beside its heap it has 64Mi
        (Heap("", percent=50), 128 * MIB, 128 * MIB),
        (Heap("", percent=50), 256 * MIB, 384 * MIB),
        (Heap("", percent=50, most=2 * GIB), 2 * GIB, 3_435_973_837),
        (Heap("", percent=50, most=2 * GIB), 3 * GIB, 4 * GIB),  # at 4Gi the heap is as large as it gets
        (Heap("", percent=50, most=2 * GIB), 5 * GIB, 5 * GIB),
        (Heap("", percent=25), 0, 0),
        (Heap("", percent=1), LARGEST, LARGEST),
    ],
)
def test_a_heap_that_is_a_share_and_everything_else_hold_what_is_recommended(
    heap: Heap, wanted: int, limit: int
) -> None:
    assert heap.least_limit(wanted) == limit


@given(st.integers(1, 95), st.integers(0, 2**44))
def test_no_smaller_limit_holds_it(percent: int, wanted: int) -> None:
    def held(limit: int) -> int:
        heap = limit * percent
        return max(heap * 125, heap * 100 + 64 * MIB * 10_000)

    limit = Heap("", percent=percent).least_limit(wanted)
    assert held(limit) >= min(wanted, limit) * 10_000
    assert limit == wanted or held(limit) >= wanted * 10_000 > held(limit - 1)


def test_heaps_are_those_of_the_template_or_declared_or_usual() -> None:
    containers = [template(["java", "-Xmx512m"]), *[template(name=name) for name in "abcd"]]
    declared = [
        runtime("Java", 60),
        runtime("Java", 60, "a"),
        runtime("Java", name="b"),
        runtime("Node", name="c"),
        runtime("Go", name="d"),
        runtime("Java", name="gone"),
    ]
    heaps = heaps_of(declared, containers)
    assert {name: heap.size or heap.percent for name, heap in heaps.items()} == {
        "app": 512 * MIB,
        "a": 60,
        "b": 25,
        "c": 50,
    }
    assert heaps["c"].most == 2096 * MIB


@pytest.mark.parametrize(
    ("declared", "shown", "codes"),
    [
        (runtime("Java"), template(["java", "-XX:+ExitOnOutOfMemoryError"]), {3}),
        (runtime("Java"), template(_JAVA_OPTIONS="-XX:+ExitOnOutOfMemoryError", JAVA_OPTS="-Xms1g"), {3}),
        (runtime("Node"), template(), {134, 139}),
    ],
)
def test_a_runtime_whose_heap_is_full_has_its_exit_codes(
    declared: Runtime, shown: TemplateContainer, codes: set[int]
) -> None:
    command, args, variables = told(shown)
    kept = replace(shown, command=command, args=args, env=variables)
    assert full_heap_exits([declared], [kept]) == {"app": codes}


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (runtime("Java"), template(["java", "-Xmx1g", "-XX:+ExitOnOutOfMemoryError"])),
        (runtime("Node"), template(["node", "--max-old-space-size=400"])),
    ],
)
def test_a_full_heap_of_fixed_size_has_no_exit_code(declared: Runtime, shown: TemplateContainer) -> None:
    """More memory does not enlarge it: it would be raised again and again, up to four times the recommendation."""
    assert full_heap_exits([declared], [shown]) == {}


def test_other_runtimes_have_no_exit_code_of_a_full_heap() -> None:
    others = [
        runtime("Python"),
        runtime("Go", name="go"),
        runtime("Node", name="gone"),
        runtime("Java", name="jvm"),
    ]
    jvm = template(["java", "-XX:-ExitOnOutOfMemoryError", "-XX:+ExitOnOutOfMemoryErrors"], name="jvm")
    assert full_heap_exits(others, [template(), template(name="go"), jvm]) == {}


def test_the_local_copy_keeps_only_what_shows_a_runtime() -> None:
    script = "exec java -Xmx1g -Dpassword=x -jar app.jar"
    shown = template(
        ["sh", "-c", script], PORT="80", JAVA_TOOL_OPTIONS="-Xms1g -Dsecret=y -Xmx2g", PASSWORD="secret"
    )
    command, args, variables = told(shown)
    assert (command, args) == (("sh", "-c", "java"), ("-Xmx1g",))
    assert [(variable.name, variable.text) for variable in variables] == [("JAVA_TOOL_OPTIONS", "-Xmx2g")]
    assert told(template(["/app", "--password=x"], PORT="80")) == ((), (), ())
    assert told(template(args=["-Xmx1g", "-jar", "x"])) == ((), ("-Xmx1g",), ())


@pytest.mark.parametrize(
    "shown", [shown for shown, _ in KINDS.values()] + [shown for shown, *_ in HEAPS.values()]
)
def test_the_local_copy_shows_the_same(shown: TemplateContainer) -> None:
    command, args, variables = told(shown)
    kept = replace(shown, command=command, args=args, env=variables)
    assert runtime_of(kept) == runtime_of(shown)
    for kind in ("Java", "Node", "Go"):
        assert heap_of(kept, kind) == heap_of(shown, kind)


words = st.lists(st.one_of(st.text(max_size=30), st.integers(), st.none(), st.booleans()), max_size=4)


@given(words, words, st.dictionaries(st.sampled_from([*VARIABLES, "PORT"]), st.text(max_size=40), max_size=3))
def test_any_command_and_environment_can_be_read(
    command: list[Any], args: list[Any], env: dict[str, str]
) -> None:
    shown = template(command, args, **env)
    assert runtime_of(shown) in (None, "Java", "Node", "Python", "Go")
    for kind in ("Java", "Node", "Python", "Go", "Other"):
        heap = heap_of(shown, kind)
        assert heap is None or heap.size is None or 0 < heap.size < 2**63


@given(st.integers(1, 10**14), st.sampled_from("kKmMgGtT"))
def test_a_size_is_read_in_the_units_of_a_jvm(number: int, unit: str) -> None:
    heap = heap_of(template(["java", f"-Xmx{number}{unit}"]), "Java")
    assert heap is not None
    expected = number * 1024 ** ("kmgt".index(unit.lower()) + 1)
    assert heap.size == min(expected, LARGEST)


# --- the spec --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("entry", "once"),
    [
        (runtime("Java"), True),
        (runtime("Node"), True),
        (runtime("Go"), False),
        (runtime("Go", 90), True),
        (runtime("Python"), False),
        (runtime("Other", 50), True),
    ],
)
def test_java_node_and_what_has_a_heap_percentage_read_memory_once(entry: Runtime, once: bool) -> None:
    assert ("app" in read_at_start([entry], [template()])) is once


def test_a_container_that_restarts_for_memory_reads_it_again() -> None:
    restarts = decoded(
        TemplateContainer,
        container() | {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]},
    )
    assert not read_at_start([runtime()], [restarts])
    assert not read_at_start([], [template()])


@pytest.mark.parametrize("heap", [0, 96, 100, -1, 10**20, "75%", 7.5])
def test_a_heap_percentage_is_1_to_95(heap: object) -> None:
    with pytest.raises(ValueError, match="heapPercent"):
        Runtime.model_validate({"container": "app", "kind": "Java", "heapPercent": heap})


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="kind"):
        runtime("Ruby")


CONTRADICTIONS: dict[str, tuple[list[Runtime], str]] = {
    "no such container": (
        [runtime(name="app"), runtime(name="web")],
        "the pod template has no container web",
    ),
    "another runtime": ([runtime("Node")], "app: Node is declared, but its template shows Java"),
    "another percentage": (
        [runtime("Java", 50)],
        "app: heapPercent 50 is declared, but the template sets -Xmx1g in JAVA_TOOL_OPTIONS",
    ),
}


@pytest.mark.parametrize(("declared", "why"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_what_the_template_contradicts_is_named(declared: list[Runtime], why: str) -> None:
    finding = contradiction(declared, [template(["java"], JAVA_TOOL_OPTIONS="-Xmx1g")])
    assert finding is not None
    assert (finding.reason, finding.message) == ("RuntimeMismatch", why)


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (runtime("Java", 75), template(JAVA_TOOL_OPTIONS="-XX:MaxRAMPercentage=75.0")),
        (runtime("Java"), template(JAVA_TOOL_OPTIONS="-Xmx1g")),
        (runtime("Java", 75), template()),
        (runtime("Go", 95), template(GOMEMLIMIT=LIMIT)),
        (runtime("Other", 40), template(["java"])),
        (runtime("Node"), template(["/app"])),
    ],
)
def test_what_agrees_is_no_finding(declared: Runtime, shown: TemplateContainer) -> None:
    assert contradiction([declared], [shown]) is None


def test_what_sizes_its_heap_at_its_start_is_shown_by_its_template() -> None:
    restarts = {
        "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
        "command": ["java"],
    }
    containers = [
        template(["java", "-XX:MaxRAMPercentage=60"], name="jvm"),
        template(["node", "main.js"], name="node"),
        template(["python3"], name="python"),
        template(name="go", GOMEMLIMIT=LIMIT),
        template(name="go-fixed", GOMEMLIMIT="1GiB"),
        template(name="other"),
        decoded(TemplateContainer, container("restarting") | restarts),
    ]
    shown = shown_by(containers)
    assert [entry for entry, _ in shown.values()] == [
        runtime("Java", 60, "jvm"),
        runtime("Node", name="node"),
        runtime("Go", 95, "go"),
    ]
    assert contradiction([entry for entry, _ in shown.values()], containers) is None


def test_a_limit_above_heap_and_overhead_is_of_no_use() -> None:
    shown = [template(["java", "-Xmx512m"]), template(name="agent")]
    declared = [runtime(), runtime("Go", name="agent")]
    assert heap_fixed(declared, shown, {"app": 640 * MIB, "agent": GIB}) is None
    finding = heap_fixed(declared, shown, {"app": 642 * MIB, "agent": GIB})
    assert finding is not None
    assert finding.reason == "HeapFixed"
    assert re.search(r"app: -Xmx512m in the command needs about 640Mi, 642Mi", finding.message)
    assert (
        heap_fixed([runtime("Java", 75)], [template(["java", "-XX:MaxRAMPercentage=75"])], {"app": GIB})
        is None
    )
