"""Positions in a YAML (or JSON) text: its documents as nodes, and the line of a field by its path."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_INDEX: Final = re.compile(r"\[([0-9]{1,9})\]")


class YamlError(ValueError):
    """The text is not YAML, or is nested too deep. It has the reason and, if known, the position (from 1)."""

    def __init__(self, reason: str, mark: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line: int | None = None if mark is None else mark.line + 1
        self.column: int | None = None if mark is None else mark.column + 1


def compose(text: str, loader: Any, max_depth: int) -> list[yaml.Node]:
    """Returns the non-empty documents of a text. Raises YamlError, also for nesting deeper than `max_depth`: libyaml
    overflows the stack at thousands of levels."""
    try:
        check_depth(text, loader, max_depth)
        return list(yaml.compose_all(text, Loader=loader))
    except yaml.YAMLError as error:
        raise yaml_error(error) from None


def check_depth(text: str, loader: Any, max_depth: int) -> None:
    """Raises YamlError for collections nested deeper than `max_depth`, and yaml.YAMLError if the text is not YAML."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > max_depth:
                raise YamlError(f"nested more than {max_depth} deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def yaml_error(error: yaml.YAMLError) -> YamlError:
    """Converts PyYAML's error, with the position at which it occurred."""
    if isinstance(error, yaml.MarkedYAMLError):
        return YamlError(
            f"not YAML: {error.problem or error.context}", error.problem_mark or error.context_mark
        )
    return YamlError(f"not YAML: {error}")


def line_of(node: yaml.Node, path: str) -> int:
    """Returns the line of the field at `path` (`policies[0].hpa.maxReplicas`; the empty path is the document). If the
    field is missing, returns the line of the nearest parent."""
    line: int = node.start_mark.line + 1
    while path:
        step = _step(node, path)
        if step is None:
            break
        node, line, path = step
    return line


def _step(node: yaml.Node, path: str) -> tuple[yaml.Node, int, str] | None:
    """Resolves the first part of a path: returns the node, its line, and the rest of the path."""
    if isinstance(node, yaml.SequenceNode):
        index = _INDEX.match(path)
        if index is None or int(index[1]) >= len(node.value):
            return None
        child = node.value[int(index[1])]
        return child, child.start_mark.line + 1, path[index.end() :].removeprefix(".")
    if not isinstance(node, yaml.MappingNode):
        return None
    candidates = [
        (len(name), child, key.start_mark.line + 1)
        for key, child in node.value
        for name in (str(key.value), f"[{key.value}]")
        if path.startswith(name) and path[len(name) : len(name) + 1] in ("", ".", "[")
    ]
    if not candidates:
        return None
    length, child, line = max(candidates, key=lambda entry: entry[0])
    return child, line, path[length:].removeprefix(".")
