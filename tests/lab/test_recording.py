"""A recording of a recall holds the signals that the recall used."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from django.utils import timezone

from lab.benchmarks.scratch import scratch_account
from lab.evaluation.asking import AskingMode, ask
from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.files import read_file
from lab.evaluation.loading import Loaded, load_samples
from lab.evaluation.ranker import ALL, found_by, weighted_sums
from lab.evaluation.recording import RecordedQuestion, record, record_all
from memory.models import Conversation
from memory.retrieval.ranking import learned_weights
from memory.retrieval.techniques import choose_plan
from tests.lab.sets import asked, native, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "tiny_embedder")]

QUESTIONS = [
    asked("When does Mara water ferns?", "f1"),
    asked("Is the greenhouse heater broken?", "t1", "p1"),
    asked("What bark do orchids want?", "n1", "g2"),
    asked("xyzzy", "e1"),
]


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Loaded]:
    samples = read_file(write(tmp_path, native(questions=QUESTIONS)))
    with scratch_account("test") as scratch:
        [one] = load_samples(samples, scratch.account, now=timezone.now(), advance=lambda _steps: None)
        yield one


@pytest.mark.django_db(transaction=True)
def test_no_conversation_is_due_for_workers_while_samples_are_loaded(tmp_path: Path) -> None:
    samples = read_file(write(tmp_path, native(questions=QUESTIONS)))
    due = list[int]()

    def look(_steps: int) -> None:
        queued = Conversation.objects.exclude(summarize_after=None, extract_after=None)
        due.append(queued.count())

    with scratch_account("test") as scratch:
        list(load_samples(samples, scratch.account, now=timezone.now(), advance=look))

    assert set(due) == {0}


def ranks_of(recorded: RecordedQuestion) -> list[int]:
    """Return the ranks of the answers by the shipped weights and the recorded signals."""
    sums = weighted_sums(learned_weights(), recorded) + recorded.offset
    [ranks] = np.nonzero(recorded.is_answer[np.argsort(-sums, kind="stable")])
    return [int(rank) for rank in ranks]


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_recorded_signals_and_offsets_reproduce_the_order_of_the_recall(loaded: Loaded, place: int) -> None:
    question = loaded.sample.questions[place]
    plan = choose_plan(["-lineage", "-duplicates", "-diversity"])

    recorded = record(loaded, question, plan)

    answer = ask(loaded, question, AskingMode(plan=plan, context_tokens=0))
    assert ranks_of(recorded) == [rank for rank, memory in enumerate(answer.ranked) if memory in answer.answers]
    assert recorded.offset.any()
    assert recorded.answers == len(question.answers)


def test_a_recording_distinguishes_turns_from_other_memories(loaded: Loaded) -> None:
    [*_, recorded] = record_all([loaded], choose_plan())

    assert (recorded.is_turn.sum(), recorded.is_of_turns) == (2, False)


def test_a_question_that_finds_nothing_is_recorded_without_rows(loaded: Loaded) -> None:
    nothing = SampleQuestion(text="xyzzy", answers=["e1"], type="t")

    recorded = record(loaded, nothing, choose_plan(["lexical"]))

    assert recorded.signals.shape == (0, len(ALL))
    assert (recorded.offset.size, recorded.can_teach) == (0, False)
    assert found_by(learned_weights(), recorded) == 0.0
