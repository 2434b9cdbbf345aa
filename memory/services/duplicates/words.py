"""Words that may differ where two texts say the same: what `duplicate_texts` goes by. All in small letters.

The lists err on one side: a word that is missing keeps two alike texts apart, one that is here without right makes one
of two different ones.
"""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILLERS = words("a an the is are be am that which it its also just really very quite please so then")
"""What a writer puts in or leaves out, and says the same; each for any other as well."""

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
"""What is left of a contraction, or was written without its apostrophe."""

TIMES = {
    ("every", "hour"): "hourly",
    ("every", "day"): "daily",
    ("every", "night"): "nightly",
    ("every", "week"): "weekly",
    ("every", "month"): "monthly",
    ("every", "year"): "yearly",
}
"""Two words, and one that says the same."""

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
"""What each word may be exchanged for: whoever exchanges it in any sentence at all says the same."""

ENGLISH = words("the is and with this that")
"""One of them is in most English texts, none in those of languages where an -s tells of another person."""

DETERMINERS = words("a an the this that its one my your his her our their")
"""Before a noun that is one or many: the server is not the servers."""

OWN_PLURALS = words(
    "arm brain custom day good hour manner mean minute month new paper second short spirit time water week year"
)
"""With an -s they say something else, or how much."""
