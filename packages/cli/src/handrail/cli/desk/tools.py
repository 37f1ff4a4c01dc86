"""What the desk's agents can do: look things up in the books, and give money back."""

import re
from typing import Any, TypeVar

from handrail.agent import Tool, tool
from handrail.cli.desk.books import HANDBOOK, HOURS, INVOICES, PARCELS, PAYMENTS

_Entry = TypeVar("_Entry")
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset(("the", "and", "for", "are", "may", "can", "has", "what", "when", "that", "this", "invoice"))


def desk_tools() -> dict[str, Tool]:
    """New tools by name; their refunds are remembered together, and apart from any other desk's."""
    refunded: set[str] = set()

    @tool(side_effects="read_only")
    def opening_hours(day: str = "") -> dict[str, str]:
        """When the shop is open, on one day of the week or on all of them.

        Args:
            day: A day of the week in English; empty for the whole week.
        """
        if not day:
            return dict(HOURS)
        if day.lower() not in HOURS:
            raise LookupError(f"no day is called {day!r}")
        return {day.lower(): HOURS[day.lower()]}

    @tool(side_effects="read_only")
    def track_parcel(number: str) -> dict[str, str]:
        """Where a parcel is, by its number of four digits."""
        return _found(PARCELS, number, "parcel")

    @tool(side_effects="read_only")
    def find_invoice(number: str) -> dict[str, Any]:
        """An invoice by its number of four digits; its total is in cents."""
        return _found(INVOICES, number, "invoice")

    @tool(side_effects="read_only", output_sensitivity="secret")
    def find_payments(number: str) -> list[dict[str, Any]]:
        """The payments of an invoice, with the card that paid; amounts are in cents."""
        return _found(PAYMENTS, number, "invoice")

    @tool(side_effects="side_effecting")
    def refund_double_charge(number: str) -> str:
        """Gives the second payment of an invoice back."""
        payments = _found(PAYMENTS, number, "invoice")
        if len(payments) < 2:
            raise ValueError(f"invoice {number} was not paid twice")
        if number in refunded:
            return f"already refunded: {payments[-1]['amount']} cents"
        refunded.add(number)
        return f"refunded: {payments[-1]['amount']} cents"

    @tool(side_effects="read_only")
    def search_handbook(query: str) -> list[dict[str, str]]:
        """What the company's handbook says about a question, best first."""
        return _search(query)

    made = (opening_hours, track_parcel, find_invoice, find_payments, refund_double_charge, search_handbook)
    return {each.name: each for each in made}


def _found(books: dict[str, _Entry], number: str, what: str) -> _Entry:
    if number not in books:
        raise LookupError(f"there is no {what} {number}; there are {', '.join(books)}")
    return books[number]


def _search(query: str) -> list[dict[str, str]]:
    asked = _stems(query)
    scores = {title: 3 * len(asked & _stems(title)) + len(asked & _stems(text)) for title, text in HANDBOOK.items()}
    best = sorted((title for title in HANDBOOK if scores[title] >= 3), key=lambda title: -scores[title])
    return [{"title": title, "text": HANDBOOK[title]} for title in best[:1]]


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _COMMON}
