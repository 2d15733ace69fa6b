"""Runtimes that read their memory limit when they start (`spec.runtimes`, docs/runtimes.md).

A JVM or Node sizes its heap once. If its container grows in place, the heap stays; if it shrinks, the heap may be
larger than the limit. So HVPA changes the memory of such a container by replacing the pod, or at its creation. This
module reads from a pod template which runtime a container has, and how large its heap may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.actuation import Runtime
from hvpa.api.objects.read_models import Container, Scalar, TemplateContainer, Variable
from hvpa.api.values.quantity import MEMORY, MIB, readable_resource
from hvpa.api.values.text import names
from hvpa.core.model import Finding
from hvpa.core.values.arithmetic import LARGEST, ceil_div, is_same_size
from hvpa.core.values.memo import remembered
from hvpa.core.values.tuning import HEAP_OVERHEAD_LEAST, HEAP_OVERHEAD_PERCENT
from hvpa.core.workload.containers import SHARED, present_resources, sharing

JVM_FIRST: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS")
"""Variables whose options a JVM, or by convention a start script, reads before those of its command line."""
JVM_LAST: Final = ("_JAVA_OPTIONS",)
"""A variable whose options override those of the command line."""
GO_LIMIT: Final = "GOMEMLIMIT"
VARIABLES: Final = {
    **dict.fromkeys((*JVM_FIRST, *JVM_LAST), "Java"),
    "NODE_OPTIONS": "Node",
    GO_LIMIT: "Go",
    "GOMAXPROCS": "Go",
    "PYTHONUNBUFFERED": "Python",
    "PYTHONPATH": "Python",
}
"""Variables that show a runtime."""
_PROGRAM: Final = re.compile(r"(java|node|nodejs|npm|yarn|python|gunicorn|uvicorn)[0-9.]*\Z", re.ASCII)
_BY_PROGRAM: Final = {"java": "Java", "node": "Node", "nodejs": "Node", "npm": "Node", "yarn": "Node"}
"""Runtimes by the name of a program; the others that `_PROGRAM` finds are Python's."""
_WRAPPERS: Final = frozenset(
    {"sh", "bash", "dash", "ash", "tini", "dumb-init", "env", "exec", "-c", "--", "-g", "-s"}
)
"""Words before a program."""
_ENDS: Final = re.compile(r"&&|\|\||[;|&()\n]")
"""Between the commands of a shell."""
_BEGINS: Final = r"(?:^|[\s\"'])"
_STOPS: Final = r"(?=$|[\s\"';&|)])"
"""An option begins and ends a word, with or without quotes. In the middle of a word it is that of another process."""
_JAVA_HEAP: Final = re.compile(
    rf"{_BEGINS}((?:-Xmx|-XX:MaxHeapSize=)([0-9]{{1,15}})([kKmMgGtT]?)){_STOPS}", re.ASCII
)
_JAVA_PERCENT: Final = re.compile(
    rf"{_BEGINS}(-XX:MaxRAMPercentage=([0-9]{{1,3}}(?:\.[0-9]{{1,6}})?)){_STOPS}", re.ASCII
)
_NODE_HEAP: Final = re.compile(
    rf"{_BEGINS}(--max[-_]old[-_]space[-_]size[= ]([0-9]{{1,15}})){_STOPS}", re.ASCII
)
_GO_LIMIT: Final = re.compile(r"([0-9]{1,15})(|B|KiB|MiB|GiB|TiB)\Z", re.ASCII)
_UNITS: Final = {"": 0, "b": 0, "k": 1, "kib": 1, "m": 2, "mib": 2, "g": 3, "gib": 3, "t": 4, "tib": 4}
_JAVA_EXITS: Final = re.compile(rf"{_BEGINS}(-XX:\+ExitOnOutOfMemoryError){_STOPS}", re.ASCII)
_JAVA_EXIT_CODE: Final = 3
"""Exit code of a JVM with this option whose heap is full."""
_NODE_EXIT_CODES: Final = frozenset({134, 139})
"""Exit codes of Node whose heap is full: SIGABRT, or SIGSEGV as the first process of a container, which gets no
SIGABRT (docs/runtimes.md, test 13)."""
MOST_PERCENT: Final = 95
"""The largest `heapPercent`."""
MOST_WORDS: Final = 16_384
"""Characters of command and arguments that are read."""


