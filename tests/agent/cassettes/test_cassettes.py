"""Calls are recorded once, and answered from the recording; what differs is told, and what is left over."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from agent.cassettes.talks import Counted, Desk, Remote, echo, find_payments, recorded
from handrail.agent import Agent, ChatResponse, FunctionModel, Middleware, Model, ModelUnavailable, Settings, Tool
from handrail.agent.cassettes import Cassette, Mode
from handrail.agent.errors import CassetteError, NotRecorded, RealCallForbidden
from handrail.agent.events import Text
from handrail.agent.kernel import CallChat, ChatRequest
from handrail.agent.models import Delta, TextDelta
from handrail.agent.providers.openai import OpenAIChat
from handrail.filters import Reasoning, user


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def last(request: ChatRequest) -> str:
    return f"You said {request.messages[-1].text}"


async def heard(desk: Desk, cassette: Cassette) -> tuple[list[str], str]:
    async with desk.agent(cassette).stream("I was charged twice.") as run:
        words = [event.text async for event in run if isinstance(event, Text)]
    assert run.result is not None
    return words, run.result.output


def test_a_whole_desk_is_recorded_once_and_answered_without_its_models(tmp_path: Path) -> None:
    desk, path = Desk(), tmp_path / "desk.jsonl"
    with Cassette(path) as cassette:
        first = desk.agent(cassette).run_sync("I was charged twice.")
    asked = desk.asked
    with Cassette(path, mode="none") as cassette:
        again = desk.agent(cassette).run_sync("I was charged twice.")
    assert (desk.asked, asked) == (4, 4)
    assert again.output == first.output == "You were charged twice."
    assert again.usage == first.usage
    assert sorted(str(line["path"]) for line in lines(path)[1:]) == ["billing", "billing", "billing/research", "triage"]


async def test_what_was_streamed_is_heard_again_piece_by_piece(tmp_path: Path) -> None:
    desk, path = Desk(), tmp_path / "desk.jsonl"
    with Cassette(path) as cassette:
        first = await heard(desk, cassette)
    with Cassette(path) as cassette:
        again = await heard(desk, cassette)
    assert (again, desk.asked) == (first, 4)
    assert first[0][:3] == ["Let ", "me ", "look. "]


async def test_what_was_recorded_as_a_whole_can_be_streamed_and_the_other_way_round(tmp_path: Path) -> None:
    desk, path = Desk(), tmp_path / "desk.jsonl"
    with Cassette(path) as cassette:
        whole = await desk.agent(cassette).run("I was charged twice.")
    with Cassette(path) as cassette:
        assert (await heard(desk, cassette))[1] == whole.output
    with Cassette(path, mode="all") as cassette:
        await heard(desk, cassette)
    with Cassette(path) as cassette:
        assert (await desk.agent(cassette).run("I was charged twice.")).output == whole.output


def test_equal_requests_are_answered_in_the_order_in_which_they_were_recorded(tmp_path: Path) -> None:
    count = iter("123")
    path = recorded(tmp_path / "a.jsonl", "Hi", "Hi", "Hi", answer=lambda _: next(count))
    with Cassette(path) as cassette:
        agent = echo(cassette.model(Counted("m", last)))
        assert [agent.run_sync("Hi").output for _ in range(3)] == ["1", "2", "3"]


async def test_requests_that_run_side_by_side_find_their_own_answers(tmp_path: Path) -> None:
    words, path = [f"word {number}" for number in range(30)], tmp_path / "a.jsonl"
    with Cassette(path) as cassette:
        agent = echo(cassette.model(Counted("m", last)))
        await asyncio.gather(*[agent.run(word) for word in words])
    with Cassette(path, mode="none") as cassette:
        agent = echo(cassette.model(Counted("m", lambda _: "not asked")))
        found = await asyncio.gather(*[agent.run(word) for word in reversed(words)])
    assert [result.output for result in found] == [f"You said {word}" for word in reversed(words)]


def test_ids_and_times_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for id, at in (("one", 1), ("two", 2)):
        with Cassette(path) as cassette:
            model = Counted("m", last)
            echo(cassette.model(model)).run_sync(user("Hi", id=id, created_at=at))
            assert model.asked == (id == "one")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"input": "Ho"}, 'messages[0].content[0].text: "Hi" → "Ho"'),
        ({"instructions": "Be kind."}, 'instructions: (none) → {"agent":"Be kind."}'),
        ({"settings": Settings(temperature=0.5)}, 'settings: (none) → {"temperature":0.5}'),
        ({"name": "n"}, 'model: "m" → "n"'),
        ({"tools": [find_payments]}, "tools: (none) → "),
    ],
)
def test_another_request_fails_with_the_field_that_differs(
    change: dict[str, object], field: str, tmp_path: Path
) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi")
    said, name = str(change.pop("input", "Hi")), str(change.pop("name", "m"))
    with pytest.raises(NotRecorded) as caught, Cassette(path) as cassette:
        echo(cassette.model(Counted(name, last)), **change).run_sync(said)
    assert field in str(caught.value)
    assert caught.value.nearest == 1
    assert "\n  " in str(caught.value)


def test_the_nearest_recording_is_shown(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Something else", "Hi")
    with pytest.raises(NotRecorded) as caught, Cassette(path) as cassette:
        echo(cassette.model(Counted("m", last))).run_sync([user("Hi"), user("And?")])
    assert caught.value.differs != ()
    assert "request 1, of echo" in str(caught.value)


def ask_all(path: Path, *inputs: str, mode: Mode = "once", swallow: bool = False, then: str = "") -> None:
    """Asks an agent with its cassette, run by run; `swallow` goes on after a failure, `then` fails at the end."""
    with Cassette(path, mode=mode) as cassette:
        agent = echo(cassette.model(Counted("m", last)))
        for each in inputs:
            with suppress(NotRecorded) if swallow else nullcontext():
                agent.run_sync(each)
        if then:
            raise ZeroDivisionError(then)


def test_a_request_that_is_repeated_too_often_is_told_as_that(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi")
    with pytest.raises(NotRecorded, match="recorded 1 time, and is asked once more"):
        ask_all(path, "Hi", "Hi")


def test_a_request_that_was_not_recorded_fails_at_the_end_even_where_that_was_swallowed(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi")
    with pytest.raises(NotRecorded):
        ask_all(path, "Hi", "Ho", swallow=True)


def test_recordings_that_nobody_asked_for_fail_and_are_named(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi", "Ho")
    with pytest.raises(CassetteError, match=r"1 of 2 recordings(?s:.*)'Ho'"), Cassette(path) as cassette:
        echo(cassette.model(Counted("m", last))).run_sync("Hi")


def test_without_a_file_nothing_is_answered_and_nothing_asked(tmp_path: Path) -> None:
    model = Counted("m", last)
    with pytest.raises(NotRecorded, match="it holds none"), Cassette(tmp_path / "a.jsonl", mode="none") as cassette:
        echo(cassette.model(model)).run_sync("Hi")
    assert model.asked == 0


def test_the_mode_new_keeps_what_is_used_and_records_what_is_missing(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi", "gone")
    model = Counted("m", last)
    with Cassette(path, mode="new") as cassette:
        for word in ("Hi", "Ho"):
            echo(cassette.model(model)).run_sync(word)
    assert model.asked == 1
    with Cassette(path, mode="none") as cassette:
        agent = echo(cassette.model(model))
        assert [agent.run_sync(word).output for word in ("Ho", "Hi")] == ["You said Ho", "Yes."]


def test_the_mode_all_asks_again_and_writes_anew(tmp_path: Path) -> None:
    path, model = recorded(tmp_path / "a.jsonl", "Hi"), Counted("m", last)
    with Cassette(path, mode="all") as cassette:
        assert echo(cassette.model(model)).run_sync("Hi").output == "You said Hi"
    assert "You said Hi" in path.read_text()


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi")
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        ask_all(path, "Ho", mode="all", then="it fails")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_call_that_failed_fails_again_with_the_same_error(tmp_path: Path) -> None:
    def fail(request: ChatRequest) -> str:
        raise ModelUnavailable("too busy", status=503, retry_after=2.0)

    found = []
    for model in (Counted("m", fail), Counted("m", last)):
        with Cassette(tmp_path / "a.jsonl") as cassette, pytest.raises(ModelUnavailable) as caught:
            echo(cassette.model(model)).run_sync("Hi")
        found.append((str(caught.value), caught.value.status, caught.value.retry_after, caught.value.retryable))
    assert found[0] == found[1]
    assert found[0][1:] == (503, 2.0, True)


class Switch(Middleware):
    """Asks another model than the agent's, after it has asked that one for a summary by itself."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        said = await request.run.ask_model(self, "Sum it up.", purpose="summary", model=self.model)
        return await call_next(request.replace(model=self.model, instructions={"so far": said.message.text}))


