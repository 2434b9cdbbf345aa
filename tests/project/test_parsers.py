"""Bodies with vectors are parsed by a faster parser, and nobody may notice: same values, same refusals."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError

from memory_project.http import parsers
from memory_project.http.parsers import MIN_FAST_BYTES, NOT_PARSED, parse_by_standard_library, parse_json
from tests.properties import examples

PADDING = '"padding": "' + "x" * MIN_FAST_BYTES + '"'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda each: st.lists(each, max_size=5) | st.dictionaries(st.text(), each, max_size=5),
    max_leaves=20,
)


@given(value=VALUES)
@examples(200)
def test_both_parsers_return_the_same_value(value: object) -> None:
    body = json.dumps(value, ensure_ascii=False).encode(errors="replace")

    fast = parsers.parse_numbers_fast(body)

    assert fast is NOT_PARSED or repr(fast) == repr(parse_by_standard_library(body))


@given(numbers=st.lists(st.floats(-1, 1), min_size=300, max_size=300))
@examples(20)
def test_vectors_are_parsed_by_the_fast_parser(numbers: list[float]) -> None:
    body = json.dumps({"content": "at 10:30", "embedding": numbers}).encode()

    assert parsers.parse_numbers_fast(body) == {"content": "at 10:30", "embedding": numbers}


@pytest.mark.parametrize(
    "member", ['"a": 1, "a": 2', '"a": 1e400', '"a": [-1e400]', '"a": NaN', '"a": 01', '"a": "\\ud800"', '"a": [1,]']
)
def test_long_bodies_are_refused_as_short_ones_are(member: str) -> None:
    with pytest.raises(ParseError):
        parse_json(f"{{{member}, {PADDING}}}".encode())


def test_integers_that_no_float_can_hold_are_kept() -> None:
    number = 10**30

    assert parse_json(f'{{"a": [{number}], {PADDING}}}'.encode())["a"] == [number]


def test_integers_that_no_float_can_hold_are_kept_next_to_fractions() -> None:
    number = 10**400

    assert parse_json(f'{{"a": [0.5, {number}], {PADDING}}}'.encode())["a"] == [0.5, number]


@pytest.mark.parametrize("member", ['"a": [1e400]', '"a": [0.5, -1e400]', '"a": [[true, 1e400]]', '"a": [1e400, "b"]'])
def test_infinite_numbers_are_refused_wherever_they_are(member: str) -> None:
    with pytest.raises(ParseError):
        parse_json(f"{{{member}, {PADDING}}}".encode())
