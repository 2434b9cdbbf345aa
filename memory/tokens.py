"""Estimate of the tokens that a language model would count in a text, without its tokenizer."""

import re

BYTES_PER_TOKEN = 4

# A tokenizer never joins a word to the punctuation after it, so each is at least one token.
_PIECE = re.compile(r"\w+|[^\w\s]+")


def estimate_tokens(text: str) -> int:
    """Return UTF-8 bytes / 4 rounded up, or the number of words and punctuation marks, whichever is more.

    Byte-level BPE vocabularies average about four bytes of English per token. Other scripts take more bytes per
    character and more tokens alike. The number of words and marks corrects texts of short words, digits and symbols
    (code, tables), where four bytes per token are too few tokens.

    The estimate never exceeds the bytes of a text, nor the sum of the estimates of its parts: if all parts together
    keep a budget, the whole keeps it.
    """
    # surrogatepass: the edges refuse lone surrogates, and one in between must not break an estimate
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    pieces = sum(1 for _ in _PIECE.finditer(text))
    return max(-(-size_bytes // BYTES_PER_TOKEN), pieces)
