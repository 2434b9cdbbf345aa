"""Samples out of LoCoMo's file (Maharana et al. 2024): every session a conversation, every turn a memory.

A turn is `Speaker: text [shares caption]`, at its session's time. Labels of evidence that are joined or misspelt are
put right; one that points nowhere is left out, and so is a question that none is left of.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import from_json

from lab.evaluation.datasets import ADVERSARIAL, BadDatasetError, EvaluationSample, SampleConversation, SampleQuestion
from memory.extraction.imported import BadLine, ImportedConversation, Lenient, reason_of, refuse_blank
from memory.extraction.locomo import read_locomo
from memory.services.turns import TurnDraft

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: ADVERSARIAL}
LABEL = re.compile(r"D:?0*([0-9]+):0*([0-9]+)")


class _Question(Lenient):
    question: Annotated[str, AfterValidator(refuse_blank)]
    evidence: list[str] = []
    category: Annotated[int, Field(ge=min(CATEGORIES), le=max(CATEGORIES))]


class _Sample(Lenient):
    sample_id: str
    qa: list[_Question]


def read_locomo_samples(document: bytes) -> list[EvaluationSample]:
    """Read the samples. Raises BadDatasetError, which counts samples from 1."""
    talks: dict[int, list[ImportedConversation]] = {}
    for item in read_locomo(document):
        if isinstance(item, BadLine):
            raise BadDatasetError(f"sample {item.number}: {item.reason}")
        talks.setdefault(item.number, []).append(item)
    # it was read once already: it is a list
    values: Sequence[object] = from_json(document)
    return [read_locomo_sample(number, value, talks.get(number, ())) for number, value in enumerate(values, start=1)]


def read_locomo_sample(number: int, value: object, sessions: Sequence[ImportedConversation]) -> EvaluationSample:
    try:
        sample = _Sample.model_validate(value)
    except ValidationError as err:
        raise BadDatasetError(f"sample {number}: {reason_of(err)}") from err
    ids: dict[str, UUID] = {}
    talks = [
        SampleConversation(conversation_id=each.conversation_id, turns=list(draft_turns(each, ids)))
        for each in sessions
    ]
    return EvaluationSample(
        name=sample.sample_id,
        talks=talks,
        questions=[question for each in sample.qa if (question := locomo_question(each, ids)).answers],
        ids=ids,
    )


def draft_turns(session: ImportedConversation, ids: dict[str, UUID]) -> Iterator[TurnDraft]:
    """Yield the turns of a session, and enter their ids into `ids` by their labels."""
    for imported in session.messages:
        message = replace(imported.message, text=f"{imported.message.name}: {imported.message.text}", payload=None)
        draft = TurnDraft(message=message, timestamp=imported.timestamp, client_id=imported.client_id)
        if imported.client_id:
            ids.setdefault(next(read_labels([imported.client_id]), imported.client_id), draft.id)
        yield draft


def locomo_question(question: _Question, ids: dict[str, UUID]) -> SampleQuestion:
    answers = dict.fromkeys(label for label in read_labels(question.evidence) if label in ids)
    return SampleQuestion(text=question.question, answers=list(answers), type=CATEGORIES[question.category])


def read_labels(texts: Iterable[str]) -> Iterator[str]:
    """Yield the labels in the texts: two in `D8:6; D9:17`, D11:26 for `D:11:26`, D30:5 for `D30:05`."""
    for text in texts:
        for match in LABEL.finditer(text):
            yield f"D{match[1]}:{match[2]}"
