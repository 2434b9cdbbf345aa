"""A sentence that denies something does not state it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.work_notes import NoteKind, kind_of, status_of
from tests.properties import examples


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("The new fence is painted and finished.", "succeeded"),
        ("The fence is not done.", "open"),
        ("The gate isn't finished.", "open"),
        ("The pump has not been installed yet.", "open"),
        ("Three of the beds are done, two are not.", "open"),
        ("The checks have not passed.", "failed"),
        ("Nothing was merged.", "failed"),
        ("No letter was sent.", "failed"),
        ("None of the bulbs were ordered.", "failed"),
        ("The valve was never installed.", "failed"),
        ("The draining did not complete.", "failed"),
        ("It was not only repaired but also measured.", "succeeded"),
        ("The leak is not fixed: error E-17 is back.", "failed"),
        ("No errors were found.", "succeeded"),
        ("The pump did not fail.", "succeeded"),
        ("It ran without any errors.", "succeeded"),
        ("31 passed, 0 failed.", "succeeded"),
        ("Errors: 0.", "succeeded"),
        ("The gateway answered 403.", "failed"),
        ("Nothing remains to be done.", ""),
        ("I'll paint it tomorrow.", ""),
        ("The meter shows 3 bar.", ""),
        ("I found three similar gardens.", ""),
        ("I moved to Lisbon in March.", ""),
        ("I moved the pots into the shade.", "succeeded"),
        ("The alarm should be an error by then.", ""),
        ("The drain failed, I will repeat it.", "failed"),
        ("What is up with the roses?", ""),
        ("Fixed the TypeScript error; the build passes.", "succeeded"),
        ("Fixed two failing tests.", "succeeded"),
        ("The crash in login.ts is fixed.", "succeeded"),
        ("I have not fixed the TypeScript error.", "failed"),
        ("The error is not fixed.", "failed"),
        ("Fixed the error, but the tests fail.", "failed"),
        ("I fixed the config and the build failed.", "failed"),
        ("The fixed config fails.", "failed"),
        ("The script I fixed yesterday failed.", "failed"),
        ("The build failed and the lint error is fixed.", "failed"),
    ],
)
def test_the_status_of_a_sentence_respects_negation(sentence: str, status: str) -> None:
    assert status_of(sentence) == status


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("We have not decided on the hose.", None),
        ("Nobody approved the second tank.", None),
        ("The second tank was not rejected.", None),
        ("Nothing is blocking us.", None),
        ("I don't think we should use the old hose.", NoteKind.REJECTION),
        ("We should not use the old hose.", NoteKind.REJECTION),
        ("We have not decided yet, but Ana agreed to the hose.", NoteKind.DECISION),
    ],
)
def test_a_negated_sentence_is_not_a_decision_or_blocker(sentence: str, kind: NoteKind | None) -> None:
    assert kind_of(sentence) == kind


WORDS = ["no", "not", "never", "nothing", "error", "done", "yet", "until", "f(", ") ->", "!!", "403", ":", ",", "."]


@examples(60)
@given(st.text(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=200).map(" ".join))
def test_any_text_has_a_valid_kind_and_status(text: str) -> None:
    assert kind_of(text) in (None, *NoteKind)
    assert status_of(text) in ("", "succeeded", "failed", "open")
