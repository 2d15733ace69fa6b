"""The image's settings are the Dockerfile's."""

from __future__ import annotations

import pytest

from tools.dependencies.lockfile import ROOT
from tools.image import build, debian, dockerfile
from tools.image.errors import ImageError

TEXT = (ROOT / "Dockerfile").read_text()


def test_the_image_has_the_settings_of_the_dockerfile() -> None:
    assert dockerfile.settings(TEXT, build.BASE_ENVIRONMENT) == {
        "Cmd": ["run", "--leader-elect"],
        "Entrypoint": ["hvpa"],
        "Env": [
            "PATH=/opt/hvpa/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG=C.UTF-8",
            "PYTHONDONTWRITEBYTECODE=1",
            "PYTHONUNBUFFERED=1",
        ],
        "ExposedPorts": {"8081/tcp": {}, "9569/tcp": {}},
        "Labels": {
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.title": "hvpa",
        },
        "User": "65532:65532",
    }


def test_both_have_the_same_python_and_make_the_wheel_of_the_same_files() -> None:
    assert f"python:{debian.VERSION[0]}.{debian.VERSION[1]}." in TEXT
    stage, _ = dockerfile.stages(TEXT)
    copied = {name for instruction, rest in stage if instruction == "COPY" for name in rest.split()[:-1]}
    assert copied == {"hvpa", "requirements.lock", "requirements-build.lock", *build.SOURCES}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("RUN adduser hvpa", "nothing for this line of the Dockerfile: RUN adduser hvpa"),
        ("COPY config /config", "nothing for this line of the Dockerfile: COPY config /config"),
        ("CMD hvpa run", "needs a JSON list, not: hvpa run"),
    ],
)
def test_a_line_that_would_be_lost_is_an_error(line: str, error: str) -> None:
    with pytest.raises(ImageError, match=error):
        dockerfile.settings(f"{TEXT}{line}\n", {})


def test_stages_are_the_instructions_after_each_from() -> None:
    text = "ARG A=1\n# none\nFROM a AS b\nRUN one \\\n # none\n && two\n\nFROM c\nUSER 1\n"
    assert dockerfile.stages(text) == [[("RUN", "one && two")], [("USER", "1")]]
