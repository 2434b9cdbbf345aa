"""Whole numbers in words, as people say ages: "seven", "eighty-one"."""

_ONES = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {word: number for number, word in enumerate(_ONES, start=1)}
_NUMBERS |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
NUMBER = rf"(?i:\d{{1,3}}|(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES[:9])}))?|{'|'.join(reversed(_ONES))})"
"""Pattern of a number from 1 to 999 in digits, or up to 99 in words."""


def read_number(text: str) -> int:
    """Return the number that a match of `NUMBER` stands for."""
    if text.isdecimal():
        return int(text)
    return sum(_NUMBERS[word] for word in text.lower().replace("-", " ").split())
