"""kubernetes-asyncio without its generated models."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

NO_MODELS = "print([one for one in sys.modules if one.startswith('kubernetes_asyncio.client.models')])"
CLIENT = """
async def main():
    client = ours.kube_config.ApiClient(configuration=ours.Configuration())
    print(type(client).__name__)
    await client.close()
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("modules", "code", "printed"),
    [
        pytest.param("hvpa.operator.operator", NO_MODELS, "[]", id="the operator loads no generated model"),
        pytest.param(
            "hvpa.kube.client.library as ours, kubernetes_asyncio as theirs",
            "print(theirs.client.V1Pod.__name__, theirs.client.Configuration is ours.Configuration)",
            "V1Pod True",
            id="whoever wants the library has all of it",
        ),
        pytest.param(
            "kubernetes_asyncio as theirs, hvpa.kube.client.library as ours",
            "print(theirs.client.Configuration is ours.Configuration)",
            "True",
            id="ours is theirs where that is loaded already",
        ),
        pytest.param("hvpa.kube.client.library as ours", CLIENT, "ApiClient", id="the client is to be had"),
    ],
)
def test_a_fresh_interpreter_prints(modules: str, code: str, printed: str) -> None:
    script = f"import asyncio, sys, {modules}\n{code}"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == printed
