"""`manage.py evaluate_recall`: figures as counted by hand, and nothing left behind, however it ends."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError
from pytest_django import Settings
from werkzeug import Response

from lab.evaluation.asking import QuestionResult
from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.figures import report_on
from memory.providers.embeddings import embedding_provider
from memory_project.ids import uuid7
from tests.embedding_server import EmbeddingServer
from tests.lab.commands import nothing_is_left, run_json
from tests.lab.commands import run as run_command
from tests.lab.sets import asked, locomo, native, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "tiny_embedder")]


def run(path: Path, *arguments: str) -> str:
    return run_command("evaluate_recall", path, *arguments)


def evaluate(path: Path, *arguments: str) -> dict[str, Any]:
    return run_json("evaluate_recall", path, *arguments)


def test_a_conversation_is_evaluated_with_lexical_search_alone(tmp_path: Path) -> None:
    document = locomo(("Who painted the porch green?", ["D2:3"], 4), ("Oven thermostat broken?", ["D1:1", "D2:3"], 1))

    figures = evaluate(write(tmp_path, document), "--techniques=lexical,-diversity")

    # the second question shares no word with the porch, which is one of its two answers
    assert figures["all"]["questions"] == 2
    assert figures["all"]["figures"]["recall@5"]["mean"] == 0.75
    assert figures["all"]["figures"]["MRR"]["mean"] == 1.0
    assert [(each["name"], each["figures"]["hit@10"]["mean"]) for each in figures["types"]] == [
        ("multi-hop", 1.0),
        ("single-hop", 1.0),
    ]
    assert [each["ranks"] for each in figures["questions"]] == [{"D2:3": 1}, {"D1:1": 1, "D2:3": None}]


def test_memories_of_all_kinds_are_found(tmp_path: Path) -> None:
    questions = [
        asked("When does Mara water ferns?", "f1"),
        asked("greenhouse heater broken", "t1"),
        asked("heater repaired", "p1"),
        asked("orchids bark", "n1", "g2"),
        asked("Mara Lindqvist", "e1"),
        asked("repot all orchids", "g1"),
        asked("measure before replacing", "s1"),
    ]

    figures = evaluate(write(tmp_path, native(questions=questions)))

    assert {key for each in figures["questions"] for key, rank in each["ranks"].items() if rank is None} == set()
    assert figures["all"]["figures"]["2,000 tokens"]["mean"] == 1.0
    assert figures["all"]["figures"]["400 words"]["mean"] == 1.0
    assert nothing_is_left()


def test_a_table_shows_types_samples_and_time(tmp_path: Path) -> None:
    output = run(write(tmp_path, locomo(("Porch green?", ["D2:3"], 2), ("Oven?", ["D1:1"], 5))))

    for shown in ("temporal", "adversarial", "house", "2,000 tokens", "100.0", "100-100", "A recall took"):
        assert shown in output


def test_stale_answers_are_reported_separately(tmp_path: Path) -> None:
    turns = [{"key": "old", "text": "The porch is green."}, {"key": "new", "text": "I painted the porch blue."}]
    porch = {"id": "c1", "time": A_DAY, "turns": turns}
    questions = [asked("Painted porch?", "new", replaced=["old"]), asked("Green?", "new", replaced=["old"])]
    path = write(tmp_path, native(conversations=[porch], memories=[], questions=[*questions, asked("Porch?", "old")]))

    figures = evaluate(path, "--techniques=lexical,-diversity,-lineage,-passage")

    [updates, _keyword] = figures["updates"]
    assert updates["questions"] == 2
    assert [figure["mean"] for figure in updates["figures"].values()] == [0.5, 0.5, 1.0, 1.0]
    assert "old in first 3" in run(path)


def test_a_fact_that_was_extracted_stands_for_its_turn(tmp_path: Path) -> None:
    homes = {"old": ("I live in Porto.", "2026-03-02T09:00:00Z"), "new": ("I live in Lisbon now.", A_DAY_LATER)}
    talks = [{"id": key, "time": at, "turns": [{"key": key, "text": text}]} for key, (text, at) in homes.items()]
    question = asked("user", "new", replaced=["old"])
    path = write(tmp_path, native(conversations=talks, memories=[], questions=[question]))

    plain, extracted = (evaluate(path, "--techniques=lexical", *more) for more in ((), ("--extract",)))

    assert [each["ranks"] for each in plain["questions"] + extracted["questions"]] == [{"new": None}, {"new": 1}]
    assert nothing_is_left()


@pytest.mark.slow
def test_near_duplicates_that_a_result_names_take_the_places_after_it(tmp_path: Path) -> None:
    turns = [
        {"key": "first", "text": "The porch is green."},
        {"key": "oven", "text": "The green oven is broken."},
        {"key": "again", "text": "the porch is green"},
    ]
    porch = {"id": "c1", "time": A_DAY, "turns": turns}
    questions = [asked("Is the porch green?", "first", "again"), asked("Is the porch green?", "oven")]
    path = write(tmp_path, native(conversations=[porch], memories=[], questions=questions))

    figures = evaluate(path, "--techniques=lexical,duplicates")

    first, oven = (each["ranks"] for each in figures["questions"])
    assert sorted(first.values()) == [1, 2]
    assert oven == {"oven": 3}
    assert figures["all"]["figures"]["2,000 tokens"]["mean"] == 1.0


def test_adversarial_questions_are_in_no_average(tmp_path: Path) -> None:
    figures = evaluate(write(tmp_path, locomo(("Porch green?", ["D2:3"], 4), ("Oven?", ["D1:1"], 5))))

    assert [figures[group]["questions"] for group in ("all", "apart")] == [1, 1]
    assert [each["name"] for each in figures["types"]] == ["single-hop"]


def test_a_subset_of_questions_is_drawn_the_same_way_every_time(tmp_path: Path) -> None:
    path = write(tmp_path, locomo(*((f"Porch {number}?", ["D2:3"], 4) for number in range(9))))

    first, second = (evaluate(path, "--questions=3")["questions"] for _ in range(2))

    assert [each["text"] for each in first] == [each["text"] for each in second]
    assert len(first) == 3


def answer(took_ms: float, *ranked: int) -> QuestionResult:
    """Return the result of a question whose answers are the memories 0 and 1 of `MEMORIES`."""
    return QuestionResult(
        sample="s",
        question=SampleQuestion(text="?", answers=["0", "1"], type="t"),
        answers=frozenset(MEMORIES[:2]),
        ranked=[MEMORIES[number] for number in ranked],
        within_words=[MEMORIES[number] for number in ranked[:1]],
        within_context=[MEMORIES[number] for number in ranked[:2]],
        took_ms=took_ms,
        embedding_ms=1.0,
        degraded=["embedding_pending"],
    )


MEMORIES = [uuid7() for _ in range(30)]


def test_figures_are_means_over_questions() -> None:
    # answers at the ranks 1 and 6; at the rank 12
    report = report_on([answer(10.0, 0, 5, 6, 7, 8, 1), answer(20.0, *range(2, 13), 0)])

    assert report.all is not None
    means = {name: figure.mean for name, figure in report.all.figures.items()}
    assert [means[f"recall@{k}"] for k in (5, 10, 20)] == [0.25, 0.5, 0.75]
    assert means["hit@10"] == 0.5
    assert means["MRR"] == pytest.approx((1 + 1 / 12) / 2)
    assert (means["400 words"], means["2,000 tokens"]) == (0.25, 0.25)
    assert (report.pace.p50_ms, report.pace.search_p50_ms) == (15.0, 14.0)
    assert report.degraded == {"embedding_pending": 2}


A_DAY = "2026-03-02T09:00:00Z"
A_DAY_LATER = "2026-03-09T09:00:00Z"
REFUSED: dict[str, tuple[Any, list[str], str]] = {
    "replaced": (
        native(questions=[asked("?", "f1", replaced=["f1"])]),
        [],
        "'f1' is an answer and replaced; it can be one of them",
    ),
    "stale": (native(questions=[asked("?", "f1", replaced=["f9"])]), [], "there is no memory 'f9'"),
    "techniques": (locomo(("Porch?", ["D2:3"], 4)), ["--techniques=tarot"], "Not techniques: tarot"),
    "file": ("[", [], "the file is no JSON list of samples"),
    "alike": (
        native(
            memories=[{"key": key, "kind": "fact", "text": "Ferns are green."} for key in ("f1", "f2")],
            questions=[asked("?", "f1")],
        ),
        [],
        "'f2' says the same as another memory",
    ),
    "span": (
        native(
            memories=[{"key": "f", "kind": "fact", "text": "x", "valid_from": A_DAY, "valid_to": A_DAY}],
            questions=[asked("?", "f")],
        ),
        [],
        "sample 'garden' cannot be stored: valid_to must be after valid_from",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_evaluation_is_reported_in_one_sentence_and_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    document, arguments, message = REFUSED[name]

    with pytest.raises(CommandError, match=message):
        run(write(tmp_path, document), *arguments)

    assert nothing_is_left()


def test_a_missing_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        run(tmp_path / "none.json")


@pytest.mark.slow
def test_a_failing_embedder_ends_the_evaluation(tmp_path: Path, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER, settings.OPENAI_API_KEY = "openai", "unused"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    settings.EMBEDDING_TIMEOUT_SECONDS = 0.2
    embedding_provider.cache_clear()

    with pytest.raises(CommandError, match="The embedder failed"):
        run(write(tmp_path, locomo(("Porch?", ["D2:3"], 4))))

    assert nothing_is_left()


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("last_text", ["Ines: I painted the porch green.", "Porch?"], ids=["loading", "asking"])
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, embedding_server: EmbeddingServer, last_text: str) -> None:
    def interrupt(texts: list[str]) -> Response:
        if last_text in texts:
            os.kill(os.getpid(), signal.SIGINT)
        return embedding_server.answer_well(texts)

    embedding_server.answer = interrupt

    with pytest.raises(SystemExit) as stop:
        run(write(tmp_path, locomo(("Porch?", ["D2:3"], 4))))

    assert stop.value.code == 130
    assert nothing_is_left()