def test_models_that_a_layer_brings_are_stood_in_for_as_well(tmp_path: Path) -> None:
    own, other = Remote("own", last), Remote("other", lambda request: f"{request.purpose}")
    agent = Agent("desk", model=own, middleware=[Switch(other)])
    for mode in ("once", "none"):
        with Cassette(tmp_path / "a.jsonl", mode=mode):
            assert agent.run_sync("Hi").output == "answer"
    assert (own.inner.asked, other.inner.asked) == (0, 2)


def test_models_that_answer_in_the_process_are_left_alone(tmp_path: Path) -> None:
    model = Counted("m", last)
    for _ in range(2):
        with Cassette(tmp_path / "a.jsonl"):
            echo(model).run_sync("Hi")
    assert model.asked == 2
    assert list(tmp_path.iterdir()) == []


def test_where_a_cassette_only_answers_nothing_asks_a_service_behind_its_back(tmp_path: Path) -> None:
    real = OpenAIChat("small", base_url="http://127.0.0.1:9", api_key="any", retries=0)
    behind = echo(FunctionModel(real.complete))
    with pytest.raises(RealCallForbidden, match=r"'small'.*a\.jsonl"), Cassette(tmp_path / "a.jsonl", mode="none"):
        behind.run_sync("Hi")


def test_what_redact_hides_is_in_no_part_of_the_file_and_is_matched_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    async def ask(cassette: Cassette) -> None:
        model = Counted("m", lambda request: [Reasoning("4929-1111?"), f"Card 4929-1111 of {len(request.messages)}"])
        async with echo(cassette.model(model), instructions="Card 4929-1111").stream("Mine is 4929-1111.") as run:
            assert [event async for event in run]

    for _ in range(2):
        with Cassette(path, redact=lambda text: text.replace("4929-1111", "[card]")) as cassette:
            asyncio.run(ask(cassette))
    assert "4929" not in path.read_text()
    assert path.read_text().count("[card]") >= 4


