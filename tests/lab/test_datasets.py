"""Sets of questions out of files: what they come to, and what is refused with its place."""

from pathlib import Path
from typing import Any

import pytest

from lab.evaluation.datasets import BadDatasetError, EvaluationSample
from lab.evaluation.files import read_file
from tests.lab.sets import KITCHEN, asked, locomo, native, write


def read(folder: Path, document: Any) -> EvaluationSample:
    [sample] = read_file(write(folder, document))
    return sample


def test_a_session_becomes_a_conversation_and_its_turns_name_the_speaker(tmp_path: Path) -> None:
    sample = read(tmp_path, locomo(("Which colour?", ["D2:3"], 4)))

    kitchen, porch = sample.talks
    assert (sample.name, kitchen.conversation_id, porch.conversation_id) == ("house", "house-1", "house-2")
    assert kitchen.turns[0].message.text == "Bo: The oven thermostat is broken. [shares a cold oven]"
    assert (porch.turns[0].message.name, str(porch.turns[0].timestamp)) == ("Ines", "2023-05-09 13:56:00+00:00")


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (["D1:1", "D1:1"], ["D1:1"]),
        (["D1:2; D2:3"], ["D1:2", "D2:3"]),
        (["D:1:2"], ["D1:2"]),
        (["D02:03"], ["D2:3"]),
        (["D1:1", "D7:7", "D"], ["D1:1"]),
    ],
)
def test_malformed_evidence_labels_are_corrected(tmp_path: Path, evidence: list[str], expected: list[str]) -> None:
    sample = read(tmp_path, locomo(("What?", evidence, 1)))

    assert [(each.answers, each.type) for each in sample.questions] == [(expected, "multi-hop")]


def test_a_question_without_evidence_is_left_out(tmp_path: Path) -> None:
    sample = read(tmp_path, locomo(("What?", [], 3), ("Who?", ["D9:9"], 3), ("Where?", ["D2:3"], 5)))

    assert [(each.text, each.type) for each in sample.questions] == [("Where?", "adversarial")]


def test_the_native_format_reads_every_kind_in_an_order_that_can_be_stored(tmp_path: Path) -> None:
    sample = read(tmp_path, native(questions=[asked("When?", "f1", asked_at="2026-04-01T12:00:00+02:00")]))

    order = [note.key for note in sample.notes]
    assert order.index("e1") < order.index("f1")
    assert order.index("g2") < order.index("g1")
    assert sample.talks[0].turns[0].message.text == "Mara: The greenhouse heater is broken."
    assert str(sample.questions[0].asked_at) == "2026-04-01 10:00:00+00:00"
    assert sample.ids_of(sample.questions[0].answers) == {sample.ids["f1"]}


def together(**fields: Any) -> dict[str, Any]:
    """Two samples, the second one with other fields."""
    return {"samples": [sample for each in (native(), native(**fields)) for sample in each["samples"]]}


REFUSED: dict[str, tuple[Any, str]] = {
    "no JSON": ('{"samples": [\n{]}', "no JSON: .* line 2"),
    "no list": ('"text"', "is not a JSON object"),
    "session": (
        locomo(("What?", ["D1:1"], 1), session_1=[{"speaker": "Bo"}]),
        r"sample 1: session_1: turns\[0\]\.text",
    ),
    "category": (locomo(("What?", ["D1:1"], 6)), r"sample 1: qa\[0\]\.category"),
    "no evidence": (locomo(("What?", ["D9:9"], 1)), "there is no question"),
    "samples alike": (locomo(("What?", ["D1:1"], 1)) * 2, "name 'house' is there more than once"),
    "conversation shared": (together(name="other", user="ben"), "conversation 'c1' is there more than once"),
    "user shared": (together(name="other", conversations=[]), "user 'mara' is there more than once"),
    "some users": (together(name="other", user="", conversations=[]), "either every sample has a user, or none does"),
    "unknown field": (native(colour="red"), r"samples\[0\]\.colour is no known field"),
    "no key": (native(memories=[{"kind": "fact", "text": "x"}]), r"samples\[0\]\.memories\[0\]\.fact\.key is missing"),
    "unknown kind": (native(memories=[{"key": "x", "kind": "rumour", "text": "x"}]), r"samples\[0\]\.memories\[0\]"),
    "time": (native(asked_at="yesterday"), r"samples\[0\]\.asked_at is no ISO 8601 time"),
    "key twice": (native(memories=[{"key": "t1", "kind": "goal", "text": "x"}]), "'garden': key 't1' is there more"),
    "unknown answer": (
        native(questions=[asked("?", "f1"), asked("?", "z")]),
        r"questions\[1\]: there is no memory 'z'",
    ),
    "another kind": (
        native(memories=[{"key": "f", "kind": "fact", "text": "x", "entities": ["t1"]}]),
        "memory 'f': there is no entity 't1'",
    ),
    "entry type": (
        native(memories=[{"key": "n", "kind": "context_entry", "text": "x", "type": "song"}]),
        "'n': type is",
    ),
    "cycle": (
        native(
            memories=[
                {"key": "a", "kind": "goal", "text": "x", "parent": "b"},
                {"key": "b", "kind": "goal", "text": "y", "parent": "a"},
            ]
        ),
        "in a cycle: 'a', 'b', 'a'|in a cycle: 'b', 'a', 'b'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_error_about_an_invalid_file_names_the_place(tmp_path: Path, name: str) -> None:
    document, message = REFUSED[name]

    with pytest.raises(BadDatasetError, match=message):
        read_file(write(tmp_path, document))


def test_an_explicit_format_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, locomo(("What?", ["D1:1"], 1), session_1=KITCHEN))

    assert read_file(path, "locomo")[0].name == "house"
    with pytest.raises(BadDatasetError, match="is not a JSON object"):
        read_file(path, "native")
