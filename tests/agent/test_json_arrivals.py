"""What is read out of a redacted answer holds no secret, wherever its JSON stands and however it is escaped."""

import json

from hypothesis import given
from hypothesis import strategies as st

from handrail.agent.json_arrivals import JsonArrival
from handrail.agent.json_texts import NotJson, read_json
from handrail.filters.arrivals import Arrivals
from handrail.filters.redaction import Redactor

WATCH = Arrivals(Redactor(detect=("email",)), 512)
ESCAPED = '"ann\\u0040example.org"'
BITS = [
    "```",
    "```json",
    "```py",
    "\n",
    " ",
    f'{{"a":{ESCAPED}}}',
    f"[{ESCAPED}]",
    ESCAPED,
    '"',
    "{",
    "`",
    "\ufeff",
    "so",
]


@given(st.lists(st.sampled_from(BITS), max_size=8).map("".join))
def test_what_is_read_from_a_redacted_text_holds_no_secret(text: str) -> None:
    arrival = JsonArrival(WATCH)
    redacted = arrival.add(text) + arrival.flush()
    try:
        value = read_json(redacted).value
    except NotJson:
        return
    assert "ann@" not in json.dumps(value)


@given(st.lists(st.sampled_from(BITS), max_size=8).map("".join))
def test_it_is_the_same_however_it_comes(text: str) -> None:
    at_once, piecemeal = JsonArrival(WATCH), JsonArrival(WATCH)
    whole = at_once.add(text) + at_once.flush()
    assert "".join([piecemeal.add(each) for each in text]) + piecemeal.flush() == whole
