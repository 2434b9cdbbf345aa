"""Tests for interrupted work: a packet contains the checklist, the last turns of the same length do not."""

from collections.abc import Sequence

import pytest

from memory.owner import Owner
from memory.providers.embeddings import token_counter
from memory.services.embedding.embed import EmbeddedTexts
from tests.memory.episodes import NOTHING
from tests.memory.scenarios.living import live_through, resume_story
from tests.memory.scenarios.stories import NAMES, Story, read_story

MAX_TOKENS = 1_500
LEAST_TURNS = 50
LEAST_LEFT_OUT = 4
"""Of twelve items; the stories miss four to seven."""

STORIES = {name: read_story(name) for name in NAMES}
LONG = ("migration", "research")
"""Stories that take seconds to live through. A test of test_resume_compressed that is not slow does so with one."""
each_story = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def without_vectors(texts: Sequence[str]) -> EmbeddedTexts:
    """Embed nothing: goals, slots and words must be enough, and storing takes a third of the time."""
    return NOTHING


def last_turns(story: Story, *, max_tokens: int) -> str:
    """Return as many whole turns, the latest ones in their order, as fit."""
    count, text = token_counter(), ""
    for turn in reversed(list(story.turns())):
        longer = f"{turn}\n{text}"
        if count(longer) > max_tokens:
            break
        text = longer
    return text


@each_story
def test_a_story_has_several_conversations_on_different_days(story: Story) -> None:
    days = {conversation["starts"][:10] for conversation in story.conversations}

    assert len(list(story.turns())) >= LEAST_TURNS
    assert len(story.conversations) >= 3
    assert len(days) == len(story.conversations)


@each_story
def test_the_whole_log_contains_the_checklist(story: Story) -> None:
    assert story.missing("\n".join(story.turns())) == []


@each_story
def test_the_last_turns_alone_miss_items(story: Story) -> None:
    text = last_turns(story, max_tokens=MAX_TOKENS)

    assert len(story.missing(text)) >= LEAST_LEFT_OUT


@pytest.mark.django_db
@pytest.mark.parametrize(
    "story",
    [pytest.param(story, id=name, marks=pytest.mark.slow if name in LONG else ()) for name, story in STORIES.items()],
)
def test_the_packet_contains_the_checklist(owner: Owner, story: Story) -> None:
    successor = live_through(owner, story, embed=without_vectors)

    packet = resume_story(successor, story, max_tokens=MAX_TOKENS)

    assert story.missing(packet.text) == []
    assert story.still_in_force(packet.text) == []
    assert [text for text in story.strategies if text not in packet.text] == []
    assert packet.tokens == token_counter()(packet.text) <= MAX_TOKENS
