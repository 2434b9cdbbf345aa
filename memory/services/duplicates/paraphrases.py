"""Comparing English texts that say the same in other words, where their vectors are as similar as merging requires.

Vectors do not see everything. So two such texts stay apart if a number, a name, a quotation, a negation, a time, a
tense, a person, an estimate or one of a pair of opposites differs, and if one of them only adds something. What they
share must come in the same order, or with its beginning moved to its end (*On Fridays the office closes*, *The team is
led by Clara*), since *Ana manages Ben* and *Ben manages Ana* have similar vectors. Words may be exchanged for others
only where they are at least a fifth of each text, because a vector of a long text hardly changes with one word.

In other languages, whose negations are not known here, only `texts.differing_words` decides.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence

from memory.extraction.grounding import STEM_LETTERS
from memory.services.duplicates.texts import (
    FILLERS,
    MAX_COMPARED_CHARACTERS,
    SYNONYMS,
    ParsedText,
    parse_text,
    parse_words,
)

ENGLISH_WORDS = parse_words(
    "the is and with this that from of likes prefers works lives wants uses enjoys loves has than they their she"
    " does not"
)
"""Words of which each text must have one to count as English."""
WEAK_ENGLISH_WORDS = parse_words("a an at by for has in moved on to")
"""Words of which two are as good as one of the others."""
LIGHT_WORDS = parse_words(
    "has have do does of to in on at by for with from as into onto who whom there we because while upon per via"
)
"""Words without a content of their own. They may differ where others do as well."""
NEGATIONS = parse_words(
    "not no never none nothing nobody nowhere neither nor without hardly barely scarcely except unless"
    " avoid avoids avoided stop stops stopped refuse refuses refused fail fails failed lack lacks lacked"
    # of languages that have some of the English words above
    " nicht kein keine nie niet geen ikke inte ej nie nunca jamais pas ne não non mai nada sin ohne"
)
TIME_WORDS = parse_words(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays"
    " sundays weekday weekdays weekend weekends january february march april may june july august september october"
    " november december spring summer autumn fall winter today tomorrow yesterday tonight now currently soon later"
    " recently formerly previously already yet still again once twice before after until till since during ago next"
    " last past future first early earlier late morning noon midday afternoon evening night midnight hourly daily"
    " nightly weekly monthly quarterly yearly annually always usually often sometimes rarely seldom every each second"
    " seconds minute minutes hour hours day days week weeks month months quarter year years dawn dusk"
)
FIXED_WORDS = parse_words(
    # tense and mood
    "was were been had did used will would shall should could can might must need plan plans planned going want wants"
    # person
    " i you he she it they me him them my your his her its our their us himself herself mother father sister brother"
    " son daughter wife husband"
    " aunt uncle niece nephew cousin grandmother grandfather grandson granddaughter parents parent child children kids"
    " friend boss colleague neighbour single married engaged divorced widowed separated"
    # estimate and amount
    " nearly almost about roughly only mostly partly maybe perhaps probably possibly apparently thinks think thought"
    " knows know believes believe claims claim says hopes hope doubts doubt all some many few most several"
    " both half million billion thousand hundred percent"
    # units
    " litre litres liter liters gallon gallons mile miles kilometre kilometres kilometer kilometers km metre metres"
    " meter meters foot feet kilo kilos kilogram kilograms pound pounds euro euros dollar dollars celsius fahrenheit"
)
"""Words that must be the same in both texts."""
OPPOSITES = tuple(
    tuple(parse_words(side) for side in line.split("|"))
    for line in (
        "to into|from",
        "in into inside|out outside",
        "on|off",
        "over above up|under below down",
        "for with|against",
        "inward inwards|outward outwards",
        "like likes love loves enjoy enjoys prefers|hate hates dislike dislikes detests",
        "buy buys bought purchases purchased|sell sells sold",
        "borrow borrows borrowed|lend lends lent",
        "teach teaches taught|learn learns learned studies",
        "admit admits admitted|deny denies denied",
        "accept accepts accepted approves approved agrees agreed|reject rejects rejected declines declined objects",
        "allow allows allowed permits|forbid forbids forbade prohibits blocks",
        "open opens opened|close closes closed shuts",
        "start starts started begin begins began|end ends ended finishes finished",
        "enable enables enabled|disable disables disabled",
        "add adds added|remove removes removed deletes deleted",
        "win wins won|lose loses lost",
        "more most|less least fewer",
        "ask asks asked request requests requested|get gets got receives received",
        "due owed unpaid overdue|paid settled",
        "behind back|front ahead",
        "upstream|downstream",
        "buys bought|rents rented hires hired",
        "arrive arrives arrived joins joined|leave leaves left resigned",
        "give gives gave sends sent pays|get gets got receives received takes took",
        "hire hires hired|fire fires fired",
        "push pushes|pull pulls",
        "increase increases increased raises raised|decrease decreases decreased lowers lowered reduces reduced",
        "pass passes passed succeeds succeeded works|breaks broke crashed",
        "support supports supported|oppose opposes opposed",
        "big bigger biggest large larger largest|small smaller smallest little",
        "high higher highest tall taller tallest long longer longest|low lower lowest short shorter shortest",
        "new newer newest young younger youngest|old older oldest",
        "fast faster fastest|slow slower slowest",
        "good better best happy happier|bad worse worst sad sadder",
        "rich richer strong stronger cheap cheaper|poor poorer weak weaker expensive dear",
        "hot hotter warm warmer full light lighter public|cold colder cool cooler empty dark darker heavy private",
        "safe safer easy easier|dangerous risky difficult hard harder",
        "front top start|rear back bottom end",
        "true right correct valid healthy awake alive|false wrong incorrect broken sick ill asleep dead",
        "present same similar|absent different other another",
        "left|right",
        "north|south",
        "east|west",
    )
)
"""Two texts stay apart if only one has a word of the first side, and only the other one of the second."""
NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis", "de", "anti", "ex", "pre", "post")
NEGATING_SUFFIXES = ("less", "free")

ENDINGS = parse_words("ing ion ted ded ies ers nts ses ate ity ble ful ous ive ent ant")
"""Ends that words of all kinds have in common."""
ROMAN = re.compile(r"[ivxlc]+")

MIN_EXCHANGED_SHARE = 1 / 5
"""Share of the words of each text that exchanged words must have."""
MIN_SHARED_SHARE = 1 / 2


def paraphrase_words(one: str, other: str) -> frozenset[str] | None:
    """Return the words that only one of two paraphrases has, or None for texts that are not paraphrases.

    They are paraphrases only if their vectors are similar and none of these words is a name.
    """
    if max(len(one), len(other)) > MAX_COMPARED_CHARACTERS:
        return None
    first, second = parse_text(one), parse_text(other)
    if not (are_comparable(first, second) and fixed_parts(first) == fixed_parts(second)):
        return None
    ours, theirs = content_words(first), content_words(second)
    shared, exchanged = set(ours) & set(theirs), (set(ours) - set(theirs), set(theirs) - set(ours))
    different = frozenset(set(first.words) ^ set(second.words)) - FILLERS
    if (different - LIGHT_WORDS) & (first.capitals | second.capitals) or changes_meaning(first, second):
        return None
    if not any(exchanged):
        return different if is_reordered(first, second) else None
    if has_enough_exchanged(ours, theirs, shared) and keeps_order(first, second, shared):
        return different
    return None


def are_comparable(one: ParsedText, other: ParsedText) -> bool:
    """Return True for two English texts, both questions or both not, with capitals that tell names from words."""
    return (
        is_english(one)
        and is_english(other)
        and one.is_question == other.is_question
        and one.has_capitals
        and other.has_capitals
    )


def is_english(text: ParsedText) -> bool:
    return not ENGLISH_WORDS.isdisjoint(text.words) or len(WEAK_ENGLISH_WORDS & set(text.words)) > 1


def fixed_parts(text: ParsedText) -> tuple[object, ...]:
    """Return what paraphrases have in common: numbers, codes, signs, quotations, times, persons, estimates, moods."""
    counted = Counter(word for word in text.words if not word.isalpha())
    quoted = text.fixed - text.capitals - counted.keys()
    words = set(text.words)
    return counted, quoted, text.special_numbers, words & TIME_WORDS, words & FIXED_WORDS, words & NEGATIONS


def content_words(text: ParsedText) -> list[str]:
    """Return the stems of the words with a content, in order. Words that can replace each other have one stem."""
    names = text.names
    kept = (word for word in text.words if word in names or word not in FILLERS | LIGHT_WORDS)
    return [stem_of(word) for word in kept]


def stem_of(word: str) -> str:
    known = SYNONYMS.get(word, word)
    return known if known != word or not word.isalpha() else word[: max(STEM_LETTERS, len(word) - 3)]


def changes_meaning(one: ParsedText, other: ParsedText) -> bool:
    """Return True if names, a tense, a negating prefix or one of a pair of opposites differs."""
    if not (one.names <= other.capitals and other.names <= one.capitals):
        return True
    ours, theirs = set(one.words) - set(other.words), set(other.words) - set(one.words)
    small = FILLERS | LIGHT_WORDS
    if any(contrasts(here, there) for here in ours - small for there in theirs - small):
        return True
    pairs = [*OPPOSITES, *((after, before) for before, after in OPPOSITES)]
    return any(not before.isdisjoint(ours) and not after.isdisjoint(theirs) for before, after in pairs)


def contrasts(one: str, other: str) -> bool:
    """Return True if one word negates or limits the other, has another tense, or is its counterpart by its form.

    Counterparts are short words, Roman numerals, and compounds with a common end: ii and iii, backend and frontend.
    """
    shorter, longer = sorted((one, other), key=len)
    has_common_end = longer.endswith(shorter) or (shorter[-3:] == longer[-3:] and shorter[-3:] not in ENDINGS)
    is_counterpart = len(longer) < 3 or all(ROMAN.fullmatch(word) for word in (one, other)) or has_common_end
    return is_counterpart or is_negated(shorter, longer) or differ_in_tense(one, other)


def is_negated(shorter: str, longer: str) -> bool:
    """Return True if one word is the other with a prefix or suffix that negates or limits it."""
    if any(longer.startswith(prefix) and longer[len(prefix) :][:3] == shorter[:3] for prefix in NEGATING_PREFIXES):
        return True
    return longer.endswith(NEGATING_SUFFIXES) and longer[:3] == shorter[:3]


def differ_in_tense(one: str, other: str) -> bool:
    """Return True if both are forms of a word, and only one ends in -ed."""
    return one[:3] == other[:3] and one.endswith("ed") != other.endswith("ed")


def is_reordered(one: ParsedText, other: ParsedText) -> bool:
    """Return True if the words are the same, and the end of one text is the beginning of the other."""
    ours, theirs = ([stem_of(word) for word in each.words if word not in FILLERS] for each in (one, other))
    return ours != theirs and is_rotation(ours, theirs)


def is_rotation(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and any(
        [*one[place:], *one[:place]] == list(other) for place in range(max(1, len(one)))
    )


def has_enough_exchanged(ours: Sequence[str], theirs: Sequence[str], shared: Collection[str]) -> bool:
    """Return True if both texts exchange enough words for the vectors to see it, and share enough of them."""
    for words in (ours, theirs):
        common = sum(word in shared for word in words)
        if len(words) - common < MIN_EXCHANGED_SHARE * len(words) or common < max(2, MIN_SHARED_SHARE * len(words)):
            return False
    return True


def keeps_order(one: ParsedText, other: ParsedText, shared: Collection[str]) -> bool:
    """Return True if both texts have the shared words in one order, apart from times; else if only one is passive.

    Then its beginning is the end of the other text, since it begins with what the other text is about.
    """
    orders = []
    for text in (one, other):
        kept = [word for word in text.words if word not in TIME_WORDS]
        kept = [word for word in kept if word in text.names or word not in FILLERS | LIGHT_WORDS]
        orders.append([stem_of(word) for word in kept if stem_of(word) in shared])
    if is_passive(one) == is_passive(other):
        return orders[0] == orders[1]
    return orders[0] != orders[1] and is_rotation(*orders)


def is_passive(text: ParsedText) -> bool:
    return "by" in text.words
