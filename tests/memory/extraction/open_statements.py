"""Claims in the speaker's own words, worth keeping or not."""

from dataclasses import replace

from memory.extraction.knowledge import Chunk
from memory.extraction.rules import read_claims_to_judge
from memory.extraction.rules.open_claims import OPEN
from memory.extraction.rules.statements import Statement
from memory.models.facts import Certainty
from tests.memory.extraction.spoken import turn


def own_words(*claims: str, sentence: str = "") -> list[Statement]:
    """Return claims in the speaker's own words, parts of a sentence."""
    one = Statement(turn=0, subject="The user", attribute=OPEN, value="", claim="", certainty=Certainty.EXPLICIT)
    return [replace(one, claim=claim, sentence=sentence or claim) for claim in claims]


def open_claims(*texts: str, speaker: str = "") -> list[str]:
    chunk = Chunk(turns=[turn(text, speaker=speaker, index=index) for index, text in enumerate(texts)])
    return [claim.claim for claim in read_claims_to_judge(chunk) if claim.attribute == OPEN]
