"""The layer that keeps words away from the model, and from who reads its answers."""

from collections.abc import Collection, Iterator
from hashlib import sha256

from handrail.agent.errors import BuildError
from handrail.agent.json_texts import NotJson, read_json
from handrail.agent.kernel.middlewares import CallChat, Middleware
from handrail.agent.kernel.requests import ChatRequest, ChatResponse
from handrail.agent.words import Words
from handrail.filters import History, Message, assistant
from handrail.filters.messages import Messages, Opaque, Part, Reasoning, Text
from handrail.filters.repairs import restore
from handrail.filters.strings import strings
from handrail.sessions import Usage


class Safeguard(Middleware):
    """Looks for words in what the model is sent and in what it answers, and lets neither pass.

    A message with one of the words is answered with `failure_response` in the model's place where it is new: it stands
    after the last answer without calls. What stands before it, or is that answer, is left out of the request, a result
    with its call. An answer with one, or a call, becomes `failure_response`, and what was streamed of it is withdrawn.
    Either has the finish reason `content_filtered`, and is told as `blocked`.

    Every message is read once: words, names, call arguments and other JSON, not what a model thinks. `Words` says how
    texts are compared; `whole_words` finds no word within another. `input` (user and system messages),
    `tool_results` and `output` say what is read. Raises `BuildError`, also for words of which nothing is left to find.
    """

    def __init__(
        self,
        words: Collection[str],
        *,
        failure_response: str = "I cannot help with that.",
        case_sensitive: bool = False,
        whole_words: bool = False,
        input: bool = True,
        tool_results: bool = True,
        output: bool = True,
        name: str = "Safeguard",
    ) -> None:
        self.name = name
        self._words = Words(words, case_sensitive=case_sensitive, whole=whole_words)
        if not isinstance(failure_response, str) or not failure_response.strip():
            raise BuildError(f"failure_response is what is said in an answer's place, not {failure_response!r}")
        if self._words.within(failure_response):
            raise BuildError("failure_response holds one of the words, so it could not be said")
        if not (input or tool_results or output):
            raise BuildError("Safeguard reads nothing; leave input, tool_results or output on")
        self._failure_response = failure_response
        self._reads = {"user": input, "system": input, "tool": tool_results, "assistant": output}
        told = repr((sorted(words), case_sensitive, whole_words, self._reads))
        self._key = f"safeguard {sha256(told.encode(errors='replace')).hexdigest()}"

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Leaves out, answers in the model's place, or replaces its answer."""
        messages = request.messages
        if hits := self._hits(messages):
            kept = [place for place in range(len(messages)) if place not in hits]
            answered = max([place for place, message in enumerate(messages) if _is_plain(message)], default=-1)
            left = restore([messages[place] for place in kept], "drop").messages
            last = max(hits)
            if last > answered or not left:
                return self._blocked(request, messages[last], Usage())
            request = request.replace(messages=left)
        response = await call_next(request)
        if self._is_hit(response.message):
            return self._blocked(request, response.message, response.usage)
        return response

    def _hits(self, messages: Messages) -> set[int]:
        # A history remembers the sum, so what was read before is not even looked at again.
        if isinstance(messages, History) and not messages.total(self._key, self._is_hit):
            return set()
        return {place for place, message in enumerate(messages) if self._is_hit(message)}

    def _is_hit(self, message: Message) -> bool:
        if not self._reads[message.role]:
            return False
        known: bool | None = message.__dict__.get(self._key)
        if known is None:
            known = message.__dict__[self._key] = any([self._words.within(text) for text in _read(message)])
        return known

    def _blocked(self, request: ChatRequest, message: Message, usage: Usage) -> ChatResponse:
        where = {"assistant": "output", "tool": "tool_result"}.get(message.role, "input")
        request.run.note("blocked", where=where, message_id=message.id)
        return ChatResponse(assistant(self._failure_response), usage, "content_filtered")


def _is_plain(message: Message) -> bool:
    # Answers with calls belong to the turn that is still going on.
    return message.role == "assistant" and not message.tool_calls


def _read(message: Message) -> Iterator[str]:
    """Every text in a message but thoughts; text parts also joined, for words that begin in one and end in another."""
    for part in message.content:
        yield from _texts(part)
    words = [part.text for part in message.content if type(part) is Text]
    if len(words) > 1:
        for joined in ("".join(words), " ".join(words)):
            yield joined
            yield from _decoded(joined)
    else:
        for word in words:
            yield from _decoded(word)


def _decoded(text: str) -> Iterator[str]:
    # JSON in a code fence, or in several parts, has its escapes undone as JSON that stands alone has.
    if "\\" not in text:
        return
    try:
        inner = read_json(text).text
    except NotJson:
        return
    yield from [found for found, _ in strings(Text(inner))]


def _texts(part: Part) -> Iterator[str]:
    if type(part) is Text and part.extra is None and "\\" not in part.text:
        yield part.text
    elif type(part) is not Reasoning and not (type(part) is Opaque and part.family == "reasoning"):
        yield from [text for text, _ in strings(part)]
