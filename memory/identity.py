"""What makes a named thing the same thing again: names and claims brought to one form, and the identities of them.

Knowledge belongs to its holder: the user, or the agent that learnt it where there is no user. What two holders know of
one name stays apart, as nobody's knowledge may change another's; so does what a holder knows in two channels, until it
is resolved (`services.entities`) across the channels that a read looks in.
"""

import hashlib
import re
import unicodedata

from memory.owner import Owner
from memory.unseen import UNSEEN

POSSESSIVE = re.compile(r"(?<=\w)['’]s$")
ONE_SIGN = str.maketrans(
    dict.fromkeys("‘’‚‛ʼ", "'")
    | dict.fromkeys("“”„‟", '"')
    | dict.fromkeys("\u2010\u2011\u2212", "-")
    | dict.fromkeys(map(chr, UNSEEN), "")
)
"""What is written in several ways, or not seen at all."""
PUNCTUATION = re.compile("[.,;:!?…\"'«»‹›()\\[\\]¡¿。、「」『』।؟،؛۔]+")


def holder(owner: Owner) -> str:
    """Whose knowledge it is: `u:<user>`, or `a:<agent>` where there is no user; `a:` is the account's own."""
    return f"u:{owner.user_id}" if owner.user_id else f"a:{owner.agent_id}"


def normalize_name(name: str) -> str:
    """A name without what writers differ in: width, case, spaces, quotation marks around it, a possessive 's.

    >>> normalize_name('  “Ana’s” ')
    'ana'
    """
    folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    bare = folded.strip("\"'“”„‘’«»()[]{},;:!?")
    return POSSESSIVE.sub("", bare).rstrip(".") or folded


def normalize_claim(claim: str) -> str:
    """A claim without what writers differ in: width, case, spaces, quotation marks, the punctuation of sentences.

    All else says something: signs (C++, C#, -5, $5, x < 5), vowel and tone marks, what stands inside of a word or
    number. The same again is the same.

    >>> normalize_claim('“Ana’s  rate” is -0.5, or $5!')
    "ana's rate is -0.5 or $5"
    """
    folded = " ".join(fold(claim).split())
    return " ".join(PUNCTUATION.sub(keep_inner, folded).split()) or folded


def fold(text: str) -> str:
    """NFKC without case, each sign written in one way. Some letters fold, or decompose, to what folds again."""
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.translate(ONE_SIGN).casefold())


def keep_inner(run: re.Match[str]) -> str:
    """Punctuation between two characters that are neither, and the point that begins a number or name (.5, .NET)."""
    start, end = run.span()
    before, after = run.string[max(start - 1, 0) : start].strip(), run.string[end : end + 1].strip()
    return run.group() if after and (before or run.group() == ".") else " "


def entity_identity(owner: Owner, *, type: str, name: str) -> str:  # noqa: A002 - the documented name of the field
    """What a name stands for once: holder, channel, type and normalized name, as 64 hexadecimal digits."""
    return digest_of(holder(owner), owner.channel, type, normalize_name(name))


def name_digest(owner: Owner, name: str) -> str:
    """What a name is looked up by, of whatever type and in whatever channel: holder and normalized name."""
    return digest_of(holder(owner), normalize_name(name))


def fact_identity(owner: Owner, *, claim: str, valid_from: str = "", valid_to: str = "") -> str:
    """What makes an open fact the same again: holder, channel, normalized claim, and the times if it has any."""
    return digest_of(holder(owner), owner.channel, normalize_claim(claim), valid_from, valid_to)


def digest_of(*parts: str) -> str:
    """SHA-256 of the parts, each with its length before it: no two lists of parts are one text."""
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()
