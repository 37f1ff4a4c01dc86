"""Sessions to look at: one with everything that a page can show, one that is hostile, one that is long."""

from pathlib import Path

import msgspec

from handrail.agent import Agent, FunctionModel, handoff, to_tool, tool
from handrail.agent.kernel import ChatRequest
from handrail.filters import (
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    call,
    last_n,
    none,
    system,
    tool_result,
    user,
)
from handrail.sessions import (
    AuditRecord,
    Journal,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    StateRecord,
    ToolResultRecord,
    TurnRecord,
    Usage,
    ViewRecord,
)
from handrail.sessions.records import Record

TELLTALE = "document.title='it ran'"
HOSTILE = (
    f"</script><script>{TELLTALE}</script>",
    f"<img src=x onerror={TELLTALE}>",
    "<!--<script>",
    "]]></script>",
    f"javascript:{TELLTALE}",
    f'"><svg onload={TELLTALE}>',
    "<base href='//evil.example/'><meta http-equiv=refresh content='0;url=//evil.example'>",
    "user\u202enimda\u202c turned around \u2067here\u2069, hid\u200bden, \ufeffmarked",
    "a line\u2028and a paragraph\u2029",
    "\x1b[31mred\x1b[0m \x00 nul \x07 bell \x7f",
    "tag \U000e0041\U000e0042 characters",
    "z\u0351\u0354\u0355\u0356a\u0357\u0358l\u035b\u035d\u035eg\u0360\u0361o" * 20,
    "{{script}} {{data}} {{csp}} ${alert(1)} \\u003c \\",
    "مرحبا بالعالم and שלום",
)


def write(path: Path, *records: Record) -> Path:
    """A session file of these records."""
    with Journal.open(path, fsync="never") as journal:
        for record in records:
            journal.append(record)
    return path


def said(message: Message, path: str = "desk") -> MessageRecord:
    """A record of a message."""
    return MessageRecord(path=path, message=message)


def hostile(path: Path) -> Path:
    """Content that tries to be markup, to run, to hide, or to be too much; in every place that a page shows."""
    rows: list[Record] = [SessionRecord(title=HOSTILE[0], losses=HOSTILE[:3], breaches=HOSTILE[3:5])]
    for number, text in enumerate(HOSTILE):
        name = text[:120] or "x"
        at = 1_796_000_000_000 + number * 61_000
        rows.append(said(user(text, id=f"u{number}{text[:30]}", created_at=at), path=f"desk{number % 3}"))
        parts: list[Part] = [
            Reasoning(text, data=text),
            Text(text, sensitivity=text[:20]),
            ToolCall(f"c{number}", name, text),
        ]
        rows.append(said(assistant(*parts, id=f"a{number}", agent=name, created_at=at), path=f"desk{number % 3}"))
        result = tool_result(f"c{number}", text, id=f"r{number}", name=name, is_error=number % 2 == 0)
        rows.append(ToolResultRecord(path=f"desk{number % 3}", message=result))
        rows.append(
            said(
                assistant(Refusal(text), Opaque(text, text, f'{{"x":{msgspec.json.encode(text).decode()}}}')),
                path="desk",
            )
        )
        values = msgspec.Raw(msgspec.json.encode({text: text}))
        rows.append(StateRecord(path="desk", values=values))
        rows.append(AuditRecord(path="desk", name=name, data=values))
        rows.append(TurnRecord(path="desk", run="r", event="end", status=name, error=text))
    rows.append(said(user("x" * 3_000_000 + "needle" + "y" * 1000, id="huge")))
    rows.append(said(assistant(" ".join(["word"] * 400_000), id="words")))
    rows.append(said(assistant("\n" * 50_000, id="lines")))
    rows.append(said(assistant(ToolCall("deep", "deep", "[" * 5_000 + "]" * 5_000), id="deep")))
    rows.append(said(user("", id="empty")))
    return write(path, *rows)


@tool(side_effects="read_only", output_sensitivity="secret")
def find_payments(invoice: str) -> str:
    """The payments of an invoice."""
    return f'{{"invoice":"{invoice}","card":"4929 8801 2210 7781","amounts":[14800,14800]}}'


@tool(side_effects="read_only")
def find_invoice(invoice: str) -> str:
    """An invoice."""
    if invoice == "0":
        raise ValueError("there is no invoice 0")
    return f'{{"invoice":"{invoice}","total":12345678901234567890,"status":"paid"}}'


