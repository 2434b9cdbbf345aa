"""Tests for the last outcome of a packet, which claims no more than was reported."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from memory.models import Kind
from memory.retrieval.resume import ResumedTurn
from memory.services.resume.items import EPOCH
from memory.services.resume.records import last_outcome_items
from memory_project.ids import uuid7


def make_turns(*texts: str) -> list[ResumedTurn]:
    """Return turns one minute apart from texts like "user: ..." and "assistant: ..."."""
    return [
        ResumedTurn(
            id=uuid7(),
            kind=Kind.EPISODE,
            channel="",
            conversation_id="c",
            event_time=EPOCH + timedelta(minutes=number),
            index=number,
            role=text.partition(": ")[0],
            name="",
            text=text.partition(": ")[2],
        )
        for number, text in enumerate(texts)
    ]


def outcome_lines(turns: Sequence[ResumedTurn]) -> list[str]:
    return [f"{item.label}{item.text}" for item in last_outcome_items([], [], turns)]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        (["assistant: The pump is installed.", "user: Nice."], "succeeded: The pump is installed."),
        (["assistant: The pump is installed.", "assistant: The valve is not done."], "open: The valve is not done."),
        (["assistant: I booked it.", "assistant: The shop answered 403."], "failed: The shop answered 403."),
        (["assistant: I installed pump P7.", "user: P7 still leaks."], ""),
        (["assistant: I installed pump P7.", "user: The roses still bloom."], "succeeded: I installed pump P7."),
        (["assistant: The pump is installed.", "user: what is up with the roses"], "succeeded: The pump is installed."),
        (["assistant: I wrote to the shop. No answer came back yet."], "succeeded: I wrote to the shop."),
        (["assistant: The pump came. It was installed."], "succeeded: The pump came. It was installed."),
        (["user: Is the pump installed", "tool: The pump is installed."], ""),
        (
            ["assistant: Migration 12 failed: timeout.", "assistant: Both migrations ran."],
            "succeeded: Both migrations ran.",
        ),
        (
            ["assistant: Migration 12 failed: timeout.", "user: The demo moved to 11 May."],
            "failed: Migration 12 failed: timeout.",
        ),
        (["assistant: It's done."], ""),
    ],
    ids=[
        "a success",
        "still open",
        "an error since",
        "contradicted",
        "something else still",
        "small talk",
        "a blocker",
        "leaning",
        "asked",
        "mended since",
        "a date that moved",
        "nothing to lean on",
    ],
)
def test_the_last_report_that_was_not_contradicted_is_the_outcome(turns: list[str], outcome: str) -> None:
    assert outcome_lines(make_turns(*turns)) == ([outcome] if outcome else [])


FAILED = "Migration 31 failed: lock timeout."


@pytest.mark.parametrize(
    ("asked", "answer", "outcome"),
    [
        ("try again", "It worked this time.", f"succeeded: {FAILED} It worked this time."),
        ("try again", "Works now.", f"succeeded: {FAILED} Works now."),
        ("try again", "Second try was fine.", f"succeeded: {FAILED} Second try was fine."),
        ("try again", "Now it went through at 11:05.", f"succeeded: {FAILED} Now it went through at 11:05."),
        ("try again", "Migration 31 went through.", "succeeded: Migration 31 went through."),
        ("restart the cron", "It worked.", "succeeded: user: restart the cron assistant: It worked."),
        ("try again", "It failed again.", f"failed: {FAILED} It failed again."),
        ("please run it again", "The table has 400 rows.", ""),
        ("try again", "I will, at noon.", f"failed: {FAILED}"),
        ("why?", "The table has 400 rows.", f"failed: {FAILED}"),
        ("try again", "I went through the logs of the pump.", ""),
    ],
)
def test_a_failure_is_not_the_last_outcome_once_its_repetition_is_reported(
    asked: str, answer: str, outcome: str
) -> None:
    turns = make_turns(f"assistant: {FAILED}", f"user: {asked}", f"assistant: {answer}")

    assert outcome_lines(turns) == ([outcome] if outcome else [])
