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
from memory.retrieval.ranking import WEIGHTS_FILE, learnt_weights
from memory.retrieval.ranking.signals import SIGNALS
from tests.embedding_server import EmbeddingServer
from tests.lab.commands import nothing_is_left, run, run_json
from tests.lab.sets import asked, locomo, native, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "tiny_embedder")]

ABOUT_TURNS = locomo(("Who painted the porch green?", ["D2:3"], 4), ("Is the oven thermostat broken?", ["D1:1"], 4))
ABOUT_ALL = native(questions=[asked("When does Mara water ferns?", "f1"), asked("repot all orchids", "g1")])


def test_turns_are_learnt_from_a_conversation(tmp_path: Path) -> None:
    told = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))

    assert set(told["turns"]) <= set(SIGNALS)
    assert told["turns"]["words"] > 0
    assert told["others"] == {name: weight for name, weight in learnt_weights().others.items() if weight}
    assert told["learnt"]["questions"] == {"turns": 2, "others": 0}
    assert told["learnt"]["recall@10"]["fitted"] == 1.0
    assert nothing_is_left()


def test_files_are_learnt_from_together(tmp_path: Path) -> None:
    all_kinds = tmp_path / "all_kinds.json"
    all_kinds.write_text(json.dumps(ABOUT_ALL))

    told = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS), str(all_kinds))

    assert told["learnt"]["questions"] == {"turns": 2, "others": 2}
    assert told["learnt"]["samples"] == 2
    assert [row["name"] for row in told["figures"]] == ["as shipped", "fitted", "held out"]


def test_a_table_shows_weights_and_figures(tmp_path: Path) -> None:
    told = run("learn_ranking", write(tmp_path, ABOUT_TURNS))

    for shown in ("covers", "cross entropy", "single-hop", "held out", "100.0"):
        assert shown in told


def test_weights_are_written_where_asked_and_name_no_sample(tmp_path: Path) -> None:
    path, shipped = tmp_path / "weights.json", WEIGHTS_FILE.read_bytes()

    told = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS), f"--write-to={path}", "--date=2026-01-02", "--l2=2")

    written = json.loads(path.read_text())
    assert written == {name: told[name] for name in ("turns", "others", "learnt")}
    assert (written["learnt"]["date"], written["learnt"]["l2"]) == ("2026-01-02", 2.0)
    assert "house" not in path.read_text()
    assert WEIGHTS_FILE.read_bytes() == shipped


def test_without_a_date_it_is_today(tmp_path: Path) -> None:
    before = datetime.now(UTC).date().isoformat()

    told = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))["learnt"]

    assert before <= told["date"] <= datetime.now(UTC).date().isoformat()
    assert told["l2"] == L2


def test_the_same_questions_teach_the_same_weights(tmp_path: Path) -> None:
    path = write(tmp_path, ABOUT_TURNS)

    first, second = (run_json("learn_ranking", path, "--date=2026-01-02") for _ in range(2))

    assert first == second


def test_nothing_is_learnt_where_nothing_was_found(tmp_path: Path) -> None:
    unanswered = locomo(("Porch?", ["D2:3"], 5))

    with pytest.raises(CommandError, match="nothing to learn from"):
        run("learn_ranking", write(tmp_path, unanswered))

    assert nothing_is_left()


def test_what_nothing_teaches_is_kept_and_named(tmp_path: Path) -> None:
    told = run_json("learn_ranking", write(tmp_path, ABOUT_TURNS))

    kept = told["learnt"]["kept"]
    # nothing of a conversation stands alone, and no question has a phrase
    assert set(kept["others"]) == set(OF_OTHERS)
    assert {"no_turn", "quoted"} <= set(kept["turns"])
    assert "words" not in kept["turns"]
    shipped = learnt_weights().turns
    assert {name: told["turns"].get(name, 0.0) for name in kept["turns"]} == {
        name: shipped.get(name, 0.0) for name in kept["turns"]
    }


def test_questions_that_nothing_else_is_like_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, native(questions=[asked("When does Mara water ferns?", "f1")]))

    told, shown = run_json("learn_ranking", path), run("learn_ranking", path)

    assert told["learnt"]["untaught"] == 1
    assert "whose weights nothing else taught: 1." in shown
    assert "as it was" in shown


def test_processes_have_to_be_restarted_after_weights_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learn_ranking, "WEIGHTS_FILE", tmp_path / "weights.json")

    run("learn_ranking", write(tmp_path, ABOUT_TURNS), "--write")

    assert json.loads((tmp_path / "weights.json").read_text())["learnt"]["samples"] == 1
    assert "restart web servers and workers" in capsys.readouterr().err.splitlines()[-1]
    assert "have to be restarted" in learn_ranking.EPILOG


def test_weights_are_written_in_one_place(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not allowed with"):
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), "--write", f"--write-to={tmp_path / 'weights.json'}")


@pytest.mark.parametrize("l2", ["0", "-1", "inf", "nan", "much"])
def test_a_cost_is_a_number_above_zero(tmp_path: Path, l2: str) -> None:
    with pytest.raises(CommandError, match="--l2"):
        run("learn_ranking", write(tmp_path, ABOUT_TURNS), f"--l2={l2}")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
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
