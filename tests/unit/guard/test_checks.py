"""What a regular expression cannot say: check digits hold, and chance looks like chance."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.guard import secrets
from tests.unit.guard import made_up

# Numbers that card networks and banks publish for trying things out.
CARDS = ["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "6011111111111117"]
ACCOUNTS = [
    "DE89 3704 0044 0532 0130 00",
    "GB29NWBK60161331926819",
    "FR14 2004 1010 0505 0001 3M02 606",
    "NL91 ABNA 0417 1643 00",
    "NO93 8601 1117 947",
]


@pytest.mark.parametrize("number", CARDS)
def test_a_card_is_known_by_issuer_length_and_check_digit(number: str) -> None:
    assert secrets.card(number) == len(number)


@pytest.mark.parametrize("number", CARDS)
def test_a_card_with_one_digit_changed_is_none(number: str) -> None:
    assert not any(map(secrets.card, changed(number)))


@pytest.mark.parametrize("number", ["1111111111111117", "0000000000000000", "4111111111111"])
def test_a_number_of_no_issuer_is_no_card(number: str) -> None:
    assert not secrets.card(number)


@pytest.mark.parametrize("number", ACCOUNTS)
def test_an_account_is_known_by_country_length_and_check_digits(number: str) -> None:
    assert secrets.iban(number) == len(number)


@pytest.mark.parametrize("number", ACCOUNTS)
def test_an_account_with_one_digit_changed_is_none(number: str) -> None:
    assert not any(map(secrets.iban, changed(number)))


def test_an_account_ends_where_its_country_says() -> None:
    assert secrets.iban(f"{ACCOUNTS[0]} BIC") == len(ACCOUNTS[0])
    assert not secrets.iban(f"{ACCOUNTS[1]}00")


@given(st.integers(0, 10**6))
def test_made_up_cards_and_accounts_hold(seed: int) -> None:
    chance = random.Random(seed)
    assert secrets.card(made_up.card("52", 16, chance))
    assert secrets.iban(made_up.iban("DE", "", 18, chance))


@pytest.mark.parametrize("text", ["hunter2", "1234", "p@ssword", "Sommer2024!", "ключ123"])
def test_a_password_somebody_chose_is_seen(text: str) -> None:
    assert secrets.chosen(text) == len(text)


@pytest.mark.parametrize("text", ["required", "case-sensitive", "12", "at least 8", "wrong!", "a1"])
def test_a_word_about_passwords_is_not_one(text: str) -> None:
    assert not secrets.chosen(text)


@pytest.mark.parametrize("text", ["os.environ", "my-secret-name-2024-prod", "refs/heads/release1"])
def test_names_and_paths_are_not_opaque(text: str) -> None:
    assert not secrets.opaque(text)


def test_entropy_is_that_of_the_characters() -> None:
    assert secrets.entropy("") == 0
    assert secrets.entropy("aaaa") == 0
    assert secrets.entropy("abcd") == 2


def changed(number: str) -> list[str]:
    """The number with each digit raised by one in turn."""
    return [
        number[:at] + str((int(digit) + 1) % 10) + number[at + 1 :]
        for at, digit in enumerate(number)
        if digit in string.digits
    ]
