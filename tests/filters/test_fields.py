"""Messages and parts in pydantic models."""

import pydantic
import pytest

from handrail.filters import Image, Message, Part, Text, assistant, call


class Ticket(pydantic.BaseModel):
    last: Message
    shown: Part
    files: list[Image] = []


def test_messages_and_parts_are_fields_of_pydantic_models() -> None:
    ticket = Ticket(
        last=assistant("Hé", call("track", call_id="c1", n=1)), shown=Text("北"), files=[Image(data="aQ==")]
    )
    assert Ticket.model_validate_json(ticket.model_dump_json()) == ticket
    assert Ticket.model_validate(ticket.model_dump()) == ticket


def test_what_is_no_message_is_a_validation_error_with_its_place() -> None:
    with pytest.raises(pydantic.ValidationError, match=r"role"):
        Ticket.model_validate({"last": {"role": "narrator"}, "shown": {"kind": "text", "text": ""}})
    with pytest.raises(pydantic.ValidationError, match="telepathy"):
        Ticket.model_validate({"last": {"role": "user"}, "shown": {"kind": "telepathy"}})


def test_a_model_with_a_message_has_a_json_schema() -> None:
    schema = Ticket.model_json_schema()
    role = schema["properties"]["last"]["properties"]["role"]
    assert role == {"enum": ["assistant", "system", "tool", "user"]}
    assert "$ref" not in str(schema)
