"""Addresses with the number of a house or flat, and whether two are of different homes."""

import re

from memory.dates import WEEKDAYS
from memory.extraction.rules.words import CITIES, COUNTRIES

_FLAT = "Flat|Apartment|Apt|Unit|Suite|Studio"
NUMBERED = rf"(?= (?:\d|(?:{_FLAT}) ))"
"""The words before an address."""
_WORDS = r"[A-Z][\w'-]*(?: (?:(?:of|on|the|upon) )?[A-Z\d][\w'-]*){0,4}"
_NO_PART = "|".join((*map(str.title, WEEKDAYS), "I"))
ADDRESS = (
    r"(?:(?<=\bat )|(?<=\bto )|(?<=\bin )|(?<=\baddress is )|(?<=\baddress is now )|(?<=\baddress was )|(?<=ddress: ))"
    rf"(?P<place>(?:{_FLAT}) \w{{1,5}}|\d{{1,5}}[A-Za-z]?(?:[-/]\d{{1,4}})? {_WORDS}|(?<=address is ){_WORDS})"
    rf"(?P<region>(?:, (?!(?:{_NO_PART})\b)(?:(?:\d{{1,5}}[A-Za-z]? )?{_WORDS}|\d{{5}})){{1,6}})"
)
"""An address of several parts: `place` is the first, and `region` all others with their commas."""
_STREET = re.compile(r"\d+[a-z]?(?:[-/]\d+)? [a-z][\w' -]+")
_CITIES = frozenset(city.casefold() for city in CITIES)


def has_street(home: str) -> bool:
    """Return True for the address of a home, and not only a town."""
    return _STREET.search(home.lower()) is not None


def are_other_addresses(one: str, other: str) -> bool:
    """Return True for two streets or two cities: "14 Cardigan Lane, Leeds" is in Leeds, and may be in Headingley."""
    streets = [match[0] for match in map(_STREET.search, (one, other)) if match]
    if len(streets) == 2:
        return streets[0] != streets[1]
    towns = [{part for part in home.split(", ") if part in _CITIES} for home in (one, other)]
    return all(towns) and towns[0].isdisjoint(towns[1])


def are_other_places(new: str, old: str, *, is_move: bool) -> bool:
    """Return True if two homes are surely in different places: "a flat in Leeds", "York".

    A village near Leeds may be any of them, unless somebody moves.
    """
    places = [_place_of(home, is_near=is_move) for home in (new, old)]
    ours, theirs = (set(re.findall(r"\w+", place)) for place in places)
    is_country = [place in COUNTRIES for place in places]
    return all(places) and not (ours <= theirs or theirs <= ours) and is_country[0] == is_country[1]


def _place_of(home: str, *, is_near: bool) -> str:
    """Return the name of the place of a home; empty if it has none."""
    match = re.match(r"(?:the )?(?=[A-Z])|(?:an?|the|their) [^,]*? (?P<where>in|at|near|outside|by) (?=[A-Z])", home)
    return home[match.end() :] if match and (is_near or match["where"] in (None, "in", "at")) else ""
