"""`docs/sample/recall.json`, the set of invented questions: well-formed, large enough, of every kind."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.files import read_file

FILE = Path(settings.BASE_DIR) / "docs" / "sample" / "recall.json"
LEAST_MEMORIES = 1_100
LEAST_QUESTIONS = 130
LEAST_OF_A_TYPE = 5
LARGEST_BYTES = 400_000
TYPES = (
    *("keyword", "paraphrase", "lookalike", "temporal", "entity", "multi", "procedure", "goal", "speech"),
    *("conversation", "german", "chinese"),
)
KINDS = ("fact", "episode", "context_entry", "goal", "entity", "strategy")


@pytest.fixture(scope="module")
def sample() -> EvaluationSample:
    [nursery] = read_file(FILE)
    return nursery


@pytest.fixture(scope="module")
def nursery_json() -> dict[str, Any]:
    """Return the sample as the file has it."""
    [nursery] = json.loads(FILE.read_text())["samples"]
    assert isinstance(nursery, dict)
    return nursery


def test_the_sample_set_is_within_its_size_limits(sample: EvaluationSample) -> None:
    assert len(sample.ids) >= LEAST_MEMORIES
    assert len(sample.questions) >= LEAST_QUESTIONS
    assert FILE.stat().st_size <= LARGEST_BYTES


def test_every_type_of_question_is_asked_several_times(sample: EvaluationSample) -> None:
    asked = Counter(question.type for question in sample.questions)

    assert sorted(asked) == sorted(TYPES)
    assert min(asked.values()) >= LEAST_OF_A_TYPE


def test_questions_and_texts_are_unique(sample: EvaluationSample) -> None:
    questions = [question.text for question in sample.questions]

    assert len(sample.texts) == len(sample.ids)
    assert len(set(questions)) == len(questions)


def test_every_question_has_one_to_four_different_answers(sample: EvaluationSample) -> None:
    odd = [each.text for each in sample.questions if not 1 <= len(each.answers) <= 4]
    repeated = [each.text for each in sample.questions if len(set(each.answers)) < len(each.answers)]

    assert (odd, repeated) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_memories_that_answer_questions_and_memories_that_do_not(
    nursery_json: dict[str, Any], kind: str
) -> None:
    keys = {memory["key"] for memory in nursery_json["memories"] if memory["kind"] == kind}
    answers = {key for question in nursery_json["questions"] for key in question["answers"]}

    assert keys & answers
    assert keys - answers


def test_no_question_is_asked_before_the_time_of_its_answers(nursery_json: dict[str, Any]) -> None:
    said = [turn for conversation in nursery_json["conversations"] for turn in conversation["turns"]]
    times = {each["key"]: each["time"] for each in (*said, *nursery_json["memories"])}
    early = [
        question["text"]
        for question in nursery_json["questions"]
        for key in question["answers"]
        if times[key] > question.get("asked_at", nursery_json["asked_at"])
    ]

    assert early == []
