"""What model calls cost in US dollars, by the price list that is installed; nothing is fetched."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from handrail.sessions import ModelCallRecord, Usage
from handrail.sessions.records import AnyRecord


def load_prices() -> None:
    """Loads the price list (some 200 ms), so that no model call has to wait for it."""
    price("", Usage(1))


def price(model: str, usage: Usage) -> Decimal | None:
    """What one model call cost, or None where the model's price is not known.

    The model is looked up by its name as its service knows it. A service may charge more for a token of a long
    request, so calls are priced one by one, and never their sum.
    """
    from genai_prices import Usage as Priced
    from genai_prices import calc_price

    if not usage.total_tokens:
        return Decimal()
    cached = min(usage.cached_tokens, usage.input_tokens)
    tokens = Priced(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=cached)
    try:
        return calc_price(tokens, model).total_price
    except (LookupError, ValueError):
        return None


def is_priced(model: str) -> bool:
    """Whether the model's price is known."""
    return price(model, Usage(1)) is not None


def price_of(calls: Mapping[str, Iterable[Usage]]) -> Decimal | None:
    """What these calls cost, given by model; None where the price of one is not known."""
    prices = [price(model, usage) for model, usages in calls.items() for usage in usages]
    known = [each for each in prices if each is not None]
    return sum(known, Decimal()) if len(known) == len(prices) else None


def price_of_records(records: Iterable[AnyRecord]) -> tuple[Decimal, bool]:
    """What the model calls among these records cost, and whether the price of each of them is known."""
    total, whole = Decimal(), True
    for record in records:
        if isinstance(record, ModelCallRecord):
            cost = price(record.model, record.usage)
            whole = whole and cost is not None
            total += cost or 0
    return total, whole