def test_an_error_of_somebodys_own_comes_back_as_the_one_that_it_is(tmp_path: Path) -> None:
    class TooBusy(ModelUnavailable):
        pass

    def fail(request: ChatRequest) -> str:
        raise TooBusy("too busy")

    for kind in (TooBusy, ModelUnavailable):
        with Cassette(tmp_path / "a.jsonl") as cassette, pytest.raises(ModelUnavailable, match="too busy") as caught:
            echo(cassette.model(Counted("m", fail))).run_sync("Hi")
        assert type(caught.value) is kind


def test_a_key_of_the_environment_that_is_said_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-shop-123456789")
    path = recorded(tmp_path / "a.jsonl", "Hi", answer=lambda _: "The key is sk-shop-123456789.")
    assert "123456789" not in path.read_text()
    assert "The key is ***" in path.read_text()


NAMES = ["SHOP_KEY_PROD", "TOKEN_SHOP", "SHOP_KEYS", "SHOP_PASSWD", "shop_secret"]
KEYS = ["sk-shop-123456789", "-----BEGIN KEY-----\nabcdefgh12\n-----END KEY-----", "geheimnis-äöü", "Bearer abcdefgh12"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", KEYS)
def test_whatever_is_called_a_key_is_not_written_whatever_it_looks_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str
) -> None:
    monkeypatch.setenv(name, key)
    path = recorded(tmp_path / "a.jsonl", f"It is {key}, is it?", answer=lambda _: f"It is {key}.")
    told = str([line.values() for line in lines(path)])
    assert not [part for part in ("123456789", "abcdefgh12", "äöü") if part in told]


def test_a_field_that_is_called_kind_or_role_hides_as_any_other(tmp_path: Path) -> None:
    about = {"type": "object", "properties": {"role": {"type": "string", "description": "4929-1111"}}}
    found = Tool.from_json_schema("find", "", about, find_payments.fn)
    settings = Settings(extra={"kind": "4929-1111", "role": "4929-1111"})
    path = tmp_path / "a.jsonl"
    for _ in range(2):
        with Cassette(path, redact=lambda text: text.replace("4929-1111", "[card]")) as cassette:
            echo(cassette.model(Counted("m", last)), tools=[found], settings=settings).run_sync("Hi")
    assert ("4929" in path.read_text(), path.read_text().count("[card]")) == (False, 3)


def test_instructions_that_are_joined_in_another_order_are_another_request(tmp_path: Path) -> None:
    class Block(Middleware):
        def __init__(self, name: str) -> None:
            self.name, self.instructions = name, f"The {name}."

    def ask(*names: str) -> None:
        with Cassette(tmp_path / "a.jsonl") as cassette:
            echo(cassette.model(Counted("m", last)), middleware=[Block(name) for name in names]).run_sync("Hi")

    for _ in range(2):
        ask("b", "c")
    with pytest.raises(NotRecorded, match="order"):
        ask("c", "b")


class Breaking(Remote):
    """Says half of a secret, then the other half, and fails."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        for piece in ("The key is sk-shop", "-123456789."):
            yield TextDelta(piece)
        raise ModelUnavailable("it broke off")


def test_a_key_that_was_said_in_pieces_before_a_failure_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-shop-123456789")

    async def ask(cassette: Cassette) -> None:
        async with echo(cassette.model(Breaking("m", last))).stream("Hi") as run:
            async for _ in run:
                pass

    for _ in range(2):
        with Cassette(tmp_path / "a.jsonl") as cassette, pytest.raises(ModelUnavailable, match="it broke off"):
            asyncio.run(ask(cassette))
    assert "sk-shop" not in (tmp_path / "a.jsonl").read_text()
    assert "123456789" not in (tmp_path / "a.jsonl").read_text()


def test_redact_has_to_give_a_text(tmp_path: Path) -> None:
    hides = Cassette(tmp_path / "a.jsonl", redact=lambda _: 1)  # type: ignore[arg-type, return-value]  # as it is meant
    with pytest.raises(CassetteError, match="redact gives a text"), hides as cassette:
        echo(cassette.model(Counted("m", last))).run_sync("Hi")


def test_a_mode_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="none, once, all or new"):
        Cassette(tmp_path / "a.jsonl", mode="sometimes")  # type: ignore[arg-type]
