"""Registers: kinds of conversations, told apart by what a recall sees. Each has weights of its own.

Different signals find the answer in talk between people, in chats with an assistant and in notes of one side, in short
and in long messages, and where the embedding model cannot read the script.
"""

from collections.abc import Sequence
from statistics import median

from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.self_query import ASSISTANT
from memory_project.embedded.models import BUNDLED_MODEL

TALK, CHAT, LONG_CHAT, NOTES, OTHER_SCRIPT = "talk", "chat", "long_chat", "notes", "other_script"
REGISTERS = (TALK, CHAT, LONG_CHAT, NOTES, OTHER_SCRIPT)
"""Talk between people with names; a user and an assistant, in short or in long messages; messages of one side alone;
questions in another script than the Latin one, which the bundled embedding model does not read."""

MIN_NAMED_SHARE = 0.25
"""Share of the turns that have a speaker's name in talk."""
MIN_LONG_TOKENS = 100
"""Median of the tokens of long messages."""
MIN_OTHER_SHARE = 0.5
"""Share of the letters of a question in another script."""
LAST_LATIN = "\u024f"
MORE_LATIN = ("\u1e00", "\u1eff")


def find_register(candidates: Sequence[Candidate], speakers: Sequence[str], query: Query) -> str:
    """Return the register of the turns among the candidates. `speakers` has the name of each one's, empty if unknown.

    One named speaker beside an assistant without a name is its user, however little the assistant says.
    """
    if is_unread(query):
        return OTHER_SCRIPT
    # lists, not generators: this runs on the path of every recall
    turns = [(each, speaker) for each, speaker in zip(candidates, speakers, strict=True) if each.index is not None]
    names = [speaker for _, speaker in turns if speaker]
    answers = [each for each, speaker in turns if each.role == ASSISTANT and not speaker]
    if answers and (len(answers) >= len(names) or len(set(names)) == 1):
        return LONG_CHAT if median([each.token_count for each, _ in turns]) >= MIN_LONG_TOKENS else CHAT
    return TALK if names and len(names) >= MIN_NAMED_SHARE * len(turns) else NOTES


def is_unread(query: Query) -> bool:
    """Return True if most of the question is in other letters, and the bundled model, which reads English, read it."""
    if query.text.isascii() or query.vector is None or query.model != BUNDLED_MODEL:
        return False
    letters = [sign for sign in query.text if sign.isalpha()]
    return sum(map(is_of_other_script, letters)) >= MIN_OTHER_SHARE * max(len(letters), 1)


def is_of_other_script(letter: str) -> bool:
    return letter > LAST_LATIN and not MORE_LATIN[0] <= letter <= MORE_LATIN[1]
