"""The JSON Schema of a session's lines, as it is shipped with the package."""

from typing import Any

from handrail.sessions.records import VERSION


def session_schema() -> dict[str, Any]:
    """The schema (2020-12) of one line of a session file: what a writer of this version writes.

    A known kind has the fields that are named and no others; any object of another kind fits. A reader takes more:
    fields that it does not know are kept.
    """
    import json
    from importlib.resources import files

    name = f"handrail-session-{VERSION}.json"
    found: dict[str, Any] = json.loads((files("handrail.sessions") / "schema" / name).read_bytes())
    return found
