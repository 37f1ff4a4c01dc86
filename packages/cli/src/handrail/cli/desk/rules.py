"""How the desk's agents answer without a model service: rules over what was asked and what the tools said."""

import json
from collections.abc import Callable
from typing import Any

from handrail.agent.kernel import ChatRequest
from handrail.cli.desk.questions import OFFER, Conversation, Question
from handrail.filters import Message, ToolCall, call
from handrail.filters.messages import Part

Reply = list[str | Part]

TRIAGE_CAN = "I can tell you the opening hours, track a parcel (8841 or 8842), or bring you to billing."
BILLING_CAN = (
    "I can look at an invoice (1041, 1042 or 1043), see whether it was charged twice, refund a double charge, and look "
    "up what the handbook says. For anything else, ask for triage."
)
_REASONS = {"double": "a double charge", "refund": "a refund", "handbook": "the shop's rules"}


def triage_rules(request: ChatRequest) -> Reply:
    """The front desk: hours and parcels by itself, money to billing."""
    talk = Conversation(request.messages)
    question = talk.question
    if "front desk" in question.topics and not question.desk:
        return [f"You are at the front desk. {TRIAGE_CAN}"]
    looking = [] if talk.results else _look_up(request, talk)
    if looking:
        return [*looking]
    told = _told(talk)
    if question.billing:
        words = " ".join([*told, "That is one for billing, I bring you there."])
        return [words, new_call(request, "transfer_to_billing", reason=_reason(question))]
    if told:
        return [" ".join(told)]
    if "parcel" in question.topics:
        return ["Which parcel? Tell me its number of four digits."]
    return [_polite(question.topics, TRIAGE_CAN)]


def _reason(question: Question) -> str:
    about = [words for topic, words in _REASONS.items() if topic in question.topics]
    about += [f"invoice {number}" for number in question.invoices]
    return ", ".join(about) or "wants to talk to billing"


def _look_up(request: ChatRequest, talk: Conversation) -> list[ToolCall]:
    calls: list[ToolCall] = []
    if "hours" in talk.question.topics:
        calls.append(new_call(request, "opening_hours", day=talk.question.day))
    if "parcel" in talk.question.topics and talk.parcel():
        calls.append(new_call(request, "track_parcel", number=talk.parcel()))
    return calls


def _told(talk: Conversation) -> list[str]:
    told: list[str] = []
    hours, parcel = talk.results.get("opening_hours"), talk.results.get("track_parcel")
    if hours is not None:
        told.append(_said(hours, _open))
    if parcel is not None:
        told.append(_said(parcel, _parcel))
    return told


def _open(found: dict[str, str]) -> str:
    return f"We are open: {', '.join([f'{day} {time}' for day, time in found.items()])}."


def _parcel(found: dict[str, str]) -> str:
    expected = "" if found["expected"] == "done" else f", expected on {found['expected']}"
    return f"Parcel {found['number']} ({found['item']}) is {found['where']}{expected}."


def billing_rules(request: ChatRequest) -> Reply:
    """Billing: invoices, double charges and refunds; what the handbook says it has the research agent look up."""
    talk = Conversation(request.messages)
    question, topics = talk.question, talk.topics()
    if "front desk" in question.topics or (question.desk and not question.billing):
        wish = f"asks for {' and '.join(sorted(question.desk)) or 'the front desk'}"
        return ["I bring you back to the front desk.", new_call(request, "transfer_to_triage", reason=wish)]
    if topics <= {"greeting", "thanks", "yes", "to billing"} and not question.invoices:
        return [_polite(topics, BILLING_CAN) if "to billing" not in topics else f"This is billing. {BILLING_CAN}"]
    calls = _needed(request, talk)
    if calls:
        return [*calls]
    if not talk.results:
        return ["Which invoice is it? Tell me its number of four digits, 1042 for example."]
    return [" ".join(_findings(talk))]


def _needed(request: ChatRequest, talk: Conversation) -> list[ToolCall]:
    number, topics, results = talk.invoice(), talk.topics(), talk.results
    if not results:
        if number and (topics & {"double", "refund", "invoice"} or talk.question.invoices):
            return [new_call(request, name, number=number) for name in ("find_invoice", "find_payments")]
        if topics & {"refund", "handbook"}:
            return [new_call(request, "research", input=talk.question.text)]
        return []
    twice = _paid_twice(results.get("find_payments"))
    if twice and {"refund", "yes"} <= topics and "refund_double_charge" not in results:
        return [new_call(request, "refund_double_charge", number=number)]
    if (twice or topics & {"refund", "handbook"}) and not {"research", "refund_double_charge"} & set(results):
        if _failed(results.get("find_invoice")):
            return []
        ask = "What is the rule for a double charge?" if twice else f"What is the rule for this: {talk.question.text}"
        return [new_call(request, "research", input=ask)]
    return []


def _findings(talk: Conversation) -> list[str]:
    results, topics = talk.results, talk.topics()
    said: list[str] = []
    invoice = results.get("find_invoice")
    if invoice is not None:
        said.append(_said(invoice, _invoice))
    twice = _paid_twice(results.get("find_payments"))
    if twice:
        dates = " and on ".join(payment["on"] for payment in twice)
        said.append(f"It was charged twice: {_money(twice[0]['amount'])} on {dates}.")
    elif "double" in topics and invoice is not None and not invoice.is_error:
        said.append("It was not charged twice.")
    refund = results.get("refund_double_charge")
    if refund is not None:
        again = "already" in refund.text
        said.append("The second payment was given back already." if again else "I have given the second payment back.")
    research = results.get("research")
    if research is not None:
        said.append("Research failed, so I cannot say what the handbook says." if research.is_error else research.text)
        if twice:
            said.append(OFFER)
    return said


def _invoice(found: dict[str, Any]) -> str:
    what = f"Invoice {found['number']} ({found['item']})"
    return f"{what} is over {_money(found['total'])}, {found['status']}, due {found['due']}."


def _paid_twice(result: Message | None) -> list[dict[str, Any]]:
    payments = [] if result is None or result.is_error else json.loads(result.text)
    return payments if len(payments) > 1 else []


def research_rules(request: ChatRequest) -> Reply:
    """Research: looks into the handbook, and says what stands there, or that nothing does."""
    talk = Conversation(request.messages)
    found = talk.results.get("search_handbook")
    if found is None:
        return [new_call(request, "search_handbook", query=talk.question.text)]
    entries = [] if found.is_error else json.loads(found.text)
    if not entries:
        return ["The handbook says nothing about that."]
    return [" ".join(f"The handbook says: {entry['text']}" for entry in entries)]


def _said(result: Message, words: Callable[[Any], str]) -> str:
    if result.is_error:
        return f"I cannot find that: {result.text.partition(': ')[2] or result.text}."
    return words(json.loads(result.text))


def _failed(result: Message | None) -> bool:
    return result is not None and result.is_error


def _polite(topics: frozenset[str], can: str) -> str:
    if "greeting" in topics:
        return f"Hello. {can}"
    if "thanks" in topics:
        return "You are welcome."
    return f"I cannot help with that. {can}"


def _money(cents: int) -> str:
    return f"{cents / 100:.2f} EUR"


def new_call(request: ChatRequest, name: str, **arguments: str) -> ToolCall:
    """A call with an id that is new to the conversation."""
    number = sum(len(message.tool_calls) for message in request.messages)
    return call(name, call_id=f"{name}-{number + 1}", **arguments)
