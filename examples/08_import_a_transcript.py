"""A transcript that another tool wrote: kept as a session, filtered, and given back."""

import tempfile
from pathlib import Path

from handrail.filters import parse, seal
from handrail.sessions import Session, export_to, import_file

CHAT = Path(__file__).with_name("support_chat.json")

with tempfile.TemporaryDirectory() as folder:
    (path,) = import_file(CHAT, Path(folder) / "chat.session.jsonl", agent="support")
    history = Session(path).history("support")
    print(f"{len(history)} messages, the last from the {history[-1].role}")

    # What would cross a handoff: the filter as an expression, sealed. No reasoning and no open call gets through.
    crossing = seal(parse("last_n(3) | strip_tool_calls"))
    for message in crossing(history):
        print(f"  {message.role:9} {message.text}")
    print(crossing.explain(history))

    back = export_to(path, "openai-chat")
    print(f"{len(back.body)} bytes in the format it came from; lost on the way: {list(back.losses) or 'nothing'}")
