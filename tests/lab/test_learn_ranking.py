"""`manage.py learn_ranking`: weights out of questions, a file of them where asked, and nothing left behind."""

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from werkzeug import Response

from lab.evaluation.ranker import L2, OF_OTHERS
from lab.management.commands import learn_ranking
from memory.retrieval.ranking import WEIGHTS_FILE, learned_weights
from memory.retrieval.ranking.registers import REGISTERS
from memory.retrieval.ranking.signals import SIGNALS
from tests.embedding_server import EmbeddingServer
from tests.lab.commands import nothing_is_left, run, run_json
from tests.lab.sets import asked, locomo, native, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "tiny_embedder")]

ABOUT_TURNS = locomo(("Who painted the porch green?", ["D2:3"], 4), ("Is the oven thermostat broken?", ["D1:1"], 4))
ABOUT_ALL = native(questions=[asked("When does Mara water ferns?", "f1"), asked("repot all orchids", "g1")])


def test_turn_weights_are_learned_from_a_conversation(tmp_path: Path) -> None:
    report = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))

    assert set(report["turns"]["talk"]) <= set(SIGNALS)
    assert report["turns"]["talk"]["words"] > 0
    assert report["others"] == {name: weight for name, weight in learned_weights().others.items() if weight}
    assert report["learnt"]["questions"] == dict.fromkeys([*REGISTERS, "others", "extracted"], 0) | {"talk": 2}
    assert report["learnt"]["recall@10"]["fitted"] == 1.0
    assert nothing_is_left()


def test_several_files_are_learned_from_together(tmp_path: Path) -> None:
    all_kinds = tmp_path / "all_kinds.json"
    all_kinds.write_text(json.dumps(ABOUT_ALL))

    report = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS), str(all_kinds))

    none = dict.fromkeys([*REGISTERS, "others", "extracted"], 0)
    assert report["learnt"]["questions"] == none | {"talk": 2, "others": 2}
    assert report["learnt"]["samples"] == 2
    assert [row["name"] for row in report["figures"]] == ["as shipped", "fitted", "held out"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_extracted_knowledge_is_learned_from_the_same_questions_asked_again(tmp_path: Path) -> None:
    said = [{"key": "t1", "text": "I live in Porto."}, {"key": "t2", "text": "The ferns look dry today."}]
    asks = [asked("Where do I live?", "t1"), asked("How are the ferns?", "t2")]
    sample = {"name": "home", "user": "ana", "conversations": [{"id": "c", "turns": said}], "questions": asks}
    path = write(tmp_path, {"samples": [sample]})

    plain, report = run_json("learn_ranking", path), run_json("learn_ranking", path, "--extract")

    assert plain["learnt"]["questions"]["extracted"] == 0
    assert report["learnt"]["questions"]["extracted"] == 2
    assert (report["turns"], report["others"]) == (plain["turns"], plain["others"])
    assert report["extracted"] != plain["extracted"]
    assert nothing_is_left()


def test_a_table_shows_weights_and_figures(tmp_path: Path) -> None:
    report = run("learn_ranking", write(tmp_path, ABOUT_TURNS))

    for shown in ("covers", "cross entropy", "single-hop", "held out", "100.0"):
        assert shown in report


@pytest.mark.slow
def test_weights_are_written_to_the_given_path_and_name_no_sample(tmp_path: Path) -> None:
    path, shipped = tmp_path / "weights.json", WEIGHTS_FILE.read_bytes()

    report = run_json(
        "learn_ranking", write(tmp_path, ABOUT_TURNS), f"--write-to={path}", "--date=2026-01-02", "--l2=2"
    )

    written = json.loads(path.read_text())
    assert written == {name: report[name] for name in ("turns", "others", "extracted", "learnt")}
    assert (written["learnt"]["date"], written["learnt"]["l2"]) == ("2026-01-02", 2.0)
    assert "house" not in path.read_text()
    assert WEIGHTS_FILE.read_bytes() == shipped


def test_the_date_of_weights_defaults_to_today(tmp_path: Path) -> None:
    before = datetime.now(UTC).date().isoformat()

    report = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))["learnt"]

    assert before <= report["date"] <= datetime.now(UTC).date().isoformat()
    assert report["l2"] == L2


def test_the_same_questions_teach_the_same_weights(tmp_path: Path) -> None:
    path = write(tmp_path, ABOUT_TURNS)

    first, second = (run_json("learn_ranking", path, "--date=2026-01-02") for _ in range(2))

    assert first == second


def test_learning_is_refused_if_no_question_can_teach(tmp_path: Path) -> None:
    unanswered = locomo(("Porch?", ["D2:3"], 5))

    with pytest.raises(CommandError, match="nothing to learn from"):
        run("learn_ranking", write(tmp_path, unanswered))

    assert nothing_is_left()


def test_weights_that_no_question_teaches_are_kept_and_listed(tmp_path: Path) -> None:
    report = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))

    kept = report["learnt"]["kept"]
    # nothing of a conversation stands alone, and no question has a phrase
    assert set(kept["others"]) == set(OF_OTHERS)
    assert {"no_turn", "quoted"} <= set(kept["talk"])
    assert "words" not in kept["talk"]
    shipped = learned_weights().turns["talk"]
    assert {name: report["turns"]["talk"].get(name, 0.0) for name in kept["talk"]} == {
        name: shipped.get(name, 0.0) for name in kept["talk"]
    }


def test_questions_that_no_other_question_can_teach_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path, native(questions=[asked("When does Mara water ferns?", "f1")]))

    report, shown = run_json("learn_ranking", path), run("learn_ranking", path)

    assert report["learnt"]["untaught"] == 1
    assert "whose weights nothing else taught: 1." in shown
    assert "as it was" in shown


def test_writing_the_shipped_weights_asks_for_a_restart_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learn_ranking.Command, "weights_file", tmp_path / "weights.json")

    run("learn_ranking", write(tmp_path, ABOUT_TURNS), "--write")

    assert json.loads((tmp_path / "weights.json").read_text())["learnt"]["samples"] == 1
    assert "restart web servers and workers" in capsys.readouterr().err.splitlines()[-1]
    assert "have to be restarted" in learn_ranking.EPILOG


def test_write_and_write_to_cannot_be_combined(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not allowed with"):
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), "--write", f"--write-to={tmp_path / 'weights.json'}")


@pytest.mark.parametrize("l2", ["0", "-1", "inf", "nan", "much"])
def test_an_l2_cost_must_be_a_finite_number_above_zero(tmp_path: Path, l2: str) -> None:
    with pytest.raises(CommandError, match="--l2"):
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), f"--l2={l2}")


def test_an_unwritable_path_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written: No such file"):
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), f"--write-to={tmp_path / 'none' / 'weights.json'}")


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.django_db(transaction=True)
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, embedding_server: EmbeddingServer) -> None:
    def interrupt(texts: list[str]) -> Response:
        if any("thermostat broken?" in text for text in texts):
            os.kill(os.getpid(), signal.SIGINT)
        return embedding_server.answer_well(texts)

    embedding_server.answer = interrupt

    with pytest.raises(SystemExit) as stop:
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), f"--write-to={tmp_path / 'weights.json'}")

    assert stop.value.code == 130
    assert not (tmp_path / "weights.json").exists()
    assert nothing_is_left()
