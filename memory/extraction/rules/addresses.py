"""Addresses with the number of a house or flat, and whether two are of different homes."""

import re

from memory.dates import WEEKDAYS
from memory.extraction.rules.words import CITIES

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
