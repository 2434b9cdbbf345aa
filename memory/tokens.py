"""How many tokens a language model would count in a text, without its tokenizer."""

import re

BYTES_PER_TOKEN = 4

# A tokenizer never joins a word to the punctuation after it, so each is at least one token.
_PIECE = re.compile(r"\w+|[^\w\s]+")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: UTF-8 bytes / 4 rounded up, or words and punctuation, whichever is more.

    Byte-level BPE vocabularies average about four bytes of English a token. Bytes rather than characters,
    since other scripts take more tokens a character and more bytes a character alike. The count of pieces
    corrects texts of short words, digits and symbols (code, tables), where four bytes a token is too few.

    Never more than the bytes of the text, and never more for a whole than for its parts together, so that a
    budget kept part by part is kept by the whole.
    """
    # surrogatepass: a lone surrogate is refused at the edges, and must not break an estimate in between
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    pieces = sum(1 for _ in _PIECE.finditer(text))
    return max(-(-size_bytes // BYTES_PER_TOKEN), pieces)
