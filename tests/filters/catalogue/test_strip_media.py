"""No pictures, sounds and documents."""

import base64

import pytest

from handrail.filters import Audio, File, Image, InvalidFilter, Text, strip_media, tool_result, user


def bytes_of(count: int) -> str:
    return base64.b64encode(b"x" * count).decode()


def test_a_message_left_empty_goes_and_a_result_keeps_an_empty_text() -> None:
    picture = Image(url="loopback:a.png")
    history = (user(["See:", picture], id="m1"), user(picture, id="m2"), tool_result("c1", picture, id="m3"))
    assert strip_media()(history) == (user("See:", id="m1"), tool_result("c1", Text(""), id="m3"))


@pytest.mark.parametrize(("count", "stays"), [(9, True), (10, True), (11, False), (12, False), (13, False)])
def test_only_media_of_more_bytes_goes(count: int, stays: bool) -> None:
    for part in (Image(data=bytes_of(count)), Audio(data=bytes_of(count)), File(data=bytes_of(count))):
        assert (strip_media(10)((user(["See:", part]),))[0].content[-1] == part) is stays


def test_an_address_has_no_bytes() -> None:
    history = (user(["See:", Image(url="loopback:a.png")]),)
    assert strip_media(1)(history) == history


@pytest.mark.parametrize("max_bytes", [-1, True, 1.5])
def test_a_size_is_a_whole_number(max_bytes: object) -> None:
    with pytest.raises(InvalidFilter, match="bytes"):
        strip_media(max_bytes)  # type: ignore[arg-type]
