"""Superseded statements in prompts: a prompt context says when they were superseded, and `/resume` leaves them out."""

from memory.reasoning import ReasoningTier
from memory.services.prompt_context.layout import quote_note
from memory.services.resume.records import snippets_of_recalled
from tests.memory.candidates import found
from tests.memory.episodes import NOW

TEXT = "We decided to deploy the billing service on Thursdays."


def test_a_superseded_message_says_when_it_was_superseded() -> None:
    note = found(1, TEXT, role="user", superseded_at=NOW)

    assert quote_note(note, TEXT) == f"> (superseded on {NOW:%Y-%m-%d}) user: {TEXT}"
    assert quote_note(found(1, TEXT, role="user"), TEXT) == f"> user: {TEXT}"


def test_a_resume_packet_leaves_superseded_turns_out() -> None:
    turns = [found(1, TEXT, role="user", superseded_at=NOW), found(2, TEXT, role="user")]

    snippets = list(snippets_of_recalled(turns, set(), ReasoningTier.STRUCTURED_RATIONALE))

    assert [snippet.source.id.int for snippet in snippets] == [2]
