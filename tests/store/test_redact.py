"""Known secrets are replaced wherever they stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.store.redact import FORMAT_WORDS, REDACTED, Redactor
from tests.store.records import json_objects, json_values

SECRET = "mst-secret-123456"
ODD_SECRET = 'p"ss/wörd\\n\U0001f511'


@pytest.mark.parametrize("secret", [SECRET, ODD_SECRET, "line one\nline two", "null,true"])
def test_a_secret_is_replaced_in_texts_keys_and_json_within_json(secret: str) -> None:
    inner = json.dumps({"token": f"Bearer {secret}"})
    value = {
        "plain": f"x{secret}y{secret}",
        secret: 1,
        "json": inner,
        "json in json": json.dumps([inner]),
        "unescaped": json.dumps({"t": secret}, ensure_ascii=False),
        "slashes": json.dumps(secret).replace("/", "\\/"),
        "list": [[f"<{secret}>"]],
        "none": None,
    }
    read = json.loads(Redactor([secret]).json_text(value))
    assert read["plain"] == f"x{REDACTED}y{REDACTED}"
    assert read[REDACTED] == 1
    assert json.loads(read["json"]) == {"token": f"Bearer {REDACTED}"}
    assert json.loads(json.loads(read["json in json"])[0]) == {"token": f"Bearer {REDACTED}"}
    assert json.loads(read["unescaped"]) == {"t": REDACTED}
    assert json.loads(read["slashes"]) == REDACTED
    assert read["list"] == [[f"<{REDACTED}>"]]


def is_replaced(secret: str) -> bool:
    return len(secret.strip()) >= 8 and secret.strip() not in FORMAT_WORDS


@given(st.text(min_size=8, max_size=20).filter(is_replaced), json_values)
def test_the_result_is_always_json_without_the_secret(secret: str, value: object) -> None:
    read = json.loads(Redactor([secret]).json_text({"value": [value, f"a{secret}b"]}))
    assert json.dumps(secret)[1:-1] not in json.dumps(read["value"][1])
    assert read["value"][1].startswith("a")


@given(json_objects)
def test_what_holds_no_secret_is_left_alone(value: dict[str, object]) -> None:
    assert json.loads(Redactor([SECRET]).json_text(value)) == value


def test_an_escape_before_a_secret_stays_whole() -> None:
    text = Redactor(["nsecret-value"]).json_text({"a": "\nsecret-value", "b": "\\nsecret-value"})
    assert json.loads(text) == {"a": "\nsecret-value", "b": f"\\{REDACTED}"}


def test_a_number_that_is_a_secret_is_replaced_and_the_rest_of_the_numbers_is_not() -> None:
    text = Redactor(["12345678"]).json_text({"pin": 12345678, "other": 123456789, "ok": True})
    assert json.loads(text) == {"pin": REDACTED, "other": 123456789, "ok": True}


def test_two_keys_that_hold_secrets_stay_two() -> None:
    text = Redactor(["first-secret", "other-secret"]).json_text(
        {"first-secret": 1, "other-secret": 2}
    )
    assert json.loads(text) == {REDACTED: 1, f"{REDACTED} (2)": 2}


def test_a_secret_within_a_longer_one_leaves_no_rest() -> None:
    redactor = Redactor(["abcdefgh", "abcdefgh-and-more"])
    assert redactor.text("abcdefgh-and-more abcdefgh") == f"{REDACTED} {REDACTED}"


def test_short_values_are_left_to_those_who_know_their_fields() -> None:
    assert Redactor(["", "  ", "true", "abc1234"]).text("true abc1234") == "true abc1234"


def test_names_that_files_are_found_by_are_kept_at_the_top_and_nowhere_else() -> None:
    redactor = Redactor([SECRET])
    text = redactor.json_text({"id": SECRET, "in": {"id": SECRET}, "x": SECRET}, ["id", "other"])
    assert json.loads(text) == {"id": SECRET, "in": {"id": REDACTED}, "x": REDACTED}
