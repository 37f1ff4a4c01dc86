"""What the desk knows: the books of an invented shop. Amounts are in cents."""

from typing import Any

INVOICES: dict[str, dict[str, Any]] = {
    "1041": {"number": "1041", "item": "desk lamp", "total": 3900, "status": "paid", "due": "2 March"},
    "1042": {"number": "1042", "item": "office chair", "total": 14800, "status": "paid", "due": "9 March"},
    "1043": {"number": "1043", "item": "standing desk", "total": 39900, "status": "unpaid", "due": "30 March"},
}

PAYMENTS: dict[str, list[dict[str, Any]]] = {
    "1041": [{"amount": 3900, "on": "1 March", "card": "4929 8801 2210 7781"}],
    "1042": [
        {"amount": 14800, "on": "7 March", "card": "4929 8801 2210 7781"},
        {"amount": 14800, "on": "8 March", "card": "4929 8801 2210 7781"},
    ],
    "1043": [],
}

PARCELS: dict[str, dict[str, str]] = {
    "8841": {"number": "8841", "item": "office chair", "where": "in transit, Porto", "expected": "Thursday"},
    "8842": {"number": "8842", "item": "desk lamp", "where": "delivered, left with a neighbour", "expected": "done"},
}

HOURS = {
    "monday": "9 to 18",
    "tuesday": "9 to 18",
    "wednesday": "9 to 18",
    "thursday": "9 to 20",
    "friday": "9 to 18",
    "saturday": "10 to 14",
    "sunday": "closed",
}

HANDBOOK: dict[str, str] = {
    "double charge": (
        "A double charge, where an invoice was paid twice, is always refunded in full: "
        "the second payment goes back to the card within 5 working days."
    ),
    "refund": "Goods may be returned within 30 days of delivery for a refund; send them back unused.",
    "unpaid": "What is unpaid may be paid by card or transfer until its due date; no fee in the 14 days after.",
    "cancel an order": "An order may be cancelled free of charge until it is shipped.",
    "warranty": "Furniture has a warranty of 3 years, lamps of 2.",
    "delivery": "Delivery takes 3 to 5 working days and is free from 50.00 on.",
}
