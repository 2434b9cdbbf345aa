"""Masking of secrets in what clients write, for accounts that ask for it (`Account.secrets`).

Every text of a body is masked before it is checked, whatever it becomes: a memory, a value in Redis, the input of a
tool. So are the records of imported files, and what callers in Python store or change: services that write take it as
arguments of few names, and are marked `@masks_secrets`. Ids and vectors stay, since a masked id would be another one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from django.db import models

from memory.owner import Owner
from memory.redaction import MASK, SECRET_NAME, redact, redact_address, redact_named
from memory_project.measures import MASKED_SECRETS

UNMASKED_NAME = re.compile(
    r"(?:^|_)(?:ids?|key|keys|cursor|embedding|model|etag|sha256|hash|digest|identity|wording|continues|agents"
    r"|access_control)$"
)
"""Members whose values name something: ids, keys of values, agents, models, digests. `api_key` is none of them."""
ADDRESS_NAME = re.compile(r"(?:^|_)ur[il]$")
"""Members whose values are addresses, of which only passwords, tokens and signatures are masked."""

DERIVED_COLUMNS = frozenset({"identity", "content_hash", "wording", "uri"})
"""Columns of texts that identify a row."""
CONTENT_ARGUMENTS = frozenset(
    {
        *("draft", "drafts", "changes", "edit", "defaults", "preferences", "result"),
        *("data", "content", "value", "name", "description"),
    }
)
"""Arguments of services by which callers hand over what is stored."""
CLIENT_VECTOR = "own"
"""The argument or field with a vector that the client made of the text."""
MARK_POLICY, MASK_POLICY = "mark", "mask"
"""Values of `Account.secrets`."""
MIN_SECRET_CHARACTERS = 13
"""Length of the shortest card number. A shorter name of a member is no secret that a rule could know."""

P = ParamSpec("P")
T = TypeVar("T")


def masks_secrets(write: Callable[P, T]) -> Callable[P, T]:
    """Mask the CONTENT_ARGUMENTS of a service if its owner, the first argument, asks for it.

    A vector that the client made of a text that was masked is dropped: the memory is queued for embedding.
    """
    declared = signature(write)

    @wraps(write)
    def masked(*args: P.args, **kwargs: P.kwargs) -> T:
        owner = args[0] if args else kwargs.get("owner")
        if not isinstance(owner, Owner) or not owner.masks_secrets:
            return write(*args, **kwargs)
        call = declared.bind(*args, **kwargs)
        for name in CONTENT_ARGUMENTS & call.arguments.keys():
            value = mask_secrets(call.arguments[name])
            if value != call.arguments[name]:
                call.arguments[name] = value
                call.arguments |= {CLIENT_VECTOR: None} if CLIENT_VECTOR in call.arguments else {}
        return write(*call.args, **call.kwargs)

    return masked


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
        return mask_members(value)
    if isinstance(value, list | tuple):
        masked = (mask_value(each) for each in value)
        return tuple(masked) if isinstance(value, tuple) else list(masked)
    return mask_fields(value) if is_dataclass(value) and not isinstance(value, type) else value


def mask_fields(value: Any) -> Any:
    """Return a dataclass with its fields masked, and without the client's vector of a text that was."""
    given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
    masked = {name: mask_member(name, each) for name, each in given.items()}
    changes = {name: each for name, each in masked.items() if each is not given[name] and each != given[name]}
    if changes.keys() - {"metadata"} and given.get(CLIENT_VECTOR) is not None:
        changes[CLIENT_VECTOR] = None
    return replace(value, **changes) if changes else value


def mask_members(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a JSON object with its members masked. Names that are secrets become the mask, and are told apart."""
    masked: dict[Any, Any] = {}
    for name, each in value.items():
        base = shown = mask_name(name)
        while shown in masked and base != name:
            shown = f"{base} {len(masked) + 1}"
        masked[shown] = mask_member(str(name), each)
    return masked


def mask_name(name: Any) -> Any:
    """Return the name of a member, masked if it is a secret itself, as in a map of keys to their owners."""
    return redact(name) if isinstance(name, str) and len(name) >= MIN_SECRET_CHARACTERS else name


def mask_member(name: str, value: Any) -> Any:
    """Return the value of a member, masked unless it is the name of something."""
    names_something = UNMASKED_NAME.search(name) and not SECRET_NAME.search(name)
    if isinstance(value, str) and not names_something:
        return redact_address(value) if ADDRESS_NAME.search(name) else redact_named(name, value)
    is_name = names_something and (isinstance(value, str | list | tuple) or name == "access_control")
    return value if is_name else mask_value(value)


def count_masks(value: Any) -> int:
    """Return how many masked places the texts of a value have."""
    if isinstance(value, str):
        return value.count(MASK)
    if isinstance(value, Mapping):
        return sum(str(name).count(MASK) + count_masks(each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return sum(count_masks(each) for each in value)
    if is_dataclass(value):
        return sum(count_masks(getattr(value, each.name)) for each in fields(value))
    return 0


def mask_row(row: models.Model) -> None:
    """Mask the texts of a row before it is stored: its columns of texts and JSON, not those of names and ids."""
    for field in row._meta.concrete_fields:
        if isinstance(field, models.TextField | models.JSONField) and field.attname not in DERIVED_COLUMNS:
            value = getattr(row, field.attname)
            if value:
                setattr(row, field.attname, mask_secrets(value))
