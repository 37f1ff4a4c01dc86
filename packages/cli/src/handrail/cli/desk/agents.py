"""The three agents of the desk: triage and billing hand over to each other, and billing asks research."""

from collections.abc import Callable

from handrail.agent import Agent, FunctionModel, Model, handoff, to_tool
from handrail.agent.kernel import ChatRequest
from handrail.cli.desk.rules import Reply, billing_rules, research_rules, triage_rules
from handrail.cli.desk.tools import desk_tools
from handrail.filters import compose, default_handoff_filter, last_n, none, strip_tool_calls

TRIAGE = """You are the front desk of a furniture shop. You tell opening hours and track parcels, with your tools. \
Everything about money (invoices, payments, double charges, refunds) and about the shop's rules goes to billing: hand \
over at once, with the reason. Where you cannot help, say so, and say what you can do. Answer in a sentence or two."""
BILLING = """You are billing in a furniture shop. Look up invoices and payments with your tools before you say \
anything of them; an invoice with two payments was charged twice. Refund only a double charge, and only when the \
customer asked for it. Ask research what the shop's handbook says. Never repeat a card number. Opening hours, parcels \
and everything else go back to triage: hand over. Answer in two or three sentences. Amounts are in cents of EUR."""
RESEARCH = """You answer one question from the shop's handbook, with your tool. Quote the entry that answers it; where \
none does, say that the handbook says nothing about it."""


def support_desk(model: Model | None = None) -> Agent:
    """The desk's triage agent, through which the others are reached.

    Without a `model` each agent answers by rules, in the process. The last six messages go to billing, without tool
    calls; back to triage goes what the default filter lets through, which card numbers do not pass; research sees its
    question alone.
    """
    tools = desk_tools()

    def agent_model(name: str, rules: Callable[[ChatRequest], Reply]) -> Model:
        return model if model is not None else FunctionModel(rules, name=f"{name}-rules")

    research = Agent(
        "research",
        model=agent_model("research", research_rules),
        instructions=RESEARCH,
        description="It finds out what the shop's handbook says about a question.",
        tools=[tools["search_handbook"]],
    )
    billing = Agent(
        "billing",
        model=agent_model("billing", billing_rules),
        instructions=BILLING,
        description="It answers for invoices, payments, refunds and the shop's rules.",
        tools=[
            tools["find_invoice"],
            tools["find_payments"],
            tools["refund_double_charge"],
            to_tool(research, filter=none()),
        ],
        handoffs=[handoff("triage", filter=default_handoff_filter())],
    )
    return Agent(
        "triage",
        model=agent_model("triage", triage_rules),
        instructions=TRIAGE,
        description="It answers for opening hours and parcels, and knows whom to ask about the rest.",
        tools=[tools["opening_hours"], tools["track_parcel"]],
        handoffs=[handoff(billing, filter=compose(last_n(6, keep_user=True), strip_tool_calls()))],
    )


triage = support_desk()
"""The desk as `handrail demo` has it, for commands that take an agent: `handrail.cli.desk:triage`."""
