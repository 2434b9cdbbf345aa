"""Conditions on the members of items' values: `{"color": "red", "score": {"$gte": 4}}`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import BooleanField, F, Func, TextField, Value
from django.db.models.functions import Cast

from memory.errors import Unprocessable

COMPARISONS: Mapping[str, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
EQUALITIES: Mapping[str, str] = {"$eq": "=", "$ne": "IS DISTINCT FROM"}
OPERATORS = (*EQUALITIES, *COMPARISONS)


def filter_conditions(wanted: Mapping[str, Any]) -> list[Func]:
    """Return the conditions, all of which must hold. Raises Unprocessable for an unknown operator.

    `$gt`, `$gte`, `$lt` and `$lte` hold between values of one JSON type only. A mapping without operators is contained
    in the member.
    """
    return [condition for name, value in wanted.items() for condition in conditions_of_member(name, value)]


def conditions_of_member(name: str, wanted: Any) -> Iterator[Func]:
    if not isinstance(wanted, dict):
        yield compare(member(name), "=", json_value(wanted))
    elif not any(key.startswith("$") for key in wanted):
        yield compare(member(name), "@>", json_value(wanted))
    else:
        for operator, value in wanted.items():
            yield from apply_operator(name, operator, value)


def apply_operator(name: str, operator: str, value: Any) -> Iterator[Func]:
    if operator not in OPERATORS:
        raise Unprocessable(f'"{operator[:100]}" is not an operator of filters. Allowed: {", ".join(OPERATORS)}.')
    if operator in COMPARISONS:
        yield compare(type_of(member(name)), "=", type_of(json_value(value)))
    yield compare(member(name), {**COMPARISONS, **EQUALITIES}[operator], json_value(value))


def member(name: str) -> Func:
    """Return a member of the value as JSON."""
    return Func(F("value"), Cast(Value(name), TextField()), template="(%(expressions)s)", arg_joiner="::jsonb -> ")


def json_value(value: Any) -> Func:
    return Func(Value(json.dumps(value, ensure_ascii=False)), template="(%(expressions)s)::jsonb")


def type_of(value: Func) -> Func:
    return Func(value, function="jsonb_typeof")


def compare(one: Func, operator: str, other: Func) -> Func:
    comparison = f" {operator} "
    return Func(one, other, template="(%(expressions)s)", arg_joiner=comparison, output_field=BooleanField())
