"""Normal forms of names and claims, and the identity digests of entities and facts.

Knowledge belongs to its holder: the user, or the agent that learned it if there is no user. Two holders' knowledge of
the same name stays separate, because nobody's knowledge may change another's. A holder's knowledge in two channels is
separate too, until it is resolved (`services.entities`) across the channels that a read looks in.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from memory.invisible_characters import INVISIBLE_CODE_POINTS
from memory.owner import Owner

POSSESSIVE = re.compile(r"(?<=\w)['’]s$")
CHARACTER_FOLDS = str.maketrans(
    dict.fromkeys("‘’‚‛ʼ", "'")
    | dict.fromkeys("“”„‟", '"')
    | dict.fromkeys("\u2010\u2011\u2212", "-")
    | dict.fromkeys(map(chr, INVISIBLE_CODE_POINTS), "")
)
"""Characters with several spellings, and invisible characters."""
PUNCTUATION = re.compile("[.,;:!?…\"'«»‹›()\\[\\]¡¿。、「」『』।؟،؛۔]+")


def holder_key(owner: Owner) -> str:
    """Return the holder of knowledge: `u:<user>`, or `a:<agent>` without a user; `a:` is the account itself."""
    return f"u:{owner.user_id}" if owner.user_id else f"a:{owner.agent_id}"


def normalize_name(name: str) -> str:
    """Return a name without differences of width, case, spaces, surrounding quotation marks and a possessive 's.

    >>> normalize_name('  “Ana’s” ')
    'ana'
    """
    folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    bare = folded.strip("\"'“”„‘’«»()[]{},;:!?")
    return POSSESSIVE.sub("", bare).rstrip(".") or folded


def normalize_claim(claim: str) -> str:
    """Return a claim without differences of width, case, spaces, quotation marks and the punctuation of sentences.

    Everything else is significant: signs (C++, C#, -5, $5, x < 5), vowel and tone marks, punctuation inside a word or
    number. The function is idempotent.

    >>> normalize_claim('“Ana’s  rate” is -0.5, or $5!')
    "ana's rate is -0.5 or $5"
    """
    folded = " ".join(fold_characters(claim).split())
    return " ".join(PUNCTUATION.sub(keep_inner_punctuation, folded).split()) or folded


def fold_characters(text: str) -> str:
    """Return the text in NFKC without case, with one spelling for each sign.

    Case is folded twice, because some letters fold or decompose into characters that fold again.
    """
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.translate(CHARACTER_FOLDS).casefold())


def keep_inner_punctuation(run: re.Match[str]) -> str:
    """Keep punctuation between two non-space characters, and the point that begins a number or name (.5, .NET)."""
    start, end = run.span()
    before, after = run.string[max(start - 1, 0) : start].strip(), run.string[end : end + 1].strip()
    return run.group() if after and (before or run.group() == ".") else " "


def entity_identity(owner: Owner, *, type: str, name: str) -> str:  # noqa: A002 - the documented name of the field
    """Return the digest of an entity: holder, channel, type and normalized name, as 64 hexadecimal digits."""
    return digest_parts(holder_key(owner), owner.channel, type, normalize_name(name))


def name_digest(owner: Owner, name: str) -> str:
    """Return the digest by which a name is looked up in all types and channels: holder and normalized name."""
    return digest_parts(holder_key(owner), normalize_name(name))


def name_digests(owners: Iterable[Owner], names: Iterable[str]) -> set[str]:
    """Return the digests of all names for all owners, as `name_digest` makes them."""
    holders, normalized = {holder_key(owner) for owner in owners}, {normalize_name(name) for name in names}
    return {digest_parts(holder, name) for holder in holders for name in normalized}


def fact_identity(owner: Owner, *, claim: str, valid_from: str = "", valid_to: str = "") -> str:
    """Return the digest of an open fact: holder, channel, normalized claim, and its times if it has any."""
    return digest_parts(holder_key(owner), owner.channel, normalize_claim(claim), valid_from, valid_to)


def digest_parts(*parts: str) -> str:
    """Return the SHA-256 of the parts, each preceded by its length: different lists never hash the same input."""
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()
