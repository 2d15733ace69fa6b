"""`make` with the Python of the environment that it sets up, of another one, or of none: on a small project that has
our Makefile and our tools/make_venv.py, and no dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pip
import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
PATH = os.environ["PATH"]
BASE = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "hvpa"
version = "1"
"""
# The least that `pip install --editable` takes.
BACKEND = """\
import zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    info = "hvpa-1.dist-info"
    with zipfile.ZipFile(f"{wheel_directory}/hvpa-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: hvpa\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return "hvpa-1-py3-none-any.whl"
"""
# In place of the standard library's `venv`: an environment without pip, which takes five seconds to unpack there. The
# pip of these tests' own environment stands beside it.
VENV = """\
import sys
sys.path = [one for one in sys.path if not one.endswith("/path")]
del sys.modules["venv"]
import venv
venv.main([*sys.argv[1:], "--without-pip"])
"""
# What `make demo` runs in there.
DEMO = "import sys; print('ran in', sys.prefix)"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project whose `.venv` is set up by the Python that no environment holds."""
    root = tmp_path_factory.mktemp("project").resolve()
    (root / "tools").mkdir()
    (root / "demo").mkdir()
    shutil.copy(ROOT / "Makefile", root)
    shutil.copy(ROOT / "tools" / "make_venv.py", root / "tools")
    (root / "demo" / "__main__.py").write_text(DEMO)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    (root / "requirements-dev.lock").write_text("# nothing\n")
    (root / "path" / "venv").mkdir(parents=True)
    (root / "path" / "venv" / "__init__.py").touch()
    (root / "path" / "venv" / "__main__.py").write_text(VENV)
    (root / "path" / "pip").symlink_to(Path(pip.__file__).parent)
    made = make(root, f"PYTHON={BASE}")
    assert made.returncode == 0, made.stderr
    yield root
    shutil.rmtree(root)


def make(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`make demo`, which needs `.venv`, without a network."""
    return subprocess.run(
        ["make", "demo", *arguments],
        cwd=root,
        env={
            "PATH": PATH,
            "PYTHONPATH": str(root / "path"),
            "HOME": str(root),
            "PIP_NO_INDEX": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def with_its_own_python(root: Path) -> dict[str, str]:
    """The environment of a shell in which `.venv/bin/activate` was sourced."""
    return {"PATH": f"{root / '.venv' / 'bin'}:{PATH}", "VIRTUAL_ENV": str(root / ".venv")}


def assert_left_alone(root: Path, made: subprocess.CompletedProcess[str]) -> None:
    assert made.returncode == 0, made.stderr
    assert made.stdout == f"ran in {root / '.venv'}\n"
    assert "setting up" not in made.stderr


def test_an_activated_environment_is_left_alone(project: Path) -> None:
    assert_left_alone(project, make(project, **with_its_own_python(project)))


def test_with_only_its_programs_on_path_it_is_left_alone(project: Path) -> None:
    environment = {"PATH": with_its_own_python(project)["PATH"]}
    assert_left_alone(project, make(project, **environment))


def test_called_by_its_own_python_it_is_left_alone(project: Path) -> None:
    assert_left_alone(project, make(project, "PYTHON=.venv/bin/python"))


def test_called_by_the_python_of_another_environment_it_is_left_alone(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([BASE, "-m", "venv", "--without-pip", other], check=True)
    assert_left_alone(project, make(project, f"PYTHON={other / 'bin' / 'python'}"))


def test_an_activated_environment_is_made_anew_when_the_lock_changes(project: Path) -> None:
    leftover = project / ".venv" / "of-an-older-lock"
    leftover.touch()
    (project / "requirements-dev.lock").write_text("# still nothing\n")
    made = make(project, **with_its_own_python(project))
    assert made.returncode == 0, made.stderr
    assert made.stdout == f"ran in {project / '.venv'}\n"
    assert "setting up .venv" in made.stderr
    assert not leftover.exists()


def test_the_environment_of_the_docs_stands_beside_it_without_hvpa(project: Path) -> None:
    (project / "requirements-docs.lock").write_text("# nothing\n")
    made = make(project, "venv-docs", f"PYTHON={BASE}")
    assert made.returncode == 0, made.stderr
    assert "setting up .venv-docs" in made.stderr
    assert "installing hvpa itself" not in made.stderr
    assert (project / ".venv-docs" / "bin" / "python").exists()
    assert_left_alone(project, make(project, "venv-docs", f"PYTHON={BASE}"))


def test_what_can_not_be_replaced_stays(project: Path) -> None:
    lock = project / "requirements-dev.lock"
    before = lock.read_text()
    lock.write_text(f"no-such-package==1 --hash=sha256:{'0' * 64}\n")
    refused = make(project, **with_its_own_python(project))
    assert refused.returncode != 0
    assert "this failed: " in refused.stderr
    lock.write_text(before)
    assert_left_alone(project, make(project, **with_its_own_python(project)))
    assert not (project / ".venv.replaced").exists()
