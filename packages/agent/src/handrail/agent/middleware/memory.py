"""The layer that remembers a conversation from run to run."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from handrail.agent.contexts import RunContext
from handrail.agent.conversations import Conversations, Store, added, as_messages, as_text, joined, named
from handrail.agent.errors import BuildError, MissingDeps
from handrail.agent.kernel.middlewares import CallTurn, Middleware, layer_name
from handrail.agent.kernel.requests import TurnRequest, TurnResult
from handrail.agent.kernel.states import State
from handrail.sessions.paths import top_path

Conversation: TypeAlias = str | Callable[[RunContext[Any]], str | None]
"""The name in the deps of a run under which its conversation's id is found, or a function of the run that gives it."""


class Memory(Middleware):
    """Puts what an agent said and heard before in the same conversation in front of its turn, and adds the turn.

    Without a conversation's id (None, or empty) it does nothing. Each agent remembers its own view and no other's, so a
    store is asked for `<conversation>/<agent>`. A turn is added once, when it has been answered or handed over and no
    layer enters it again: what was new to the agent, its calls with their results, and the answer that was accepted. A
    turn that fails adds nothing; system messages, instructions, rejected answers and the feedback on them never enter.
    Where a session's view holds the conversation already, only what other runs have added since is put in front.

    Two runs of one conversation at once both see what was there when they began, and both are added whole, in the order
    in which they end. In a replay the store is read, and nothing is added to it. Raises `InvalidInput` where the
    conversation holds another message under an id that is given.
    """

    # What an outer one of these puts in an answer's place would not be what is remembered.
    outside = ("Validation", "SchemaValidation")

    def __init__(
        self, store: Store | None = None, *, conversation: Conversation = "conversation_id", name: str = ""
    ) -> None:
        self.name = name
        self.store: Store = Conversations() if store is None else store
        if not all([callable(getattr(self.store, method, None)) for method in ("load", "commit")]):
            raise BuildError(f"the store of {layer_name(self)} has load(id) and commit(id, delta), unlike {store!r}")
        if not callable(conversation) and not (isinstance(conversation, str) and conversation):
            raise BuildError(f"conversation is a name in the deps, or a function of the run, not {conversation!r}")
        self._conversation = conversation

    def init_state(self) -> dict[str, Any]:
        """For the turn: the id it is kept under, what it was given, and what came of it, as JSON."""
        return {}

    async def around_turn(self, request: TurnRequest, call_next: CallTurn) -> TurnResult:
        """Loads what there is, and notes what the turn adds each time that it comes back."""
        kept = request.state
        if request.load_history and not request.resume:
            id = self._id(request.run)
            if id is not None:
                request = await self._begun(id, request)
        result = await call_next(request)
        if kept and result.status in ("completed", "handed_over"):
            result = named(result, request.run)
            kept["said"] = as_text(added(result, as_messages(kept["given"])))
        return result

    async def after_agent(self, state: State, run: RunContext[Any]) -> None:
        """Adds the turn, which no layer enters again now."""
        kept = state.private
        # In a replay the turn was added when it was.
        if "said" in kept and run.turn.run.world is None:
            await self.store.commit(kept["id"], (*as_messages(kept["given"]), *as_messages(kept["said"])))
        kept.clear()

    def _id(self, run: RunContext[Any]) -> str | None:
        asked, deps = self._conversation, run.deps
        if callable(asked):
            id = asked(run)
        else:
            id = deps.get(asked) if isinstance(deps, Mapping) else getattr(deps, asked, None)
        if id is not None and not isinstance(id, str):
            key = asked if isinstance(asked, str) else "conversation"
            raise MissingDeps(layer_name(self), key, f"is {type(id).__name__}, not text")
        return f"{id}/{top_path(run.agent)}" if id else None

    async def _begun(self, id: str, request: TurnRequest) -> TurnRequest:
        stored = await self.store.load(id)
        given = request.messages
        before = {message.id for message in request.run.messages} - {message.id for message in given}
        messages = joined(stored, given, before)
        held = {message.id for message in stored}
        new = [message for message in given if message.id not in held and message.role != "system"]
        request.state.update(id=id, given=as_text(new))
        return request if messages == list(given) else request.replace(messages=tuple(messages))