def shop(path: Path, rounds: int = 1) -> Path:
    """Three agents with handoffs, sub-agents, secrets, errors, reasoning, tokens and prices, over some runs."""

    def front(request: ChatRequest) -> Message | str:
        if request.messages[-1].role == "user":
            return assistant("That is one for billing.", call("transfer_to_billing", reason="a double charge"))
        return "Done."

    def back(request: ChatRequest) -> Message | str:
        results = [message.name for message in request.messages if message.role == "tool"]
        if "find_payments" not in results[-3:]:
            thought = Reasoning("The customer speaks of a double charge, so the payments have to be looked up first.")
            return assistant(
                thought,
                call("find_invoice", invoice="1042"),
                call("find_payments", invoice="1042"),
                call("find_invoice", invoice="0"),
            )
        if results[-1] != "research":
            return assistant(call("research", input="What is the rule for a double charge?"))
        return assistant(
            "Invoice 1042 was charged twice.\n\n1. 148.00 EUR on 7 March\n2. 148.00 EUR on 8 March\n\nShall I?",
            call("transfer_to_triage", reason="all said"),
        )

    research = Agent("research", model=FunctionModel(lambda _: "A double charge is always refunded in full."))
    asked = to_tool(research, filter=none())
    billing = Agent(
        "billing",
        model=FunctionModel(back),
        tools=[find_invoice, find_payments, asked],
        handoffs=[handoff("triage", filter=last_n(10))],
    )
    triage = Agent(
        "triage", instructions="You are the front desk.", model=FunctionModel(front), handoffs=[handoff(billing)]
    )
    for _ in range(rounds):
        triage.run_sync("Was I charged twice on invoice 1042?", session=str(path), start="self")
    return path


def priced(path: Path) -> Path:
    """Model calls with tokens and prices, one that failed, edits of a view, and notes of every kind."""
    rows: list[Record] = [said(system("You answer in one sentence.", id="s"))]
    for number in range(60):
        name = "writer" if number % 7 else "critic"
        usage = Usage(400 + number * 130, 40 + number % 9 * 30, 300 if number % 2 else 0, requests=1)
        answer = assistant(
            f"Answer {number}.", id=f"a{number}", agent=name, created_at=1_796_000_000_000 + number * 5000
        )
        rows.append(said(user(f"Question {number}?", id=f"q{number}"), path=name))
        rows.append(ModelCallRecord(path=name, step=number, model="gpt-4o-mini", message_id=f"a{number}", usage=usage))
        rows.append(said(answer, path=name))
    rows.append(ModelCallRecord(path="writer", step=61, model="gpt-4o-mini", error="ModelUnavailable: 503", attempt=2))
    rows.append(AuditRecord(path="writer", name="approval", call_id="c9", data=msgspec.Raw(b'{"denied":"send_mail"}')))
    rows.append(StateRecord(path="writer", values=msgspec.Raw(b'{"todo":["a","b"],"count":9007199254740993}')))
    edit = ViewRecord(
        path="writer", removed=("q1", "a1"), inserted=(("", user("A summary.", id="sum")),), reason="compaction"
    )
    rows.append(edit)
    rows.append(TurnRecord(path="writer", run="r", event="end", status="failed", error="LimitReached: 50 steps"))
    return write(path, *rows)


def long(path: Path, count: int) -> Path:
    """Two agents that hand over now and then, in so many messages; every thousandth says where it is."""
    rows: list[Record] = []
    for number in range(count // 4):
        at = 1_796_000_000_000 + number * 1000
        where = f" This is milestone {number // 250}." if number % 250 == 0 else ""
        text = f"Step {number}: look at the file, and say what is in it.{where} " + "It goes on for a while. " * (
            number % 9
        )
        made = ToolCall(f"c{number}", "read_file", f'{{"path":"src/module_{number}.py","lines":[1,{number}]}}')
        rows.append(said(user(text, id=f"u{number}", created_at=at)))
        rows.append(said(assistant("I look.", made, id=f"a{number}", agent="desk", created_at=at)))
        result = tool_result(
            made, f"def function_{number}():\n    return {number}\n" * (1 + number % 5), id=f"r{number}"
        )
        rows.append(ToolResultRecord(path="desk", message=result))
        rows.append(
            said(
                assistant(
                    f"It holds function {number}. " * (1 + number % 7), id=f"b{number}", agent="desk", created_at=at
                )
            )
        )
    return write(path, *rows)
