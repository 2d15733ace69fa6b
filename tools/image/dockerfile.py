"""Reads the image's settings from the last stage of the Dockerfile, so that both images have the same settings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools.image.errors import ImageError

COPIED: Final = "--from=build /opt/hvpa /opt/hvpa"
"""The only copy that the last stage may make."""


def settings(text: str, base: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration (OCI image-spec) of a Dockerfile's image, on a base with these environment variables.
    Raises ImageError for an instruction that would add something that `make image` does not."""
    environment, labels = dict(base), dict[str, str]()
    fields: dict[str, Any] = {}
    for instruction, rest in stages(text)[-1]:
        match instruction:
            case "ENV":
                environment |= {name: _expand(value, environment) for name, value in _pairs(rest)}
            case "LABEL":
                labels |= dict(_pairs(rest))
            case "USER":
                fields["User"] = rest
            case "EXPOSE":
                fields["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
            case "ENTRYPOINT":
                fields["Entrypoint"] = _words(rest)
            case "CMD":
                fields["Cmd"] = _words(rest)
            case "COPY" if rest == COPIED:
                pass
            case _:
                raise ImageError(
                    f"make image has nothing for this line of the Dockerfile: {instruction} {rest}"
                )
    return {**fields, "Env": [f"{name}={value}" for name, value in environment.items()], "Labels": labels}


def stages(text: str) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of a Dockerfile, each with its arguments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages_so_far: list[list[tuple[str, str]]] = []
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction == "FROM":
            stages_so_far.append([])
        elif stages_so_far:  # arguments for FROM precede the first stage
            stages_so_far[-1].append((instruction, rest.strip()))
    return stages_so_far


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (word.partition("=") for word in shlex.split(text))]


def _words(text: str) -> Sequence[str]:
    try:
        words = json.loads(text)
    except ValueError as error:
        raise ImageError(
            f"the image has no shell, so the Dockerfile needs a JSON list, not: {text}"
        ) from error
    return [str(word) for word in words]


def _expand(value: str, environment: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: environment.get(match[1], ""), value)