class Heap(NamedTuple):
    """The largest heap that a container's template sets."""

    option: str
    """The option and its source, for messages."""
    size: int | None = None
    """In bytes; None if it is a percentage of the limit."""
    percent: float | None = None
    most: int = LARGEST
    """The largest heap in bytes if it is a percentage."""

    @property
    def heap_percent(self) -> int | None:
        """The percentage as `heapPercent`, which leaves something for the rest; None if the heap has a fixed size."""
        return None if self.percent is None else max(1, min(round(self.percent), MOST_PERCENT))

    @property
    def least_memory(self) -> int | None:
        """The memory that the container needs for a heap of fixed size and everything else; None for a percentage."""
        if self.size is None:
            return None
        overhead = max(ceil_div(self.size * HEAP_OVERHEAD_PERCENT, 100), HEAP_OVERHEAD_LEAST)
        return min(self.size + overhead, LARGEST)

    def least_limit(self, wanted: int) -> int:
        """Returns the least memory limit at which the heap and everything else hold `wanted` bytes; for a heap of fixed
        size, what it needs.

        Example: a quarter of 1Gi is a heap of 256Mi, and everything else counts as 64Mi. So 1Gi holds 320Mi. A heap
        that is half of the limit and at most 2Gi needs no limit above 4Gi.
        """
        if (fixed := self.least_memory) is not None:
            return fixed
        percent = self.heap_percent or MOST_PERCENT
        with_share = ceil_div(wanted * 10_000, percent * (100 + HEAP_OVERHEAD_PERCENT))
        with_least = ceil_div(max(0, wanted - HEAP_OVERHEAD_LEAST) * 100, percent)
        return min(max(wanted, min(with_share, with_least, ceil_div(self.most * 100, percent))), LARGEST)


_USUAL: Final = {
    "Java": Heap("heapPercent", percent=25),
    "Node": Heap("heapPercent", percent=50, most=2096 * MIB),
}
"""The heap if nothing sets it (docs/runtimes.md, tests 3 and 7)."""


# --- the template ----------------------------------------------------------------------------------------------------
def told(container: TemplateContainer) -> tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Variable]]:
    """Returns a command, arguments and variables that show the same runtime and heap, and nothing else: a command may
    contain passwords. Without a runtime, they are empty.

    Example: `sh -c "exec java -Xmx1g -Dpassword=x -jar app.jar"` becomes `sh -c java -Xmx1g`.
    """
    programs, options = _programs(container), _options(_words(container))
    command = ("sh", "-c", "; ".join(programs)) if programs else ()
    variables = [
        structs.replace(
            variable, text=variable.text if variable.name == GO_LIMIT else _options(str(variable.text))
        )
        for variable in container.env or ()
        if variable.name in VARIABLES
    ]
    return command, (options,) if options else (), tuple(variables)


def _options(words: str) -> str:
    """Returns the options of a heap, and of its end once it is full, in a text, in their order."""
    options = (_JAVA_HEAP, _JAVA_PERCENT, _JAVA_EXITS, _NODE_HEAP)
    found = [match for option in options for match in option.finditer(words)]
    return " ".join([match[1] for match in sorted(found, key=lambda match: match.start())])


def _programs(container: TemplateContainer) -> list[str]:
    """Returns the programs that a container's command runs, without versions and arguments, as far as they show a
    runtime."""
    words = _words(container)
    scripts = _ENDS.split(words) if PurePosixPath(words.partition(" ")[0]).name in _WRAPPERS else [words]
    found = []
    for script in scripts:
        names_of = [PurePosixPath(word.strip("\"'")).name for word in script.split() if "=" not in word]
        program = next((name for name in names_of if name not in _WRAPPERS), "")
        if (match := _PROGRAM.match(program)) is not None:
            found.append(match[1])
    return found


def kinds_of(container: TemplateContainer) -> Sequence[str]:
    """Returns the kinds of runtime that a container's command shows; without any, those that its environment shows.

    Example: `sh -c "python wait.py && exec java -jar app.jar"` shows Python and Java; a variable `GOMEMLIMIT` shows Go.
    """
    if programs := _programs(container):
        return [_BY_PROGRAM.get(program, "Python") for program in programs]
    shown = {VARIABLES[variable.name] for variable in container.env or () if variable.name in VARIABLES}
    return sorted(shown)


