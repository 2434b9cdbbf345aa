"""Regions and addresses: "Portland, Oregon", "9 High Street, Bath, BA1 2AB".

Commas end phrases, and what follows one is mostly something else ("I live in Porto, Ana lives in Lisbon"). So a clause
is read without what belongs to its place, and its claims get that back. Only countries and states are regions, after a
place that is none itself. An address begins with the number of a house or flat, or with the name of a house behind
"address is", and goes on with streets, towns and codes. What follows must be words that cannot belong to them.
"""

import re
from dataclasses import replace

from memory.extraction.rules.addresses import ADDRESS
from memory.extraction.rules.names import NAME
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.words import COUNTRIES, REGIONS

_REGION = "|".join(
    sorted((*COUNTRIES, *REGIONS, "USA", "UK", "United States", "United Kingdom"), key=len, reverse=True)
)
_REST = (
    r"(?P<rest>$|[.!;:]|,(?= )| (?=and (?:[a-z]|I\b)|(?:with|for|since|last|this|next|on|in|a|two|three|now|but|because"
    r"|from|near|as|at|where|when|until|yesterday)\b))"
)
_PLACE_IN_REGION = re.compile(
    rf"(?:(?<=\bin )|(?<=\bto )|(?<=\bfrom ))(?!(?:{_REGION}),)(?P<place>{NAME}), (?:the )?(?P<region>{_REGION})\b"
    rf"{_REST}"
)
_ADDRESS = re.compile(rf"{ADDRESS}{_REST}")


def set_regions_aside(sentence: str) -> tuple[str, dict[str, str]]:
    """Return the sentence without regions, and the places with them: {"Portland": "Portland, Oregon"}."""
    regions: dict[str, str] = {}

    def shorten(match: re.Match[str]) -> str:
        regions[match["place"]] = f"{match['place']}, {match['region'].removeprefix(', ')}"
        # a comma after the region closes it, and ends no phrase before a time
        is_closed = match["rest"] == "," and re.match(r" [a-z]", match.string[match.end() :]) is not None
        return match["place"] + ("" if is_closed else match["rest"])

    return _ADDRESS.sub(shorten, _PLACE_IN_REGION.sub(shorten, sentence)), regions


def with_regions(statement: Statement, regions: dict[str, str]) -> Statement:
    """Return the statement with the regions of the places in its claim."""
    for place, whole in regions.items():
        if statement.claim.count(place) == 1 and place in statement.value:
            claim, value = (text.replace(place, whole) for text in (statement.claim, statement.value))
            statement = replace(statement, claim=claim, value=value)
    return statement
