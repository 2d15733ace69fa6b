"""Kubelets get the token of an account that may only read metrics, and it is requested rarely."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Body
from hvpa.kube.kubelets.client import KubeletError
from hvpa.kube.kubelets.token import AGAIN, LIFETIME, RENEWED, KubeletToken


class Requests:
    """An API server that issues tokens t1, t2, …, or fails."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.error: Exception | None = None
        self.answer: bytes | None = None

    async def request(self, method: str, path: str, *, body: Body, verb: str) -> bytes:
        assert (method, verb) == ("POST", "create")
        await asyncio.sleep(0)
        self.paths.append(path)
        self.bodies.append(msgspec.json.decode(body.data))
        if self.error is not None:
            raise self.error
        return self.answer or msgspec.json.encode({"status": {"token": f"t{len(self.paths)}"}})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def token(requests: Requests, clock: Clock) -> KubeletToken:
    transport: Any = requests
    return KubeletToken(transport, "hvpa-system", "hvpa-kubelets", clock)


async def test_many_polls_at_once_request_one_token(token: KubeletToken, requests: Requests) -> None:
    assert await asyncio.gather(*[token() for _ in range(5)]) == ["Bearer t1"] * 5
    assert requests.paths == ["/api/v1/namespaces/hvpa-system/serviceaccounts/hvpa-kubelets/token"]
    assert requests.bodies[0]["spec"] == {"expirationSeconds": LIFETIME}


async def test_a_token_is_renewed_before_it_expires(token: KubeletToken, clock: Clock) -> None:
    clock.now = 5.0
    assert await token() == "Bearer t1"
    clock.now += LIFETIME * RENEWED - 1
    assert await token() == "Bearer t1"
    clock.now += 1
    assert await token() == "Bearer t2"


@pytest.mark.parametrize("status", [403, 404])
async def test_without_the_account_or_the_right_the_reason_says_what_to_apply(
    token: KubeletToken, requests: Requests, status: int
) -> None:
    requests.error = ApiError(status, "Forbidden", "no")
    why = r"no token for ServiceAccount hvpa-system/hvpa-kubelets: apply config/fast-signal"
    with pytest.raises(KubeletError, match=why):
        await token()


async def test_a_failure_is_tried_again_after_a_while_for_all_kubelets_together(
    token: KubeletToken, requests: Requests, clock: Clock
) -> None:
    for error, answer in ((Unreachable("no route"), None), (None, b"{")):
        requests.error, requests.answer = error, answer
        before = len(requests.paths)
        for _ in range(10):
            with pytest.raises(KubeletError, match="hvpa-kubelets"):
                await token()
        assert len(requests.paths) == before + 1
        clock.now += AGAIN
    requests.answer = None
    assert await token() == "Bearer t3"


async def test_a_token_that_is_still_valid_is_used_if_it_can_not_be_renewed(
    token: KubeletToken, requests: Requests, clock: Clock
) -> None:
    assert await token() == "Bearer t1"
    requests.error = Unreachable("no route")
    clock.now += LIFETIME - 1
    assert await token() == "Bearer t1"
    clock.now += AGAIN
    with pytest.raises(KubeletError, match="no route"):
        await token()


async def test_a_token_that_kubelets_refuse_is_requested_anew_but_not_all_the_time(
    token: KubeletToken, requests: Requests, clock: Clock
) -> None:
    first = await token()
    token.refused(first)
    assert await token() == "Bearer t1"
    clock.now += AGAIN
    token.refused("Bearer another")
    assert await token() == "Bearer t1"
    token.refused(first)
    assert await token() == "Bearer t2"
    token.refused(first)
    token.refused("Bearer t2")
    assert await token() == "Bearer t2"
