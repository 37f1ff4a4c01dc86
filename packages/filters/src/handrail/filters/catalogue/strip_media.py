"""The filter that leaves out pictures, sounds and documents."""

from __future__ import annotations

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Audio, File, Image, Message, Messages, Part, Text, is_empty
from handrail.filters.registry import constructor, filter_kind


@filter_kind("strip-media")
class StripMedia(Filter, frozen=True):
    """No images, audio and files of more than `max_bytes` inline bytes; with 0, none at all.

    One that is only an address has no bytes here, and stays unless `max_bytes` is 0. A message left empty goes; a tool
    result keeps an empty text.
    """

    max_bytes: int = 0

    def __post_init__(self) -> None:
        if type(self.max_bytes) is not int or self.max_bytes < 0:
            raise InvalidFilter(f"max_bytes is a whole number of bytes, at least 0, not {self.max_bytes!r}")

    def __call__(self, history: Messages) -> Messages:
        return tuple([left for message in history if (left := self._without(message)) is not None])

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def reason(self, message: Message) -> str:
        """Says how large media may be."""
        return f"media of more than {self.max_bytes} bytes does not cross" if self.max_bytes else "media does not cross"

    def _without(self, message: Message) -> Message | None:
        parts = tuple([part for part in message.content if not self._too_large(part)])
        if len(parts) == len(message.content):
            return message
        if message.role == "tool":
            return msgspec.structs.replace(message, content=parts or (Text(""),))
        left = msgspec.structs.replace(message, content=parts)
        return None if is_empty(left) else left

    def _too_large(self, part: Part) -> bool:
        if not isinstance(part, Image | Audio | File):
            return False
        from handrail.filters.strings import inline_bytes

        return self.max_bytes == 0 or inline_bytes(part) > self.max_bytes


@constructor
def strip_media(max_bytes: int = 0) -> StripMedia:
    """Leaves out images, audio and files; with `max_bytes` only those of more inline bytes.

    Raises `InvalidFilter` for a number below 0.

    >>> from handrail.filters import Image, Text, user
    >>> picture = Image(data="iVBORw0KGgo=", media_type="image/png")
    >>> [len(message.content) for message in strip_media()((user([Text("See:"), picture]),))]
    [1]
    >>> [len(message.content) for message in strip_media(100)((user([Text("See:"), picture]),))]
    [2]
    """
    return StripMedia(max_bytes)
