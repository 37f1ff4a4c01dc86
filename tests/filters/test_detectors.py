"""Secrets and personal data, found in text."""

import pytest

from handrail.filters import Finding, detector, find
from handrail.filters.detectors import PERSONAL, SECRETS, detectors, find_by_key, merged, replaced

# Written in two pieces, so that no scanner takes the examples for keys of somebody.
SECRET_EXAMPLES = {
    "private_key": ["-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----"],
    "aws_key": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"],
    "github_token": ["ghp_" + "a1B2" * 9, "github_pat_" + "a1B2" * 8],
    "gitlab_token": ["glpat-" + "a1B2_" * 4],
    "slack_token": ["xoxb-" + "123456789012-abcdefABCDEF", "xapp-" + "1-A111-222-abcdef"],
    "anthropic_key": ["sk-ant-" + "api03-abcdef_123456"],
    "openai_key": ["sk-" + "abcdefghijklmnop1234", "sk-proj-" + "a1B2_c3-" * 4],
    "stripe_key": ["sk_live_" + "4eC39HqLyjWDarjtT1", "whsec_" + "a1B2" * 6],
    "google_key": ["AIza" + "Sy" + "a1B2c" * 6 + "abc", "ya29." + "a1B2" * 6, "GOCSPX-" + "a1B2" * 6],
    "package_token": ["npm_" + "a1B2" * 9, "hf_" + "a1B2" * 9],
    "sendgrid_key": ["SG." + "a1B2" * 5 + "." + "a1B2" * 10],
    "jwt": ["eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"],
}
IN_CONTEXT = [
    ("bearer", "Authorization: Bearer ", "abcdef0123456789ABCDEF", ""),
    ("bearer", "authorization: Basic ", "dXNlcjpwYXNzd29yZA==", ""),
    ("url_password", "postgres://ann:", "hunter2", "@db.example.org/x"),
    ("password", "password=", "hunter2", "&user=ann"),
    ("password", 'api_key: "', "k-1234", '", more'),
    ("password", "DB_PASSWORD='", "a b c", "'"),
    ("password", '{"client_secret": "', "s3cr3t", '"}'),
    ("password", 'export AWS_SECRET_ACCESS_KEY="', "wJalrXUtnFEMIK7MDENG", '"'),
    ("password", "token = ", "a1b2c3", "; x"),
]
HARMLESS = [
    "",
    "The secret is that there is none.",
    "My password was changed, and my token is lost.",
    "max_tokens: 4000, total_tokens=12",
    "Ask the secretary: Ann Smith.",
    "a bearer of good news; basic responsibilities",
    "sk-8841 and AKIA are short, the desk-lamp-is-very-bright-today too",
    "https://example.org:8080/a@b",
    "password=[REDACTED:secret:password]",
    "[REDACTED:secret:email] and [REDACTED:internal]",
    "-----BEGIN CERTIFICATE-----",
    "2024-01-02 12:30:45, order 1234567890123, 3.14159265358979, 10.000.000",
    "version 1.2.3, time 12:30:45, C++ std::vector, ::",
    "1.2.3.4.5 and 300.1.2.3",
    "4111 1111 1111 1112 is no card, DE89370400440532013001 no account",
    "000-12-3456 and 123-45-67890",
]
PERSONAL_EXAMPLES = [
    ("email", "ann@example.org"),
    ("email", "ann.lee+post@mail.example.co.uk"),
    ("email", "jürgen@example.org"),
    ("phone", "+41 44 668 18 00"),
    ("phone", "+1 (415) 555-2671"),
    ("phone", "0041 44 668 18 00"),
    ("phone", "(415) 555-2671"),
    ("phone", "415-555-2671"),
    ("card", "4111 1111 1111 1111"),
    ("card", "378282246310005"),
    ("card", "5555-5555-5555-4444"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
    ("iban", "NO9386011117947"),
    ("ip", "192.168.0.1"),
    ("ip", "2001:db8::ff00:42:8329"),
    ("ssn", "078-05-1120"),
]


@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, text) for kind, given in SECRET_EXAMPLES.items() for text in given]
)
def test_a_secret_is_found_whole_where_it_stands(kind: str, secret: str) -> None:
    text = f"Take ({secret}), please."
    assert [(found.kind, text[found.start : found.end]) for found in find(text, [kind])] == [(kind, secret)]
    assert [found.tier for found in find(text, ["secrets"])] == ["secret"]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), IN_CONTEXT)
def test_only_the_secret_itself_is_found_and_not_the_words_before_it(
    kind: str, before: str, secret: str, after: str
) -> None:
    text = before + secret + after
    if kind != "password" or " " not in secret:
        assert [(found.kind, text[found.start : found.end]) for found in find(text, [kind])] == [(kind, secret)]


def test_every_kind_of_secret_has_an_example() -> None:
    assert {*SECRET_EXAMPLES, *(kind for kind, *_ in IN_CONTEXT)} == set(SECRETS)
    assert {kind for kind, _ in PERSONAL_EXAMPLES} == set(PERSONAL)


@pytest.mark.parametrize(("kind", "text"), PERSONAL_EXAMPLES)
def test_personal_data_is_found_whole(kind: str, text: str) -> None:
    said = f"It is {text}, I think."
    assert [(found.kind, said[found.start : found.end]) for found in find(said, [kind])] == [(kind, text)]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_left_alone(text: str) -> None:
    assert find(text, ["secrets", "personal"]) == []


def test_words_in_capitals_after_an_account_are_not_part_of_it() -> None:
    text = "DE89 3704 0044 0532 0130 00 AND MORE"
    assert [text[found.start : found.end] for found in find(text, ["iban"])] == ["DE89 3704 0044 0532 0130 00"]


@pytest.mark.parametrize("key", ["password", "db_password", "apiKey", "client-secret", "accessToken", "PIN"])
def test_a_value_under_a_telling_key_is_a_finding(key: str) -> None:
    assert find_by_key(key, "9041", ["secrets"]) == [Finding("password", 0, 4, "secret")]


@pytest.mark.parametrize("key", ["", "spin", "shipping", "secretary", "tokens", "note"])
def test_a_value_under_another_key_is_none(key: str) -> None:
    assert find_by_key(key, "9041", ["secrets"]) == []


def test_findings_that_overlap_become_one_of_the_higher_tier() -> None:
    given = [Finding("a", 0, 5, "public"), Finding("b", 3, 8, "secret"), Finding("c", 9, 10, "internal")]
    assert merged("x" * 10, given) == [Finding("a", 0, 8, "secret"), Finding("c", 9, 10, "internal")]
    assert replaced("x" * 10, merged("x" * 10, given), "k") == "[REDACTED:secret:k]x[REDACTED:internal:k]"


def test_another_detector_is_known_by_its_name() -> None:
    @detector("tests/parcel")
    def parcels(text: str) -> list[Finding]:
        place = text.find("8841")
        return [Finding("parcel", place, place + 4, "internal")] if place >= 0 else []

    assert "tests/parcel" in detectors()
    assert find("parcel 8841", ["tests/parcel"]) == [Finding("parcel", 7, 11, "internal")]
    for taken in ("secrets", "email", "tests/parcel"):
        with pytest.raises(ValueError, match="is there already"):
            detector(taken)(lambda text: [])
    with pytest.raises(KeyError):
        find("x", ["acme/none"])
