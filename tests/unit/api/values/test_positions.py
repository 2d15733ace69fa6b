"""Lines of fields in YAML texts."""

from __future__ import annotations

import pytest
import yaml

from hvpa.api.values.positions import YamlError, compose, line_of

TEXT = """\
kind: A
spec:
  a.b: {c: 1}
  labels:
    app/x.y: 1
  list:
    - name: one
    -
      name: two
  ? [odd]
  : 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 1),
        ("spec", 2),
        ("spec.a.b", 3),
        ("spec.a.b.c", 3),
        ("spec.a.b.c.d", 3),
        ("spec.labels[app/x.y]", 5),
        ("spec.labels.app/x.y", 5),
        ("spec.list[0].name", 7),
        ("spec.list[1].name", 9),
        ("spec.list[2].name", 6),
        ("spec.list.name", 6),
        ("spec.missing.field", 2),
    ],
)
def test_a_field_or_the_nearest_thing_around_it_has_a_line(path: str, line: int) -> None:
    (node,) = compose(TEXT, yaml.SafeLoader, 10)
    assert line_of(node, path) == line


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("a: [\n", "not YAML: expected the node content", (2, 1)),
        ("a: \x01", "not YAML: unacceptable character", (None, None)),
        ("[[[[1]]]]", "nested more than 3 deep", (1, 4)),
    ],
)
def test_what_is_not_yaml_is_named_with_its_place(
    text: str, reason: str, place: tuple[int | None, int | None]
) -> None:
    with pytest.raises(YamlError) as caught:
        compose(text, yaml.SafeLoader, 3)
    assert caught.value.reason.startswith(reason)
    assert (caught.value.line, caught.value.column) == place