@remembered
def runtime_of(container: TemplateContainer) -> str | None:
    """Returns the kind of runtime of a container: of its last program, which serves; None if it is not clear."""
    kinds = kinds_of(container)
    return kinds[-1] if len(kinds) == 1 or (kinds and _programs(container)) else None


@remembered
def heap_of(container: TemplateContainer, kind: str) -> Heap | None:
    """Returns the heap that the template sets for a runtime of this kind; None if it sets none, or one that only the
    container knows (such as `$(SIZE)`). The last option counts, and a size overrides a percentage, as in the
    runtimes themselves (docs/runtimes.md has the tests)."""
    variables = {variable.name: variable for variable in container.env or ()}
    words = _words(container)
    if kind == "Java":
        sources = [*_sources(variables, JVM_FIRST), ("the command", words), *_sources(variables, JVM_LAST)]
        return _last(_JAVA_HEAP, sources) or _last(_JAVA_PERCENT, sources)
    if kind == "Node":
        return _last(_NODE_HEAP, [*_sources(variables, ["NODE_OPTIONS"]), ("the command", words)])
    limit = variables.get(GO_LIMIT)
    if kind != "Go" or limit is None:
        return None
    source = limit.value_from
    if source is not None and source.resource_field_ref is not None:
        return Heap(f"GOMEMLIMIT from {source.resource_field_ref.resource}", percent=100.0)
    match = _GO_LIMIT.match(str(limit.text))
    size = None if match is None else _bytes(match[1], match[2])
    return None if size is None else Heap(f"GOMEMLIMIT={limit.text}", size)


def _sources(variables: Mapping[str, Variable], wanted: Iterable[str]) -> list[tuple[str, str]]:
    known = [(name, variables[name].text) for name in wanted if name in variables]
    return [(name, str(value)) for name, value in known if value is not None]


def _last(option: re.Pattern[str], sources: Sequence[tuple[str, str]]) -> Heap | None:
    """Returns the heap of the last occurrence of an option."""
    found = None
    for source, words in sources:
        for match in option.finditer(words):
            text = f"{match[1]} in {source}"
            if option is _JAVA_PERCENT:
                found = Heap(text, percent=float(match[2]))
            elif (size := _bytes(match[2], match[3] if option is _JAVA_HEAP else "m")) is not None:
                found = Heap(text, size)
    return found


def _bytes(digits: str, unit: str) -> int | None:
    return min(int(digits) * 1024 ** _UNITS[unit.lower()], LARGEST) or None


def _words(container: TemplateContainer) -> str:
    words = (*(container.command or ()), *(container.args or ()))
    return " ".join([str(word) for word in words if word is not None])[:MOST_WORDS]


# --- the spec --------------------------------------------------------------------------------------------------------
def read_at_start(runtimes: Sequence[Runtime], containers: Iterable[Container]) -> Set[str]:
    """Returns the containers whose memory a resize would not give to their runtime. A container that restarts for a
    resize of its memory is not among them."""
    if not runtimes:
        return frozenset()
    once = {runtime.container for runtime in runtimes if runtime.reads_memory_once}
    return frozenset(
        [
            container.name
            for container in containers
            if container.name in once and not container.restarts_for(MEMORY)
        ]
    )


def heaps_of(runtimes: Sequence[Runtime], containers: Iterable[TemplateContainer]) -> dict[str, Heap]:
    """Returns the heaps of these runtimes by container: that of the template, the declared share of the limit, or the
    usual one."""
    containers = list(containers)
    known = {container.name for container in containers}
    declared = {
        runtime.container: heap
        for runtime in runtimes
        if runtime.container in known
        and (
            heap := Heap("heapPercent", percent=runtime.heap_percent)
            if runtime.heap_percent
            else _USUAL.get(runtime.kind)
        )
    }
    return declared | {container.name: heap for _, container, heap in _heaps(runtimes, containers)}


