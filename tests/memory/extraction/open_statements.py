"""Claims in the speaker's own words, worth keeping or not."""

from memory.extraction.knowledge import Chunk
from memory.extraction.rules import read_claims_to_judge
from memory.extraction.rules.open_claims import OPEN
from tests.memory.extraction.spoken import turn


def open_claims(*texts: str, speaker: str = "") -> list[str]:
    chunk = Chunk(turns=[turn(text, speaker=speaker, index=index) for index, text in enumerate(texts)])
    return [claim.claim for claim in read_claims_to_judge(chunk) if claim.attribute == OPEN]
