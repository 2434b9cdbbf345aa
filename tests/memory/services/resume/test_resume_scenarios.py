"""Work that was broken off: what a successor must know, against what the last turns of the same length tell."""

from collections.abc import Sequence

import pytest

from memory.owner import Owner
from memory.providers.embeddings import token_counter
from memory.services.embedding.embed import Embedded
from tests.memory.episodes import NOTHING
from tests.memory.scenarios.living import live_through, resume
from tests.memory.scenarios.stories import NAMES, Story, read_story

MAX_TOKENS = 1_500
LEAST_TURNS = 50
LEAST_LEFT_OUT = 4
"""Of twelve items; it is four to seven."""

pytestmark = pytest.mark.parametrize("story", [pytest.param(read_story(name), id=name) for name in NAMES])


def without_vectors(texts: Sequence[str]) -> Embedded:
    """What must be told may not hang on an embedder: goals, slots and words find it; and storing takes a third."""
    return NOTHING


def last_turns(story: Story, *, max_tokens: int) -> str:
    """As many of the latest turns as there is room for, whole, in their order."""
    count, told = token_counter(), ""
    for turn in reversed(list(story.turns())):
        longer = f"{turn}\n{told}"
        if count(longer) > max_tokens:
            break
        told = longer
    return told


def test_a_story_goes_on_over_conversations_and_days(story: Story) -> None:
    days = {conversation["starts"][:10] for conversation in story.conversations}

    assert len(list(story.turns())) >= LEAST_TURNS
    assert len(story.conversations) >= 3
    assert len(days) == len(story.conversations)


def test_the_whole_log_tells_everything(story: Story) -> None:
    assert story.missing("\n".join(story.turns())) == []


def test_the_last_turns_leave_things_out(story: Story) -> None:
    told = last_turns(story, max_tokens=MAX_TOKENS)

    assert len(story.missing(told)) >= LEAST_LEFT_OUT


@pytest.mark.django_db
def test_the_packet_tells_what_a_successor_must_know(owner: Owner, story: Story) -> None:
    successor = live_through(owner, story, embed=without_vectors)

    packet = resume(successor, story, max_tokens=MAX_TOKENS)

    assert story.missing(packet.text) == []
    assert story.still_in_force(packet.text) == []
    assert [told for told in story.strategies if told not in packet.text] == []
    assert packet.tokens == token_counter()(packet.text) <= MAX_TOKENS
