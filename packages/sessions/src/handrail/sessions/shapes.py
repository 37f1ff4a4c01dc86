"""What a foreign file is: transcripts of known tools by the fields that only they have."""

import json
import re
from typing import Any

from handrail.filters.patterns import lazy

_SHAPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("a Handrail session, which needs no import", frozenset({"prev", "kind"})),
    ("a LangChain message list", frozenset({"additional_kwargs"})),
    ("a Langfuse trace", frozenset({"trace", "observations"})),
    ("a Pydantic AI message history", frozenset({"parts", "kind"})),
    ("a Gemini request (contents of parts)", frozenset({"contents"})),
    ("an Agent Development Kit session", frozenset({"events", "past_events"})),
    ("an Inspect log", frozenset({"eval", "plan"})),
    ("a Claude Code session", frozenset({"leafUuid"})),
    ("a Claude Code session", frozenset({"parentUuid"})),
    ("a Claude Code session", frozenset({"snapshot", "messageId"})),
    ("a Claude Code trace of a relay (content within content)", frozenset({"seq", "localId", "content"})),
    ("a Codex rollout", frozenset({"timestamp", "type", "payload"})),
    ("a Codex terminal log", frozenset({"ts", "dir", "kind"})),
    ("a pi session", frozenset({"type", "cwd", "modelId"})),
    ("JSON-RPC traffic (MCP)", frozenset({"jsonrpc"})),
    ("OpenHands events", frozenset({"source", "action", "args"})),
    ("an OpenHands evaluation output", frozenset({"instance_id", "instruction"})),
    ("an API-Bank dialogue", frozenset({"role", "text"})),
    ("an AutoGen recording", frozenset({"mode", "messages", "stream"})),
    ("an AutoGen history", frozenset({"source", "content", "type"})),
    ("a Who&When annotation, its turns under history", frozenset({"mistake_agent", "history"})),
    ("a SWE-agent trajectory, its turns under history", frozenset({"trajectory", "history"})),
    ("a ToolBench answer tree", frozenset({"answer_generation"})),
    ("a Swarm evaluation", frozenset({"results", "correct_evals"})),
    ("a Swarm test session", frozenset({"task_id", "role"})),
    ("a Claude Agent SDK recording", frozenset({"direction", "message"})),
    ("a list of Responses API items", frozenset({"object", "data", "first_id"})),
)
_RESPONSES_ITEMS = frozenset({"function_call", "function_call_output", "message", "reasoning", "item_reference"})
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
)
_YAML = lazy(r"[A-Za-z_][\w-]*:(\s|$)|---\s|- ")


def recognise(value: Any) -> str | None:
    """What a JSON value is, as far as the tools known here go: `a Codex rollout`, `an Anthropic Messages body`."""
    items = value if isinstance(value, list) else [value]
    heads = [item for item in items[:50] if isinstance(item, dict)]
    for head in heads:
        within = head.get("messages")
        inner = within if isinstance(within, list) else []
        heads_here = [head, *[item for item in inner[:50] if isinstance(item, dict)]]
        for fields in heads_here:
            if found := _by_fields(fields):
                return found
    return None


def _by_fields(fields: dict[str, Any]) -> str | None:
    if fields.get("type") in _RESPONSES_ITEMS and "payload" not in fields and "message" not in fields:
        return "a list of Responses API items"
    for name, needed in _SHAPES:
        if needed <= fields.keys():
            return name
    tools, content = fields.get("tools"), fields.get("content")
    if isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools):
        return "an Anthropic Messages body (its tools have an input_schema)"
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in _ANTHROPIC_BLOCKS:
            return f"an Anthropic Messages body (content blocks of type {part['type']})"
    return None


def describe(value: Any) -> str:
    """What a JSON value is, or at least what it is made of."""
    if (known := recognise(value)) is not None:
        return known
    if isinstance(value, list):
        return f"a list of {describe(value[0])}" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object with the fields {', '.join(list(value)[:8])}" if value else "an empty object"
    return f"JSON, but {'null' if value is None else type(value).__name__}"


def describe_text(text: str) -> str:
    """What a text is that is no JSON: YAML, or what is wrong with it as JSON."""
    first = text.lstrip()[:200]
    if not first:
        return "an empty file"
    if first[0] not in '[{"' and _YAML.match(first):
        recorded = re.match(r"(interactions|requests):", first)
        return "a YAML file (recorded HTTP traffic)" if recorded else "a YAML file"
    try:
        json.loads(text)
    except RecursionError:
        return "JSON that is nested too deeply"
    except ValueError as error:
        where = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        return (
            f"broken JSON ({getattr(error, 'msg', error)} at {where})"
            if first[0] in "[{"
            else "neither JSON nor JSON lines"
        )
    return "JSON that cannot be read here (a number or a name out of range)"
