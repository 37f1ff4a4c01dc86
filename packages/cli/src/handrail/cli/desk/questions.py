"""What a person asks for, read from their words: the topics, and the numbers of invoices and parcels."""

import re
from collections.abc import Sequence

import msgspec

from handrail.cli.desk.books import HOURS, PARCELS
from handrail.filters import Message

_TOPICS = {
    "front desk": r"\b(triage|front desk|reception|go back|back to|someone else|somebody else)\b",
    "to billing": r"\bbilling\b",
    "hours": r"\b(opening|hours|open|close|closed|closing)\b",
    "parcel": r"\b(parcel|package|track|tracking|deliver|delivered|delivery|shipment|shipped|arrive|arrived)\b",
    "double": r"\b(twice|double|doubly|two times|2 times|duplicate|again)\b",
    "refund": r"\b(refund\w*|money back|reimburse\w*|return it|give .* back|pay .* back|paid back)\b",
    "invoice": r"\b(invoices?|bills?|billed|charged?|charges|payments?|pay|paid|owe|receipt|inv-?\d+|due|cost)\b",
    "handbook": r"\b(policy|policies|rules?|handbook|warranty|guarantee|cancel\w*|how long|allowed)\b",
    "greeting": r"^\W*(hi|hello|hey|good (morning|afternoon|evening)|howdy)\b",
    "thanks": r"\b(thanks|thank you|cheers|great|perfect)\b",
    "yes": r"\b(yes|please|go ahead|do it|do that|ok|okay|sure)\b",
}
_PATTERNS = {topic: re.compile(pattern, re.IGNORECASE) for topic, pattern in _TOPICS.items()}
_NUMBER = re.compile(
    r"(?:(parcel|package|shipment|invoice|bill|inv)\b[\s#:.-]*(?:number|no\.?)?[\s#:.-]*)?"
    r"(?<![\d.])(\d{3,8})(?!\d|\.\d)",
    re.IGNORECASE,
)
_DAY = re.compile(rf"\b({'|'.join(HOURS)})s?\b", re.IGNORECASE)
OFFER = 'Say "yes, refund it" and I give the second payment back.'
BILLING = frozenset({"double", "refund", "invoice", "handbook", "to billing"})


class Question(msgspec.Struct, frozen=True):
    """One message of a person: its words, its topics, and the numbers in it."""

    text: str
    topics: frozenset[str]
    invoices: tuple[str, ...] = ()
    parcels: tuple[str, ...] = ()
    day: str = ""

    @property
    def billing(self) -> bool:
        """Whether billing has to do with it."""
        return bool(self.topics & BILLING) or bool(self.invoices)

    @property
    def desk(self) -> frozenset[str]:
        """What of it the front desk answers by itself."""
        return self.topics & {"hours", "parcel"}


def read_question(text: str) -> Question:
    """The question in a text."""
    topics = {topic for topic, pattern in _PATTERNS.items() if pattern.search(text)}
    invoices: list[str] = []
    parcels: list[str] = []
    for what, number in _NUMBER.findall(text):
        is_parcel = what.lower() in ("parcel", "package", "shipment") or (not what and _like_a_parcel(number))
        (parcels if is_parcel else invoices).append(number)
    if parcels:
        topics.add("parcel")
    day = _DAY.search(text)
    if "double" in topics and not topics & {"invoice", "refund"} and not invoices:
        topics.discard("double")  # "track it again" is no question about money
    return Question(text, frozenset(topics), tuple(invoices), tuple(parcels), day[1].lower() if day else "")


def _like_a_parcel(number: str) -> bool:
    return number in PARCELS or number[:2] == "88"


class Conversation:
    """What an agent's rules see: the question, what the person asked before it, and the results since. What agents
    said is no source of numbers: they name invoices that nobody asked about."""

    def __init__(self, messages: Sequence[Message]) -> None:
        last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
        self.question = read_question(messages[last].text if last >= 0 else "")
        earlier = messages[: max(last, 0)]
        self.before = [read_question(message.text) for message in earlier if message.role == "user"]
        said = [message.text for message in earlier if message.role == "assistant" and message.text]
        self.offered_refund = bool(said) and OFFER in said[-1]
        self.results = {
            message.name: message for message in messages[last + 1 :] if message.role == "tool" and message.name
        }

    def invoice(self) -> str:
        """The invoice that the question is about: its own, or the one asked about last; empty where there is none."""
        asked = [*self.before, self.question]
        return next((question.invoices[-1] for question in reversed(asked) if question.invoices), "")

    def parcel(self) -> str:
        """The parcel that the question is about: its own, or the one asked about last; empty where there is none."""
        asked = [*self.before, self.question]
        return next((question.parcels[-1] for question in reversed(asked) if question.parcels), "")

    def topics(self) -> frozenset[str]:
        """The question's topics; a yes takes up a refund that was offered, a bare number what was asked last."""
        topics = self.question.topics
        if topics == {"yes"}:
            return topics | {"refund"} if self.offered_refund else topics
        if not topics and self.question.invoices:
            return self.before[-1].topics & {"double", "refund"} if self.before else topics
        return topics
