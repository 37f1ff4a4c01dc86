"""Layers that only pass on what they get change nothing."""

import operator
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail.agent import Limits
from handrail.agent.kernel import ChatRequest, Middleware, Token, TokenTransform
from handrail.agent.kernel.tokens import KINDS
from laws.scripts import desk, limits, ran, scripts, streamed


class Passing(Middleware):
    """Passes on every request and every response, as they are or as equal copies, with or without a look."""

    def __init__(self, name: str, copying: bool, looking: bool) -> None:
        self.name = name
        self.copying = copying
        self.looking = looking

    async def _pass(self, request: Any, call_next: Any) -> Any:
        if self.looking:
            assert str(request.run.path)
            assert list(request.run.messages) == [*request.run.messages]
        response = await call_next(request.replace() if self.copying else request)
        return response.replace() if self.copying else response

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        return await self._pass(request, call_next)

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await self._pass(request, call_next)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        return await self._pass(request, call_next)

    async def around_handoff(self, request: Any, call_next: Any) -> Any:
        return await self._pass(request, call_next)


class Keeping(Passing):
    """The same, with private state that calls side by side may add to."""

    reducers = {"passed": operator.add}  # noqa: RUF012  # nobody changes it

    def init_state(self) -> dict[str, Any]:
        return {"passed": 0}

    async def _pass(self, request: Any, call_next: Any) -> Any:
        request.state.add("passed", 1)
        return await super()._pass(request, call_next)


class Letting(Passing):
    """The same, and every token on its way out."""

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        return Pass(self.copying)


class Pass(TokenTransform):
    kinds = KINDS

    def __init__(self, copying: bool) -> None:
        self.copying = copying

    def step(self, token: Token) -> Sequence[Token]:
        return [token.replace(token.text)] if self.copying else (token,)


drawn_layers = st.tuples(st.sampled_from([Passing, Keeping, Letting]), st.booleans(), st.booleans())
layers = st.lists(drawn_layers, max_size=4).map(
    lambda drawn: [kind(f"{number}", *options) for number, (kind, *options) in enumerate(drawn)]
)


@given(scripts, limits, layers)
async def test_layers_that_only_pass_through_change_no_end(
    script: list[Any], limit: Limits, passing: list[Middleware]
) -> None:
    assert await ran(desk(script, passing), limits=limit) == await ran(desk(script), limits=limit)


@given(scripts, limits, layers)
async def test_layers_that_only_pass_through_change_nothing_that_is_heard(
    script: list[Any], limit: Limits, passing: list[Middleware]
) -> None:
    assert await streamed(desk(script, passing), limits=limit) == await streamed(desk(script), limits=limit)
