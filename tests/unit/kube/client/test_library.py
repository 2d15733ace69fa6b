"""kubernetes-asyncio without its generated models."""

from __future__ import annotations

import subprocess
import sys

import pytest


def lines(code: str) -> list[str]:
    """What a fresh interpreter prints."""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


@pytest.mark.parametrize("module", ["hvpa.kube.client.library", "hvpa.operator.operator"])
def test_no_generated_model_is_loaded(module: str) -> None:
    names = "[one for one in sys.modules if one.startswith('kubernetes_asyncio.client.models')]"
    assert lines(f"import sys, {module}\nprint({names})") == ["[]"]


def test_whoever_wants_the_library_has_all_of_it() -> None:
    code = (
        "import hvpa.kube.client.library as ours, kubernetes_asyncio as theirs\n"
        "from kubernetes_asyncio.config import kube_config\n"
        "print(theirs.client.V1Pod.__name__, theirs.client.Configuration is ours.Configuration)\n"
        "print(kube_config is ours.kube_config, theirs.config.ConfigException is ours.ConfigException)"
    )
    assert lines(code) == ["V1Pod True", "True True"]


def test_ours_is_theirs_where_they_are_loaded_already() -> None:
    code = (
        "import kubernetes_asyncio as theirs, hvpa.kube.client.library as ours\n"
        "print(theirs.client.Configuration is ours.Configuration)"
    )
    assert lines(code) == ["True"]


def test_the_librarys_own_client_is_still_to_be_had() -> None:
    code = (
        "import asyncio\n"
        "from hvpa.kube.client.library import Configuration, kube_config\n"
        "async def main():\n"
        "    client = kube_config.ApiClient(configuration=Configuration())\n"
        "    print(type(client).__name__)\n"
        "    await client.close()\n"
        "asyncio.run(main())"
    )
    assert lines(code) == ["ApiClient"]
