"""Line rules for personal data: identity numbers, bank cards, mobile numbers, e-mail addresses.

``personal_data`` decides: ``mask`` puts a word in angle brackets in the place of each, ``drop`` drops the
line, ``keep`` leaves all as it is. The masks are Latin so that they are of neither script, and each is three
tokens of the vocabulary, none of them ``[UNK]``. Fixed lines, which are mostly those of organisations, stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from corpus.config import CorpusConfig
from corpus.rules.gates import needs
from corpus.rules.trigger import lines_with

_IDENTITY = re.compile(r"(?<![0-9A-Za-z.])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])")
_CARD = re.compile(r"(?<![0-9A-Za-z.])[3-6][0-9]{3}(?:[ -]?[0-9]{4}){3}(?:[ -]?[0-9]{1,3})?(?![0-9A-Za-z])")
_MOBILE = re.compile(
    r"(?<![0-9A-Za-z.+])(?<![0-9]-)(?:\+?86[ -]?)?1[3-9][0-9](?:[0-9]{8}|[ -][0-9]{4}[ -][0-9]{4})"
    r"(?![0-9A-Za-z]|[.-][0-9])"
)
_EMAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?![A-Za-z0-9])")
_WEIGHTS = [2**power % 11 for power in range(17, 0, -1)]


def is_identity_number(digits: str) -> bool:
    """Whether 18 characters are an identity number by GB 11643: a date that exists, a right check character.

    ISO 7064 MOD 11-2: the digits weighted by powers of two add up to 1 modulo 11, X standing for ten.
    """
    try:
        born = date(int(digits[6:10]), int(digits[10:12]), int(digits[12:14]))
    except ValueError:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(digits, _WEIGHTS, strict=False))
    check = 10 if digits[17] in "Xx" else int(digits[17])
    return 1900 <= born.year < 2100 and (total + check) % 11 == 1


def is_bank_card(digits: str) -> bool:
    """Whether 16 to 19 digits are a card number: a first digit of a network of cards, and Luhn's check."""
    if not re.match(r"62|4|5[1-5]|3[56]|6[05]", digits) or not 16 <= len(digits) <= 19:
        return False
    if not digits.startswith("62") and len(digits) != 16:  # UnionPay alone issues longer ones in China
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _handle(
    line: str,
    config: CorpusConfig,
    pattern: re.Pattern[str],
    mask: str,
    holds: Callable[[str], bool] = lambda digits: True,
) -> str | None:
    if config.personal_data == "keep":
        return line
    masked = pattern.sub(
        lambda match: mask if holds(re.sub("[ -]", "", match[0])) else match[0],
        line,
    )
    return None if config.personal_data == "drop" and masked != line else masked


@needs("[0-9]", "[0-9]")
@lines_with(r"[1-9][0-9]{16}[0-9Xx]")
def identity_numbers(line: str, config: CorpusConfig) -> str | None:
    """Identity numbers of 18 characters whose date and check character are right."""
    return _handle(line, config, _IDENTITY, "<id>", is_identity_number)


@needs("[3-6]", "[0-9]")
@lines_with(r"[3-6][0-9]{3}(?:[ -]?[0-9]{4}){3}")
def bank_cards(line: str, config: CorpusConfig) -> str | None:
    """Numbers of bank cards, of 16 to 19 digits, that pass Luhn's check."""
    return _handle(line, config, _CARD, "<card>", is_bank_card)


@needs("1", "[3-9]")
@lines_with(r"1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}")
def mobile_numbers(line: str, config: CorpusConfig) -> str | None:
    """Mobile numbers of the mainland, with or without separators and +86."""
    return _handle(line, config, _MOBILE, "<phone>")


@needs("@")
@lines_with("@")
def email_addresses(line: str, config: CorpusConfig) -> str | None:
    """E-mail addresses."""
    return _handle(line, config, _EMAIL, "<email>")
