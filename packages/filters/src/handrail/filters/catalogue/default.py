"""The filter of every handoff and sub-agent that has none of its own."""

from __future__ import annotations

from functools import cache

from handrail.filters.base import Filter
from handrail.filters.registry import constructor, parse


@constructor
@cache
def default_handoff_filter() -> Filter:
    """The last ten messages and the latest user message, without secret or redacted tool outputs.

    >>> default_handoff_filter()
    compose(last_n(n=10, keep_user=True), strip_sensitive_outputs(on_drop='remove'), strip_reasoning())
    """
    return parse("last_n(10, keep_user=True) | strip_sensitive_outputs")
