"""A set of tools has one fingerprint, in whatever order it is given."""

from hashlib import sha256

from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes import fingerprint

PAY = ToolSpec("pay", "Pays a bill.", {})
SEND = ToolSpec("send", "Sends a letter.", {})


def test_the_order_of_tools_makes_no_difference() -> None:
    assert fingerprint([PAY, SEND]) == fingerprint([SEND, PAY])


def test_another_name_or_description_or_tool_is_another_set() -> None:
    sets = [[PAY], [PAY, SEND], [ToolSpec("pays", "Pays a bill.", {})], [ToolSpec("pay", "Pays all bills.", {})], []]
    assert len({fingerprint(tools) for tools in sets}) == 5


def test_a_fingerprint_is_the_sha_256_of_names_and_descriptions() -> None:
    assert fingerprint([SEND, PAY]) == sha256(b"pay\0Pays a bill.\1send\0Sends a letter.\1").hexdigest()
