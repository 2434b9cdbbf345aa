"""Masking of secrets in what clients write, for accounts that ask for it (`Account.secrets`).

Every text of a body is masked before it is checked, whatever it becomes: a memory, a value in Redis, the input of a
tool. Ids and vectors stay, since a masked id would be another one.
"""

import re
from collections.abc import Mapping
from typing import Any

from memory.redaction import MASK, redact, redact_named
from memory_project.measures import MASKED_SECRETS

UNMASKED_NAME = re.compile(r"(?:^|_)(?:ids?|key|keys|cursor|embedding|model|etag|sha256|hash)$")
"""Members whose values name something: ids, keys of values, names of models, digests."""


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
        return {name: each if UNMASKED_NAME.search(name) else mask_member(name, each) for name, each in value.items()}
    if isinstance(value, list):
        # vectors are long, and hold no texts
        return value if value and isinstance(value[0], float) else [mask_value(each) for each in value]
    return value


def mask_member(name: str, value: Any) -> Any:
    return redact_named(name, value) if isinstance(value, str) else mask_value(value)


def count_masks(value: Any) -> int:
    """Return how many masked places the texts of a JSON value have."""
    if isinstance(value, str):
        return value.count(MASK)
    if isinstance(value, Mapping):
        return sum(count_masks(each) for each in value.values())
    if isinstance(value, list):
        return 0 if value and isinstance(value[0], float) else sum(count_masks(each) for each in value)
    return 0
