"""Words that equivalent texts may differ in, as `texts` compares them. All in lower case.

A missing word keeps two equivalent texts apart; a wrong one merges two different ones.
"""


def parse_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILLERS = parse_words("a an the is are be am that which it its also just really very quite please so then")
"""Words that may be added or left out without changing what a text says; each can replace any other."""

UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")
ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

NUMBERS = (
    {word: str(number) for number, word in enumerate((*UNITS, *TEENS))}
    | {word: str(10 * ten) for ten, word in enumerate(TENS, 2)}
    | {f"{word}-{unit}": str(10 * ten + of) for ten, word in enumerate(TENS, 2) for of, unit in enumerate(UNITS[:10])}
    | dict(zip(ORDINAL_WORDS, ORDINALS, strict=True))
)
"""English numbers in words, as digits: `three` and `3` are one number."""

UNCONTRACTED = {
    **dict.fromkeys(("cannot", "cant"), ("can", "not")),
    **{f"{verb}nt": (verb, "not") for verb in ("do", "does", "did", "is", "are", "was", "were", "has", "have", "had")},
    **{f"{verb}nt": (verb, "not") for verb in ("would", "could", "should", "must", "need")},
    "wont": ("will", "not"),
    "wo": ("will",),
    "ca": ("can",),
    "sha": ("shall",),
}
"""Rests of contractions, and contractions written without their apostrophe."""

TIMES = {
    ("every", "hour"): "hourly",
    ("every", "day"): "daily",
    ("every", "night"): "nightly",
    ("every", "week"): "weekly",
    ("every", "month"): "monthly",
    ("every", "year"): "yearly",
}
"""Two words, and one word that says the same."""

INTERCHANGEABLE = (
    # what is done, in each form
    "begin start",
    "begins starts",
    "began started",
    "buy purchase",
    "buys purchases",
    "bought purchased",
    "choose select",
    "chooses selects",
    "chose selected",
    "help assist",
    "helps assists",
    "helped assisted",
    "live reside",
    "lives resides",
    "lived resided",
    "need require",
    "needs requires",
    "needed required",
    # what there is
    "apartment flat",
    "bicycle bike",
    "car automobile",
    "cars automobiles",
    "configuration config",
    "documentation docs",
    "film movie",
    "films movies",
    "information info",
    "lawyer attorney",
    "mother mom mum",
    "father dad",
    "phone telephone",
    "photo photograph",
    "photos photographs",
    "plane airplane aeroplane",
    "refrigerator fridge",
    "repository repo",
    "repositories repos",
    "sofa couch",
    "television tv",
    "truck lorry",
    # how it is
    "beneath underneath",
    "big large",
    "bigger larger",
    "biggest largest",
    "almost nearly",
    "annually yearly",
    "approximately roughly",
    "entire whole",
    "ill sick",
    "often frequently",
    "ok okay",
    "perhaps maybe",
    "quickly rapidly",
    # how it is spelt
    "behaviour behavior",
    "cancelled canceled",
    "centre center",
    "colour color",
    "favourite favorite",
    "grey gray",
    "neighbour neighbor",
    "organisation organization",
)
SYNONYMS = {word: line for line in INTERCHANGEABLE for word in line.split()}
"""The line of synonyms of each word: they can replace each other in every sentence."""

ENGLISH = parse_words("the is and with this that")
"""Most English texts contain one of these words; no text does in a language where -s marks another person."""

DETERMINERS = parse_words("a an the this that its one my your his her our their")
"""Words that precede a noun in singular or plural: the server is not the servers."""

OWN_PLURALS = parse_words(
    "arm brain custom day good hour manner mean minute month new paper second short spirit time water week year"
)
"""Words that mean something else, or another amount, with an -s."""
