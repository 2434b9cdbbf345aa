"""Masking of secrets in what clients write, for accounts that ask for it (`Account.secrets`).

Every text of a body is masked before it is checked, whatever it becomes: a memory, a value in Redis, the input of a
tool. Ids and vectors stay, since a masked id would be another one.
"""

import re
from collections.abc import Mapping
from typing import Any

from memory.redaction import MASK, SECRET_NAME, redact, redact_named
from memory_project.measures import MASKED_SECRETS

UNMASKED_NAME = re.compile(r"(?:^|_)(?:ids?|key|keys|cursor|embedding|model|etag|sha256|hash)$")
"""Members whose values name something: ids, keys of values, names of models, digests. `api_key` is none of them."""


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
        return {name: mask_member(name, each) for name, each in value.items()}
    return [mask_value(each) for each in value] if isinstance(value, list) else value


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
        return sum(count_masks(each) for each in value.values())
    if isinstance(value, list):
        return sum(count_masks(each) for each in value)
    return 0
