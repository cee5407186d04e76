"""Numbers as people write them: conventions are detected, never guessed."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from branchwise.data.conventions.number_format import (
    NumberFormat,
    detect,
    detect_texts,
    follows_any,
    parse_texts,
)


def chosen(*texts, decimal=None, thousands=None, likely=None):
    detected = detect_texts(list(texts))
    how = detected.chosen(decimal, thousands, likely)
    if how is None:
        return None, None
    return detected.numbers[how.decimal].tolist(), how


@pytest.mark.parametrize(
    ("texts", "numbers", "how"),
    [
        (
            ["1.234,56 €", "12,00 €", "5 €"],
            [1234.56, 12, 5],
            NumberFormat(",", ".", currency="€"),
        ),
        (["1.100,5", "2.300.000"], [1100.5, 2300000], NumberFormat(",", ".")),
        (["1 234,5", "2\u202f000", "3\u00a0000"], None, NumberFormat(",", " ")),
        (["1'234.50", "1\u2019000"], [1234.5, 1000], NumberFormat(".", "'")),
        (["1,100", "2,300,000.5", "7"], [1100, 2300000.5, 7], NumberFormat(".", ",")),
        (["1,234", "12,34,567"], [1234, 1234567], NumberFormat(".", ",", indian=True)),
        (
            ["Rs. 12,34,567.50", "Rs.1,000"],
            [1234567.5, 1000],
            NumberFormat(".", ",", True, "Rs."),
        ),
        (["12 %", "4,39 %"], [0.12, 0.0439], NumberFormat(",", percent=True)),
        (["12%", "7 %"], [0.12, 0.07], NumberFormat(".", "", percent=True)),
        (["(500)", "12"], [-500, 12], NumberFormat(".", "")),
        (["500-", "1.5"], [-500, 1.5], NumberFormat(".")),
        (["\u22125,0", "+3"], [-5, 3], NumberFormat(",")),
        (
            ["-$7.5", "$ -8", "($1,000.00)", "$5"],
            [-7.5, -8, -1000, 5],
            NumberFormat(".", ",", currency="$"),
        ),
        (["EUR 5,5", "7 EUR", "0"], [5.5, 7, 0], NumberFormat(",", currency="EUR")),
        (["1,5e3", "2,5E-02"], [1500, 0.025], NumberFormat(",")),
        ([",5", "1,25"], [0.5, 1.25], NumberFormat(",")),
        (["0,123", "1,234"], [0.123, 1.234], NumberFormat(",")),
        (["1234,567", "1,234"], [1234.567, 1.234], NumberFormat(",")),
        (["1 234", "5"], [1234, 5], NumberFormat(",", " ")),
        (["12345678901234567,5"], [12345678901234567.5], NumberFormat(",")),
    ],
)
def test_conventions(texts, numbers, how):
    found, found_format = chosen(*texts)
    assert found_format == how
    if numbers is not None:
        assert found == numbers
    assert parse_texts(texts, how) == found
    assert all(map(follows_any, texts))
    assert NumberFormat.of(how.fields) == how


@pytest.mark.parametrize(
    "texts",
    [
        ["x", "y"],
        ["1.2.3", "1.2.4"],
        ["192.168.100.200", "10.0.0.1"],
        ["2020-01-02"],
        ["31.12.2023"],
        ["1,5", "some"],
        ["12,34,5"],
        ["123,456", "12,34,567"],
        ["1,5%", "12.5 %"],
        ["5 %", "5"],
        ["$5", "5 €"],
        ["1 234,5", "1.234,5"],
        ["5 % %"],
        ["--5"],
        ["(-5)"],
        ["5-7"],
        ["€ 5 €"],
        ["()"],
        ["5 kg"],
        ["+"],
        [""],
        ["%"],
        ["1e5 %"],
        ["1e123456", "2,5"],
    ],
)
def test_words_and_several_conventions(texts):
    assert not detect_texts(texts).formats


@pytest.mark.parametrize(
    ("texts", "readings"),
    [
        (["1,234", "5"], {".": 1234, ",": 1.234}),
        (["1.234 €", "12 €"], {".": 1.234, ",": 1234}),
        (["$1,100", "-$7"], {".": 1100, ",": 1.1}),
        (["12.345 %"], {".": 0.12345, ",": 123.45}),
    ],
)
def test_two_readings(texts, readings):
    detected = detect_texts(texts)
    assert detected.is_ambiguous
    assert detected.readings == readings
    assert detected.chosen(None, None) is None
    assert detected.chosen(",", None).decimal == ","
    assert detected.chosen(None, ",").decimal == "."
    assert detected.chosen(None, ".").decimal == ","


def test_insisting_does_not_change_what_is_clear():
    assert chosen("1,5", "2,25", decimal=".")[0] == [1.5, 2.25]
    assert chosen("12 %", likely=",")[1] == NumberFormat(",", percent=True)
    assert chosen("12 %", decimal=",")[1] == NumberFormat(",", percent=True)


@pytest.mark.parametrize(
    ("how", "text", "number"),
    [
        (NumberFormat(",", "."), "1234,5", 1234.5),
        (NumberFormat(",", "."), "1 234,5", None),
        (NumberFormat(","), "1 234,5", 1234.5),
        (NumberFormat(","), "1.5", None),
        (NumberFormat(","), "01.234", None),
        (NumberFormat(",", currency="€"), "5", 5),
        (NumberFormat(",", currency="€"), "$5", None),
        (NumberFormat(percent=True), "5", None),
        (NumberFormat(".", ""), "1,234", None),
        (NumberFormat(".", ",", indian=True), "123,456", None),
    ],
)
def test_other_texts_by_a_convention(how, text, number):
    assert parse_texts([text, "x"], how) == [number, None]


def written(number: Decimal, how: NumberFormat, rng: random.Random) -> str:
    """Write a number in a convention."""
    sign, digits, exponent = number.as_tuple()
    digits = "".join(map(str, digits)).rjust(1 - exponent, "0")
    whole = digits[:exponent] if exponent else digits
    fraction = digits[exponent:] if exponent else ""
    groups = []
    while len(whole) > (2 if how.indian and groups else 3):
        size = 2 if how.indian and groups else 3
        whole, group = whole[:-size], whole[-size:]
        groups.insert(0, group)
    groups = [whole, *groups] if whole else groups
    text = (how.thousands or "").join(groups) + (fraction and how.decimal + fraction)
    if how.percent:
        text += rng.choice(["%", " %", "\u00a0%"])
    if how.currency:
        text = rng.choice([f"{how.currency} {text}", f"{text} {how.currency}"])
    minus = ["-{}", "{}-", "({})", "\u2212{}"]
    return rng.choice(minus).format(text) if sign else text


def test_random_numbers_in_every_convention():
    rng = random.Random(1)
    marks = [(".", ","), (",", "."), (",", " "), (".", "'"), (".", None)]
    for decimal, thousands in marks:
        for unit in ({}, {"percent": True}, {"currency": "CHF"}):
            indian = thousands == "," and rng.random() < 0.5
            how = NumberFormat(decimal, thousands, indian, **unit)
            scale = Decimal(100) if how.percent else Decimal(1)
            for _ in range(60):
                exponent = rng.randint(0, 4)
                number = Decimal(rng.randint(-(10**12), 10**12)).scaleb(-exponent)
                text = written(number, how, rng)
                assert parse_texts([text], how) == [float(number / scale)], text


def test_a_million_texts_are_read_in_shapes():
    rng = random.Random(2)
    texts = [
        f"{rng.randint(1, 999)}.{rng.randint(0, 999):03},{rng.randint(0, 99):02} €"
        for _ in range(20_000)
    ]
    detected = detect(pa.array(texts).slice(5))
    plain = [float(t[:-2].replace(".", "").replace(",", ".")) for t in texts[5:]]
    assert detected.numbers[","].tolist() == plain


def test_missing_and_large_columns_of_text():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert detect(pa.array(["1,5", "2,5"], kind)).numbers[","].tolist() == [
            1.5,
            2.5,
        ]
    assert not detect(pa.array([], pa.string())).formats
    assert parse_texts([], NumberFormat()) == []
    assert parse_texts(["5", "\ud800"], NumberFormat()) == [5, None]


@pytest.mark.parametrize(
    "given",
    [
        {"decimal": ";"},
        {"thousands": "-"},
        {"percent": 1},
        {"currency": 5},
        {"decimal": ",", "thousands": ","},
        {"other": 1},
    ],
)
def test_invalid_fields(given):
    with pytest.raises(ValueError, match="has"):
        NumberFormat.of(given)


def test_formats_are_shown_as_a_number():
    assert str(NumberFormat(",", ".", currency="€")) == "1.234,56 €"
    assert str(NumberFormat(".", ",", indian=True)) == "12,34,567.56"
    assert str(NumberFormat(",", percent=True)) == "1234,56 %"
