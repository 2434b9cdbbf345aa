"""Sentences about work are classified by their form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.work_notes import (
    MAX_SENTENCE_CHARACTERS,
    NoteKind,
    depends_on_previous,
    find_notes,
    is_departure,
    is_errand,
    is_instruction,
    kind_of,
    status_of,
    work_sentences,
)
from tests.properties import examples


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("We go with the blue pump.", NoteKind.DECISION),
        ("Let's split the table by month.", NoteKind.DECISION),
        ("Ana agreed to the second offer.", NoteKind.DECISION),
        ("The cheap pump is off the table.", NoteKind.REJECTION),
        ("A second tank is too expensive.", NoteKind.REJECTION),
        ("We can't start until the valve is here.", NoteKind.BLOCKER),
        ("I'm waiting for the key.", NoteKind.BLOCKER),
        ("The old pump is too slow, 95 seconds for a bucket.", None),
        ("The old pump is too slow for 40 roses.", NoteKind.REJECTION),
        ("The inspection moved to 11 December.", NoteKind.DECISION),
        ("The pump moved to the cellar.", NoteKind.RESULT),
        ("The colour of the fence is still open, ask Ilse.", NoteKind.NEXT_STEP),
        ("Still open: the fence and the gate.", NoteKind.NEXT_STEP),
        ("Open points: the fence and the gate.", NoteKind.NEXT_STEP),
        ("Painting is still to be done.", NoteKind.NEXT_STEP),
        ("The colour is still to be decided.", NoteKind.NEXT_STEP),
        ("The day of the inspection is to be confirmed.", NoteKind.NEXT_STEP),
        ("The colour of the fence is TBD.", NoteKind.NEXT_STEP),
        ("No wall is still to be painted.", None),
        ("The garden is open on Sundays.", None),
        ("Both pumps ran.", NoteKind.RESULT),
        ("Both dogs ran to the gate.", None),
        ("Never water them at noon.", NoteKind.CONSTRAINT),
        ("The budget is 400 euros.", NoteKind.CONSTRAINT),
        ("Don't touch the old pipes.", NoteKind.CONSTRAINT),
        ("Nothing is ordered without my approval.", NoteKind.CONSTRAINT),
        ("No, it was the red valve.", NoteKind.CORRECTION),
        ("I changed my mind about the tank.", NoteKind.CORRECTION),
        ("The pump stopped with error E-17.", NoteKind.ERROR),
        ("psycopg.OperationalError: connection closed", NoteKind.ERROR),
        ("Next: drain the tank.", NoteKind.NEXT_STEP),
        ("The valve still needs oil.", NoteKind.BLOCKER),
        ("I'll paint it tomorrow.", NoteKind.NEXT_STEP),
        ("All 31 checks passed.", NoteKind.RESULT),
        ("Who has the key?", NoteKind.QUESTION_OPEN),
        ("Should we go with the blue pump?", NoteKind.QUESTION_OPEN),
        ("Roses smell nice.", None),
        ("We move to the second bed and take the short hose.", NoteKind.DECISION),
        ("Going for lunch, we have beans today.", None),
        ("Our policy is that nobody pays in cash.", NoteKind.CONSTRAINT),
        ("Anything above 200 euros I want to see and approve before you buy it.", NoteKind.CONSTRAINT),
        ("You may spend up to 500 euros.", NoteKind.CONSTRAINT),
        ("Water them by 25 May.", NoteKind.CONSTRAINT),
        ("The weeds add up to 1,204.", None),
        ("It grew by 25 in a week.", None),
        ("Ana approves the plan.", None),
        ("The cause is in tank.policy=drain.", None),
        ("I want you to help me plant it.", None),
        ("Always.", None),
        ("They never replied.", None),
        ("I tried to raise the quota, but the shop answered 403.", NoteKind.ERROR),
        ('sql({"q": "sum(a) group by 1"}) -> 14,382 must be checked', None),
        ('git({"cmd": "push"}) -> opened', NoteKind.RESULT),
        ('drain({"tank": 2}) !! the valve is stuck', NoteKind.ERROR),
        ("Blocker 1 is fixed: the valve opens.", NoteKind.RESULT),
        ("The blocked pipe went through after the cleaning.", NoteKind.RESULT),
        ("Blocker 2 is not done.", NoteKind.BLOCKER),
        ("The pump waits for the valve that was fixed.", NoteKind.BLOCKER),
        ("It depends on whether the first is done.", NoteKind.BLOCKER),
        ("The second one is open.", NoteKind.NEXT_STEP),
        ("The shop is open.", None),
        ("I will list questions for you to ask him.", NoteKind.NEXT_STEP),
        ("You need to ask me before you pay.", NoteKind.CONSTRAINT),
        ("Have to run, train.", None),
        ("must dash, kids.", None),
        ("I have to pick up my son, back at three", None),
        ("I have to run the pump.", NoteKind.CONSTRAINT),
        ("You must go, she said.", NoteKind.CONSTRAINT),
        ("I moved the planting to Monday 14 December.", NoteKind.DECISION),
        ("I moved to the house on Monday.", NoteKind.NEXT_STEP),
    ],
)
def test_the_kind_of_a_sentence_is_recognized_by_its_form(sentence: str, kind: NoteKind | None) -> None:
    assert kind_of(sentence) == kind


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("The bug in the import is fixed.", "succeeded"),
        ("The error of the import is fixed and deployed.", "succeeded"),
        ("The failing test is green again.", "succeeded"),
        ("The bug that broke the import is fixed.", "succeeded"),
        ("The failed deploy went through after the restart.", "succeeded"),
        ("The migration went through.", "succeeded"),
        ("The broken export works again.", "succeeded"),
        ("The bug in the import is not fixed.", "failed"),
        ("The error is in the file that was fixed yesterday.", "failed"),
        ("The import failed after the bug was fixed.", "failed"),
        ("The deploy failed in the step that was fixed.", "failed"),
        ("The error says the disk is gone.", "failed"),
        ("I went through the logs.", ""),
        ("The letter went through customs.", ""),
        ("I know how the pump works.", ""),
        ("It worked fine before.", ""),
    ],
)
def test_a_sentence_about_an_error_that_is_mended_reports_a_success(sentence: str, status: str) -> None:
    assert status_of(sentence) == status


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("have to run, train.", True),
        ("off to the dentist, wish me luck", True),
        ("I have to pick up my son, back at three", True),
        ("I have to pick up the pump at noon", False),
        ("I am off to install the pump.", False),
        ("Back in March we ordered three pumps for the garden.", False),
        ("You must go, she said.", False),
        ("I have to leave, the deploy failed", False),
        ("Must run: migrations before the deploy", False),
    ],
)
def test_a_departure_says_nothing_of_the_work(sentence: str, *, expected: bool) -> None:
    assert is_departure(sentence) is expected


def test_a_wish_about_manner_is_not_an_instruction() -> None:
    assert is_instruction("Make it two metres longer.")
    assert not is_instruction("Make it nice.")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Run the pump.", True),
        ("Please stop the pump, then again.", True),
        ("Run the pump with 2 bar.", False),
        ("Always stop the pump first.", False),
        ("Stop the pump before you open the valve.", False),
        ("Use the red pump.", False),
        ("The pump runs.", False),
    ],
)
def test_an_errand_is_over_once_it_is_done(sentence: str, *, expected: bool) -> None:
    assert is_errand(sentence) is expected


def test_a_sentence_without_a_subject_depends_on_the_previous_one() -> None:
    leaning = ["It's blocked.", "No reply so far.", "Still waiting.", "Failed with E-17.", "so test with that"]
    assert [
        each for each in [*leaning, "No nuts in the house.", "The pump waits."] if depends_on_previous(each)
    ] == leaning


def test_notes_are_found_in_order_without_leading_or_irrelevant_sentences() -> None:
    found = find_notes("Okay, thanks! Well, we go with MIT. It rained. It’s blocked by the review.")

    assert [(note.kind.value, note.text) for note in found] == [
        ("decision", "we go with MIT."),
        ("blocker", "It’s blocked by the review."),
    ]


def test_notes_are_found_at_the_beginning_and_end_of_a_long_text() -> None:
    text = "We go with MIT.\n" + "x " * 50_000 + "\nThe build failed."
    assert {note.text for note in find_notes(text)} == {"We go with MIT.", "The build failed."}


PIECES = ["we", "can't", "go", "until", "no,", "error", ".", "?", "!", "\n", "-"]


@examples(60)
@given(st.text(max_size=300) | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_every_note_is_a_quote_of_limited_length(text: str) -> None:
    whole = " ".join(text.split())
    assert all(len(said) <= MAX_SENTENCE_CHARACTERS and said in whole for said in work_sentences(text))
    assert all(note.text in whole for note in find_notes(text))
