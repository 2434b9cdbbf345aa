"""Learning the confidence of results: what the weights separate, how they are judged, and the command."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import numpy as np
import pytest
from django.core.management.base import CommandError

from lab.evaluation.calibration_charts import SIDE, render_calibration
from lab.evaluation.confidence import (
    RecordedResults,
    judge_files,
    learn_calibrations,
    rank_probability,
    shares_of_results,
)
from lab.management.commands.learn_confidence import document_of
from lab.management.learning import write_weights
from memory import conf
from memory.providers.embeddings import embedding_provider
from memory.retrieval.confidence import (
    CONFIDENCE_FILE,
    FEATURES,
    FLOOR,
    compares_meaning,
    learned_calibrations,
    read_calibrations,
)
from memory.retrieval.queries import Query
from memory_project.embedded.models import BUNDLED_MODEL
from tests.lab.commands import nothing_is_left, run, run_json
from tests.lab.sets import asked, locomo, native, write

ANSWER, OTHER, STRANGE = (0.8, 1.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.1, 1.0)


def results(*rows: tuple[float, ...], file: str = "one", answers: int = 1) -> RecordedResults:
    """Return results of which those like ANSWER are answers, or none of a foreign question."""
    is_answer = np.array([float(row == ANSWER and answers > 0) for row in rows])
    return RecordedResults(
        file=file, answers=answers, features=np.array(rows).reshape(-1, len(FEATURES)), is_answer=is_answer
    )


def separable(file: str) -> list[RecordedResults]:
    own = [results(ANSWER, OTHER, OTHER, file=file) for _ in range(10)]
    return [*own, *(results(STRANGE, STRANGE, file=file, answers=0) for _ in range(10))]


def test_learned_weights_separate_answers_from_other_results() -> None:
    learned = learn_calibrations(separable("one"), model="some-model")

    for by in (learned.with_meaning, learned.with_words):
        answer, other, strange = by.chances(np.array([ANSWER, OTHER, STRANGE]))
        assert answer > 0.8
        assert max(other, strange) < 0.1
    assert learned.with_words.similarity == 0


def test_files_count_alike_and_own_questions_more_than_foreign_ones() -> None:
    recorded = [results(ANSWER, OTHER), results(OTHER), results(STRANGE, answers=0), results(ANSWER, file="two")]

    shares = np.concatenate(shares_of_results(recorded)).tolist()

    assert shares == pytest.approx([0.175, 0.175, 0.35, 0.3, 0.7])


def test_a_foreign_task_that_names_what_is_known_is_not_silent() -> None:
    foreign = results(STRANGE, answers=0)
    task = replace(foreign, has_floor=False)

    [figures] = judge_files([*separable("one"), *[task] * 10])

    assert (figures.foreign, figures.silent) == (20, 0.5)


def test_a_file_is_judged_by_what_the_others_teach() -> None:
    # in the second file, answers look like what is none elsewhere
    inverted = RecordedResults(file="two", answers=1, features=np.array([OTHER, ANSWER]), is_answer=np.array([1.0, 0]))
    first, second = judge_files([*separable("one"), inverted, results(ANSWER, file="two", answers=0)])
    alone = judge_files(separable("one"))[0]

    assert (second.is_held_out, alone.is_held_out) == (True, False)
    assert (alone.auroc, alone.silent, alone.recall, alone.lost) == (1.0, 1.0, 1.0, 0.0)
    # by the first file's weights the second file's answers are the least likely results
    assert [one.answers for one in second.bins] == [1.0, 0.0]
    assert second.auroc == 0.5
    # and by the second file's the first file's answers are
    assert first.bins[0].answers == 1.0


def test_a_file_without_foreign_questions_has_no_share_of_silence() -> None:
    [figures] = judge_files([results(ANSWER, OTHER), results(answers=2)])

    assert (figures.auroc, figures.silent, figures.recall) == (None, None, 0.5)


def test_the_floor_costs_what_was_found_below_it() -> None:
    # nothing distinguishes these answers, of which there are few
    rows = [results(*[OTHER] * 100) for _ in range(2)]
    found = RecordedResults(file="one", answers=1, features=np.array([OTHER] * 100), is_answer=np.eye(100)[0])

    [figures] = judge_files([*rows, found])

    assert figures.bins[0].confidence < FLOOR
    assert [figures.recall, figures.lost] == pytest.approx([1 / 3, 1 / 3])


def test_the_area_under_the_curve_counts_ties_as_halves() -> None:
    # of six pairs, three are greater and one is a tie
    assert rank_probability(np.array([0.9, 0.5, 0.1]), np.array([0.5, 0.2])) == pytest.approx(3.5 / 6)


def test_the_chart_has_a_line_for_each_file() -> None:
    figures = judge_files([*separable("<one>"), *separable("two")])

    drawn = Tree.fromstring(render_calibration(figures))

    lines = [each.attrib["points"] for each in drawn.iter("{http://www.w3.org/2000/svg}polyline")]
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert len(lines) == 2
    assert {"<one> (held out)", "two (held out)"} <= set(texts)
    x, y = map(float, lines[0].split()[-1].split(","))
    # the most likely results are answers: at the top, far on the right
    assert y == 54
    assert x > 70 + 0.7 * SIDE


@pytest.fixture
def two_houses(tmp_path: Path) -> Path:
    """Write a file of two samples, each with a question that the other cannot answer."""
    garden = native(questions=[asked("When does Mara water ferns?", "f1")])["samples"][0]
    shop: dict[str, Any] = {"name": "shop", "user": "bo", "asked_at": "2026-05-01T12:00:00Z"}
    shop["memories"] = [{"key": "f1", "kind": "fact", "text": "Bo sells bread on Fridays."}]
    shop["questions"] = [asked("When does Bo sell bread?", "f1")]
    return write(tmp_path, {"samples": [garden, shop]})


@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis", "tiny_embedder")
class TestCommand:
    def test_own_and_foreign_questions_are_asked_and_nothing_is_left(self, two_houses: Path) -> None:
        report = run_json("learn_confidence", two_houses)

        assert report["with_meaning"].keys() == report["with_words"].keys()
        assert {name: report["learned"][name] for name in ("files", "questions", "foreign")} == {
            "files": 1,
            "questions": 4,
            "foreign": 4,
        }
        assert [figures["is_apart"] for figures in report["figures"]] == [False, True]
        for figures in report["figures"]:
            assert (figures["recall"], figures["is_held_out"]) == (1.0, False)
            assert figures["auroc"] == 1.0
        assert nothing_is_left()

    @pytest.mark.slow
    def test_several_files_are_each_judged_by_the_others(self, two_houses: Path, tmp_path: Path) -> None:
        other, plot = tmp_path / "porch.json", tmp_path / "plot.svg"
        other.write_text(json.dumps(locomo(("Who painted the porch green?", ["D2:3"], 4))))

        shown = run("learn_confidence", other, f"--plot={plot}", str(two_houses))

        assert shown.count("held out") == 3
        assert "porch (held out)" in plot.read_text()
        assert "questions, apart (held out)" in plot.read_text()
        assert "house" not in json.dumps(run_json("learn_confidence", other))

    def test_weights_of_another_model_are_not_written(self, two_houses: Path) -> None:
        before = CONFIDENCE_FILE.read_bytes()

        with pytest.raises(CommandError, match=r"--write replaces the shipped weights.*MEMORY_CONFIDENCE_WEIGHTS"):
            run("learn_confidence", two_houses, "--write")

        assert CONFIDENCE_FILE.read_bytes() == before

    def test_weights_of_another_model_make_its_similarities_count(
        self, two_houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "weights.json"
        of_another, of_bundled = (
            Query(text="ferns?", model=model, vector=np.ones(3, dtype=np.float32))
            for model in (embedding_provider().model, BUNDLED_MODEL)
        )
        before = [compares_meaning(each) for each in (of_another, of_bundled)]

        run("learn_confidence", two_houses, f"--to={path}")

        monkeypatch.setattr(conf, "CONFIDENCE_WEIGHTS", str(path))
        learned_calibrations.cache_clear()
        now = [compares_meaning(each) for each in (of_another, of_bundled)]
        learned_calibrations.cache_clear()
        assert (before, now) == ([False, True], [True, False])

    def test_learning_is_refused_if_nothing_is_found(self, tmp_path: Path) -> None:
        path = write(tmp_path, locomo(("Porch?", ["D2:3"], 5)))

        with pytest.raises(CommandError, match="nothing to learn from"):
            run("learn_confidence", path)

        assert nothing_is_left()


def test_written_weights_can_be_read(tmp_path: Path) -> None:
    path, learned = tmp_path / "confidence.json", learn_calibrations(separable("one"), model="some-model")

    write_weights(path, document_of(learned, separable("one")))

    assert read_calibrations(path).model == "some-model"
    assert read_calibrations(path).with_meaning.words == pytest.approx(learned.with_meaning.words, abs=1e-3)
    with pytest.raises(CommandError, match="cannot be written"):
        write_weights(tmp_path / "none" / "confidence.json", {})
