"""A conversation with an agent: what is typed is answered, what begins with `/` is done here."""

import asyncio
import shlex
from contextlib import suppress
from pathlib import Path

from handrail.agent import Agent, Middleware, Model
from handrail.agent.errors import ActiveAgentUnknown
from handrail.agent.kernel import CallChat, ChatRequest
from handrail.agent.models import ChatResponse
from handrail.cli.exits import is_full, one_line, show_traceback
from handrail.cli.lines import edited_lines, is_typed, next_line
from handrail.cli.reporting import counted, shown
from handrail.cli.screens import aside, say
from handrail.cli.sources import place_for
from handrail.cli.telling import DeskTeller
from handrail.filters import HandrailError
from handrail.sessions import Session, SessionError

HELP = """/history [N]  the messages that the active agent sees, or the last N of them
/agent        who has the conversation, and who took part
/save FILE    a sealed copy of the session
/quit         ends the conversation, as Ctrl-D does; Ctrl-C stops an answer
//…           says what begins with a slash"""
_STOPPED = "(stopped; what was said is kept)"
_HOW_TO_END = "(Ctrl-D or /quit ends the conversation)"


class StandIn(Middleware):
    """Asks this model in place of each agent's own."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """The same request, for another model."""
        return await call_next(request.replace(model=self.model))


class Chat:
    """A conversation that goes on in a session, which is called `name`. The session is open for writing.

    Raises `ActiveAgentUnknown` where the session's active agent is not within reach of the agent.
    """

    def __init__(self, agent: Agent, session: Session, name: str, model: Model | None = None) -> None:
        self._agent = agent
        self._session = session
        self._name = name
        self._model = model
        self._layers = [] if model is None else [StandIn(model)]
        self.whole = True
        """Whether everything that was said was answered, and everything that was asked for done."""
        known = agent.graph().agents
        if session.active_agent is not None and session.active_agent not in known:
            raise ActiveAgentUnknown(session.active_agent, sorted(known))

    def begin(self) -> None:
        """Says what there is, and who goes on."""
        active = self._session.active_agent
        if active is None:
            say(f"{self._name}: a new conversation; {self._agent.name} begins. /help says what else there is.")
            return
        messages = counted(len(self._session.log), "message")
        say(f"{self._name}: {messages} so far; {active} goes on. /help says what else there is.")

    def talk(self) -> None:
        """Answers line after line, until there is none. A run that fails is told in one line, and the talk goes on; so
        does it where Ctrl-C stops an answer, if somebody types. Raises what ends it: `SessionError` where nothing more
        can be kept, `KeyboardInterrupt` where the lines come from a pipe."""
        edited_lines()
        with asyncio.Runner() as runner:
            try:
                while self._goes_on(runner):
                    pass
            finally:
                runner.run(self._close())

    def _goes_on(self, runner: asyncio.Runner) -> bool:
        asking = True
        try:
            line = next_line()
            asking = False
            if line is None or line == "/quit":
                return False
            if line.startswith("/") and not line.startswith("//"):
                self._obey(line)
            elif line:
                self._answer(runner, line.removeprefix("/") if line.startswith("//") else line)
        except KeyboardInterrupt:
            if not is_typed():
                raise
            say(f"\n{_HOW_TO_END}" if asking else _STOPPED, style="dim")
        return True

    def _answer(self, runner: asyncio.Runner, text: str) -> None:
        try:
            runner.run(self._run(text))
        except (SessionError, BrokenPipeError):
            raise
        except Exception as error:  # a model or a tool may raise whatever it likes
            if is_full(error):
                raise
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        self.whole = False
        show_traceback()
        aside(f"handrail: {one_line(error)}")

    async def _run(self, text: str) -> None:
        run = self._agent.stream(text, session=self._session, middleware=self._layers)
        teller = DeskTeller(run)
        try:
            async with run:
                async for event in run:
                    teller.tell(event)
        finally:
            teller.close()
            say()

    async def _close(self) -> None:
        await self._agent.graph().aclose()
        if self._model is not None:
            await self._model.aclose()

    def _obey(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        try:
            match command:
                case "/history":
                    self._history(rest.strip())
                case "/agent":
                    self._agents()
                case "/save":
                    self._save(rest.strip())
                case "/help":
                    say(HELP)
                case _:
                    self.whole = False
                    aside(f"handrail: there is no {command} here; /help says what there is, and // begins a message")
        except HandrailError as error:
            self._tell(error)

    def _history(self, count: str) -> None:
        if count and not count.isdecimal():
            self.whole = False
            aside(f"handrail: /history takes how many messages, not {count!r}")
            return
        messages = self._session.history() if self._session.views else ()
        for message in messages[-int(count) :] if count and int(count) else messages:
            say(shown(message, full=False))
        if not messages:
            say("Nothing was said so far.")

    def _agents(self) -> None:
        active = self._session.active_agent or self._agent.name
        for path, view in self._session.views.items():
            say(f"{'*' if path == active else ' '} {path}: sees {counted(len(view.history), 'message')}")
        if active not in self._session.views:
            say(f"* {active}: sees nothing so far")

    def _save(self, rest: str) -> None:
        names = [rest]
        with suppress(ValueError):
            names = shlex.split(rest)
        if len(names) != 1 or not names[0]:
            self.whole = False
            aside("handrail: /save takes the name of one new file")
            return
        path = self._session.export(place_for(Path(names[0])))
        say(f"{path}: a sealed copy, with {counted(len(self._session.log), 'message')}")