@remembered
def full_heap_exits(
    runtimes: Sequence[Runtime], containers: Sequence[TemplateContainer]
) -> Mapping[str, Set[int]]:
    """Returns, by container, the exit codes with which these runtimes end because their heap is full. A JVM does so
    with an option only; otherwise single requests fail. A heap of fixed size has none: more memory would not enlarge
    it."""
    exits = dict[str, Set[int]]()
    by_name = {container.name: container for container in containers}
    for runtime in runtimes:
        container = by_name.get(runtime.container)
        heap = None if container is None else heap_of(container, runtime.kind)
        if container is None or (heap is not None and heap.size is not None):
            continue
        if runtime.kind == "Node":
            exits[container.name] = _NODE_EXIT_CODES
        if runtime.kind == "Java":
            variables = {variable.name: variable for variable in container.env or ()}
            texts = [words for _, words in _sources(variables, (*JVM_FIRST, *JVM_LAST))]
            if any(_JAVA_EXITS.search(words) for words in (*texts, _words(container))):
                exits[container.name] = {_JAVA_EXIT_CODE}
    return exits


def _heaps(
    runtimes: Sequence[Runtime], containers: Iterable[TemplateContainer]
) -> list[tuple[Runtime, TemplateContainer, Heap]]:
    by_name = {runtime.container: runtime for runtime in runtimes}
    return [
        (runtime, container, heap)
        for container in (containers if by_name else ())
        if (runtime := by_name.get(container.name)) is not None
        and (heap := heap_of(container, runtime.kind)) is not None
    ]


def contradiction(runtimes: Sequence[Runtime], containers: Sequence[TemplateContainer]) -> Finding | None:
    """Returns the contradictions between pod template and `spec.runtimes`; None if there are none."""
    by_name, parts = {container.name: container for container in containers}, []
    missing = [runtime.container for runtime in runtimes if runtime.container not in by_name]
    if missing:
        parts.append(f"the pod template has no container {names(missing)}")
    for runtime in runtimes:
        container = by_name.get(runtime.container)
        shown = () if container is None else kinds_of(container)
        if shown and runtime.kind not in (*shown, "Other"):
            what = f"{runtime.kind} is declared, but its template shows {names(sorted(set(shown)))}"
            parts.append(f"{runtime.container}: {what}")
    present = present_resources(containers)
    if SHARED in present and MEMORY in present[SHARED].requests:
        once = read_at_start(runtimes, containers) & set(sharing(present, MEMORY))
        parts += [
            f"{name} shares the pod's memory, which is resized in place: give the container a memory request"
            for name in sorted(once)
        ]
    for runtime, container, heap in _heaps(runtimes, containers):
        declared = runtime.heap_percent
        if declared is not None and heap.heap_percent != declared:
            parts.append(
                f"{container.name}: heapPercent {declared} is declared, but the template sets {heap.option}"
            )
    return Finding("RuntimeMismatch", "; ".join(parts)) if parts else None


def shown_by(containers: Iterable[TemplateContainer]) -> dict[str, tuple[Runtime, Heap | None]]:
    """Returns, by container, the runtimes that read their memory once as the templates show them, with their heap. Go
    is among them if `GOMEMLIMIT` is the container's limit. A container that restarts for its memory is not."""
    found = {}
    for container in containers:
        kind = runtime_of(container)
        heap = None if kind is None else heap_of(container, kind)
        if kind is None or container.restarts_for(MEMORY):
            continue
        percent = None if heap is None else heap.heap_percent
        runtime = Runtime.model_validate({"container": container.name, "kind": kind, "heapPercent": percent})
        if runtime.reads_memory_once:
            found[container.name] = runtime, heap
    return found


def heap_fixed(
    runtimes: Sequence[Runtime], containers: Iterable[TemplateContainer], memory: Mapping[str, int]
) -> Finding | None:
    """Returns the containers whose heap of fixed size can't use the `memory` (limits, in bytes) that is recommended for
    them; None if there are none."""
    parts = []
    for _, container, heap in _heaps(runtimes, containers):
        least, wanted = heap.least_memory, memory.get(container.name, 0)
        if least is not None and wanted > least and not is_same_size(least, wanted):
            enough, recommended = (readable_resource("memory", size) for size in (least, wanted))
            parts.append(f"{container.name}: {heap.option} needs about {enough}, {recommended} recommended")
    return (
        Finding("HeapFixed", f"a larger limit does not enlarge the heap: {'; '.join(parts)}")
        if parts
        else None
    )
