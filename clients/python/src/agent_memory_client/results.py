"""Answers: objects with the fields of an answer as attributes, pages of them, and raw responses."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from types import UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import httpx2

R_co = TypeVar("R_co", bound="Result", covariant=True)
T_co = TypeVar("T_co", covariant=True)
Save = Callable[["Result", dict[str, Any]], Any]
RESOLVED: dict[type["Result"], dict[str, Any]] = {}


class Result:
    """An object of an answer. Fields are attributes, also those that are newer than this client.

    `result["name"]` is the same for names that are no identifiers, `to_dict()` the JSON as it came. An object that the
    service can change knows its `etag`: set attributes and call `save()`. A copy, or a pickled one, cannot be saved.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(_values=values, _changes={}, _etag="", _save=None, _read={})

    @property
    def etag(self) -> str:
        """The version that was read, as `If-Match` takes it. Empty for objects inside other answers."""
        return str(self.__dict__["_etag"])

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name.startswith("__") or name not in values:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}. It has: {', '.join(values)}.")
        return self[name]

    def __getitem__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        # kept, so that what is changed inside a field is seen again
        made = self.__dict__.setdefault("_made", {})
        if name not in made:
            made[name] = convert(values[name], field_types(type(self)).get(name))
        return made[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__["_values"]:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}.")
        self.__dict__["_changes"][name] = value
        self.__dict__["_values"][name] = value
        self.__dict__.get("_made", {}).pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__["_values"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["_values"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    def __getstate__(self) -> dict[str, Any]:
        # what saves it holds connections
        return {**self.__dict__, "_save": None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__dict__['_values']!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        values: dict[str, Any] = self.__dict__["_values"]
        return values

    def save(self) -> Any:
        """Write the attributes that were set or changed inside, if nobody else changed the object since it was read.

        Objects of an `AsyncClient` return an awaitable. Raises PreconditionFailedError if somebody was first.
        """
        if self.__dict__["_save"] is None:
            raise TypeError(f"{type(self).__name__} cannot be saved: read it with a get_… method of the client first.")
        return self.__dict__["_save"](self, self._find_changes())

    def _find_changes(self) -> dict[str, Any]:
        """Return the present values of what was set, and of lists and objects that are not as they were read."""
        values = {**self.to_dict(), **{name: to_plain(each) for name, each in self.__dict__.get("_made", {}).items()}}
        inside = [name for name, read in self.__dict__["_read"].items() if values[name] != read]
        return {name: values[name] for name in (*self.__dict__["_changes"], *inside)}

    def _bind(self, etag: str, save: Save) -> None:
        self.__dict__.update(_etag=etag, _save=save)
        self._note_read()

    def _replace(self, saved: "Result") -> None:
        self.__dict__.update(_values={**self.to_dict(), **saved.to_dict()}, _changes={}, _made={}, _etag=saved.etag)
        self._note_read()

    def _note_read(self) -> None:
        inner = {name: each for name, each in self.to_dict().items() if isinstance(each, dict | list)}
        self.__dict__["_read"] = deepcopy(inner)


class Page(Generic[R_co]):
    """One page of a list. `next` and `previous` are cursors, empty at the ends."""

    def __init__(self, values: dict[str, Any], item: type[R_co]) -> None:
        self.results: list[R_co] = [item(each) for each in values["results"]]
        self.next = read_cursor(values.get("next"))
        self.previous = read_cursor(values.get("previous"))


class RawResponse(Generic[T_co]):
    """A response with status and headers; `parse()` returns what the method itself would have returned."""

    def __init__(self, response: httpx2.Response, parse: Callable[[httpx2.Response], T_co]) -> None:
        self.http_response = response
        self.status_code = response.status_code
        self.headers = response.headers
        self.request_id: str = response.headers.get("X-Request-Id", "")
        self.content = response.content
        self._parse = parse

    def parse(self) -> T_co:
        """Return the result. Raises the exception of the status if it is no success."""
        return self._parse(self.http_response)


def read_cursor(link: str | None) -> str:
    """Return the cursor of a link to a page."""
    return httpx2.URL(link).params.get("cursor", "") if link else ""


def field_types(cls: type[Result]) -> dict[str, Any]:
    """Return the declared types of the fields of a class, which are resolved once."""
    if cls not in RESOLVED:
        RESOLVED[cls] = get_type_hints(cls)
    return RESOLVED[cls]


def convert(value: Any, wanted: Any) -> Any:
    """Return JSON as the declared type: objects become results; everything else, and undeclared fields, stays JSON."""
    if get_origin(wanted) is UnionType:
        wanted = next((each for each in get_args(wanted) if is_result(each) or get_origin(each) is list), None)
    if isinstance(value, list) and get_origin(wanted) is list:
        return [convert(each, get_args(wanted)[0]) for each in value]
    return wanted(value) if isinstance(value, dict) and is_result(wanted) else value


def to_plain(value: Any) -> Any:
    """Return JSON for what `convert` made of it."""
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    return value.to_dict() if isinstance(value, Result) else value


def is_result(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, Result)
