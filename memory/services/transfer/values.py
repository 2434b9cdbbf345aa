"""The shapes of values in archives, by the columns that they are stored in."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from memory_project.fields import SealedJSONField

JSON_FIELDS = (models.JSONField, SealedJSONField)
MAX_INTEGER = 2**63


def is_parsed(parse: Callable[[str], Any], value: Any) -> bool:
    try:
        parse(value)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -MAX_INTEGER <= value < MAX_INTEGER


def is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_vector(value: Any) -> bool:
    return is_text(value) and is_parsed(lambda text: [float(each) for each in text[1:-1].split(",")], value)


CHECKS: tuple[tuple[Any, Callable[[Any], bool], str], ...] = (
    (ArrayField, is_texts, "must be a list of texts"),
    (HalfVectorField, is_vector, "must be a vector"),
    ((models.UUIDField, models.ForeignKey), lambda value: is_parsed(UUID, value), "must be an id"),
    (models.DateTimeField, lambda value: is_parsed(datetime.fromisoformat, value), "must be a time"),
    (models.DateField, lambda value: is_parsed(date.fromisoformat, value), "must be a date"),
    (models.BooleanField, lambda value: isinstance(value, bool), "must be true or false"),
    (models.IntegerField, is_whole_number, "must be a whole number"),
    (models.FloatField, is_number, "must be a number"),
    ((models.CharField, models.TextField), is_text, "must be a text"),
)


def check_value(field: "models.Field[Any, Any]", value: Any) -> str:
    """Return what is wrong with the value of a column, empty for nothing."""
    if isinstance(field, JSON_FIELDS):
        return ""
    if value is None:
        return "" if field.null else "must not be null"
    for kinds, is_right, problem in CHECKS:
        if isinstance(field, kinds):
            if not is_right(value):
                return problem
            break
    limit = field.max_length if isinstance(field, models.CharField) else None
    return f"is longer than {limit} characters" if limit and len(value) > limit else ""
