"""Masking of secrets in what clients write, for accounts that ask for it (`Account.secrets`).

Every text of a body is masked before it is checked, whatever it becomes: a memory, a value in Redis, the input of a
tool. So are the records of imported files, and the memories that callers in Python store. Ids and vectors stay, since a
masked id would be another one.
"""

import re
from collections.abc import Mapping
from typing import Any

from django.db import models

from memory.redaction import MASK, SECRET_NAME, redact, redact_named
from memory_project.measures import MASKED_SECRETS

UNMASKED_NAME = re.compile(r"(?:^|_)(?:ids?|key|keys|cursor|embedding|model|etag|sha256|hash)$")
"""Members whose values name something: ids, keys of values, names of models, digests. `api_key` is none of them."""

DERIVED_COLUMNS = frozenset({"identity", "content_hash", "wording", "uri"})
"""Columns of texts that identify a row."""
MASK_POLICY = "mask"
"""Value of `Account.secrets`."""
MIN_SECRET_CHARACTERS = 13
"""Length of the shortest card number. A shorter name of a member is no secret that a rule could know."""


def mask_secrets(value: Any) -> Any:
    """Return the JSON value with its secrets masked, and count them."""
    masked = mask_value(value)
    count = count_masks(masked) - count_masks(value)
    if count > 0:
        MASKED_SECRETS.inc(count)
    return masked


def mask_value(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {mask_name(name): mask_member(name, each) for name, each in value.items()}
    return [mask_value(each) for each in value] if isinstance(value, list) else value


def mask_name(name: str) -> str:
    """Return the name of a member, masked if it is a secret itself, as in a map of keys to their owners."""
    return redact(name) if len(name) >= MIN_SECRET_CHARACTERS else name


def mask_member(name: str, value: Any) -> Any:
    """Return the value of a member, masked unless it is the name of something."""
    names_something = UNMASKED_NAME.search(name) and not SECRET_NAME.search(name)
    if isinstance(value, str):
        return value if names_something else redact_named(name, value)
    return value if names_something and isinstance(value, list) else mask_value(value)


def count_masks(value: Any) -> int:
    """Return how many masked places the texts of a JSON value have."""
    if isinstance(value, str):
        return value.count(MASK)
    if isinstance(value, Mapping):
        return sum(name.count(MASK) + count_masks(each) for name, each in value.items())
    if isinstance(value, list):
        return sum(count_masks(each) for each in value)
    return 0


def mask_row(row: models.Model) -> None:
    """Mask the texts of a row before it is stored: its columns of texts and JSON, not those of names and ids."""
    for field in row._meta.concrete_fields:
        if isinstance(field, models.TextField | models.JSONField) and field.attname not in DERIVED_COLUMNS:
            value = getattr(row, field.attname)
            if value:
                setattr(row, field.attname, mask_secrets(value))
