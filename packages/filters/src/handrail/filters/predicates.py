"""Predicates: questions about one message, registered by name so that what asks them can be written down."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import FilterNotRunnable, InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import load_entry_points
from handrail.filters.windows import as_history, whole_pairs

Question: TypeAlias = Callable[..., bool]
_Question = TypeVar("_Question", bound=Question)
_questions: dict[tuple[str, int], Question] = {}


def predicate(name: str, *, version: int = 1) -> Callable[[_Question], _Question]:
    """Registers a plain function of a message (and keyword parameters, JSON) that answers True or False.

    The pair is a promise: a change of behaviour is a new version. Raises `ValueError` where another function has it,
    `InvalidFilter` for a coroutine function, or one with a parameter called `predicate` or `version`.

    >>> from handrail.filters import keep, user
    >>> @predicate("shop/short")
    ... def short(message, characters=10):
    ...     return len(message.text) <= characters
    >>> [message.text for message in keep("shop/short", characters=5)((user("Hello"), user("Good evening")))]
    ['Hello']
    """

    def register(question: _Question) -> _Question:
        if inspect.iscoroutinefunction(question):
            raise InvalidFilter(f"a predicate is a plain function, not the coroutine function {question.__qualname__}")
        if {"predicate", "version"} & set(list(inspect.signature(question).parameters)[1:]):
            raise InvalidFilter(f"the predicate {name!r} may not call a parameter 'predicate' or 'version'")
        other = _questions.get((name, version))
        if other is not None and (other.__module__, other.__qualname__) != (question.__module__, question.__qualname__):
            raise ValueError(f"the predicate {name!r} version {version} is {other.__module__}.{other.__qualname__}")
        _questions[name, version] = question
        return question

    return register


def predicates() -> list[str]:
    """The registered predicates as `name@version`, sorted."""
    return sorted(f"{name}@{version}" for name, version in _questions)


def name_of(predicate: str | Question, version: int) -> tuple[str, int]:
    """The name and version under which a predicate is known. Raises `InvalidFilter` for a function that has none."""
    if isinstance(predicate, str):
        return predicate, version
    for key, question in _questions.items():
        if question is predicate:
            return key
    raise InvalidFilter(f"register the predicate under a name first, with @predicate: {predicate!r}")


def checked(name: object, version: object, params: object) -> dict[str, Any]:
    """A copy of the parameters, as JSON. Raises `InvalidFilter` where these do not name a predicate."""
    import json

    if not isinstance(name, str) or not name:
        raise InvalidFilter(f"a predicate is known by its name, not {name!r}")
    if type(version) is not int or version < 1:
        raise InvalidFilter(f"the version of a predicate is a whole number, at least 1, not {version!r}")
    try:
        copied: Any = json.loads(json.dumps(params, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFilter(f"the parameters of a predicate are JSON: {error}") from error
    if not isinstance(copied, dict):
        raise InvalidFilter(f"the parameters of a predicate are an object, not {params!r}")
    return dict(copied)


def question(descriptor: dict[str, Any], name: str, version: int) -> Question:
    """The registered function. Raises `FilterNotRunnable` where there is none."""
    if (name, version) not in _questions:
        load_entry_points()
    found = _questions.get((name, version))
    if found is None:
        missing = f"the predicate {name!r} version {version} is not registered"
        raise FilterNotRunnable(descriptor, missing, predicates())
    return found


def answer(question: Question, params: dict[str, Any], message: Message) -> bool | None:
    """What the predicate says of a message; None where it raises, or says neither True nor False.

    A gate fails closed: a message of which nothing can be said does not cross.
    """
    try:
        said = question(message, **params)
    except Exception:  # noqa: BLE001  # whatever it raises, the answer is missing
        return None
    return said if said is True or said is False else None


def answers(question: Question, params: dict[str, Any], messages: Iterable[Message]) -> list[bool | None]:
    """What the predicate says of each message."""
    return [answer(question, params, message) for message in messages]


def shown(name: str, version: int, params: dict[str, Any]) -> list[str]:
    """The predicate as it stands in an expression."""
    given = [repr(name), *([f"version={version}"] if version != 1 else [])]
    return [*given, *[f"{key}={value!r}" for key, value in params.items()]]


class Judged(Filter, frozen=True):
    """Each message is asked about alone, in every role; a call and its result go together. Those stay of which the
    predicate gives the answer that is `wanted`; one of which it cannot say (it raises, or answers neither True nor
    False) does not cross."""

    wanted: ClassVar[bool]
    predicate: str
    revision: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "params", checked(self.predicate, self.revision, self.params))

    def __call__(self, history: Messages) -> Messages:
        asked = question(self.descriptor, self.predicate, self.revision)
        said = answers(asked, self.params, history)
        places = [place for place, answer in enumerate(said) if answer is self.wanted]
        return history if len(places) == len(history) else whole_pairs(as_history(history), places)

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(shown(self.predicate, self.revision, self.params))})"


def _mentions(message: Message, text: str) -> bool:
    from handrail.filters.strings import message_strings

    wanted = text.casefold()
    return any(wanted in said.casefold() for said in message_strings(message))


def _from_agent(message: Message, agent: str) -> bool:
    return message.agent == agent


def _has_role(message: Message, role: str) -> bool:
    return message.role == role


def _has_tool_calls(message: Message) -> bool:
    return bool(message.tool_calls)


def _is_error(message: Message) -> bool:
    return message.is_error


def _is_pinned(message: Message) -> bool:
    return message.pinned


def _longer_than(message: Message, characters: int) -> bool:
    return len(message.text) > characters


# What `predicate` would ask of them is known.
_questions |= {
    ("mentions", 1): _mentions,
    ("from_agent", 1): _from_agent,
    ("has_role", 1): _has_role,
    ("has_tool_calls", 1): _has_tool_calls,
    ("is_error", 1): _is_error,
    ("is_pinned", 1): _is_pinned,
    ("longer_than", 1): _longer_than,
}
