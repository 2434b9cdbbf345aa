"""`manage.py evaluate_recall` with what else it can find out: other weights, other parts, other budgets."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from lab.evaluation.ablation import other_plans
from lab.evaluation.budgets import first_tokens
from memory.retrieval.techniques import choose_plan
from tests.lab.commands import nothing_is_left, run, run_json
from tests.lab.sets import PORCH, locomo, write
from tests.memory.candidates import found

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "tiny_embedder")]

HOUSE = locomo(("Who painted the porch green?", ["D2:3"], 4), ("Is the oven broken?", ["D1:1"], 1))
BARN = [{**locomo(("What is green?", ["D2:3"], 4), session_1=PORCH)[0], "sample_id": "barn"}]
ADVERSARIAL = locomo(("Who painted the porch green?", ["D2:3"], 4), ("Oven?", ["D1:1"], 5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, [*HOUSE, *BARN])


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.mark.slow
def test_leave_one_out_asks_each_sample_with_weights_learned_on_the_others(path: Path) -> None:
    report = run_json("evaluate_recall", path, "--leave-one-out")

    for asked in (report, report["left_out"], report["fitted"]):
        assert asked["all"]["questions"] == 3
        assert names(asked["samples"]) == ["barn", "house"]
        assert asked["all"]["figures"]["recall@10"]["mean"] == 1.0
    assert nothing_is_left()


def test_tables_state_which_weights_they_are_based_on(path: Path) -> None:
    report = run("evaluate_recall", path, "--leave-one-out")

    assert "learned on the other samples" in report
    assert "fitted on these very samples" in report


@pytest.mark.slow
def test_an_ablation_reports_each_signal_alone_and_left_out(path: Path) -> None:
    report = run_json("evaluate_recall", path, "--ablate")["ablation"]

    assert names(report["signals"]) == ["all signals", "words and meaning"]
    assert names(report["alone"]) == names(report["without"])
    assert {"words", "meaning", "sitting"} <= set(names(report["alone"]))
    # nothing of the samples is anything but a turn
    assert "no_turn" not in names(report["alone"])
    assert all(0 <= row["all"] <= 1 and set(row["types"]) == {"multi-hop", "single-hop"} for row in report["alone"])


def test_an_ablation_leaves_out_techniques_one_by_one(path: Path) -> None:
    report = run_json("evaluate_recall", path, "--ablate")

    rows = report["ablation"]["techniques"]
    assert rows[0]["name"] == "as asked"
    assert rows[0]["all"] == report["all"]["figures"]["recall@10"]["mean"]
    assert {"-lexical", "-vector", "standardized", "rrf", "words alone", "meaning alone"} <= set(names(rows))
    # asked of a conversation, which has no links, it did nothing
    assert "-relationship" not in names(rows)


def test_a_technique_that_was_switched_off_stays_off_in_an_ablation() -> None:
    plans = other_plans(["-diversity", "lexical"], worked={"lexical", "salience"})

    # the only retriever cannot be left out
    assert list(plans) == ["-salience", "standardized", "rrf", "words alone", "meaning alone"]
    assert "diversity" not in plans["rrf"].selectors
    assert [retriever.name for retriever in plans["-salience"].retrievers] == ["lexical"]


def test_a_plan_of_words_alone_uses_no_other_technique() -> None:
    plan = other_plans([], worked=())["words alone"]

    assert (plan.rewriters, plan.scorers, plan.selectors, plan.fusion) == ({}, {}, {}, "standardized")
    assert [retriever.name for retriever in plan.retrievers] == ["lexical"]
    assert choose_plan().rewriters


@pytest.mark.slow
def test_an_ablation_chart_is_written_to_the_given_path(path: Path, tmp_path: Path) -> None:
    report = run("evaluate_recall", path, "--ablate", f"--plot={tmp_path / 'plot.svg'}")

    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    assert "Each signal alone" in report


def test_budgets_are_evaluated_for_every_plan_and_for_prompt_contexts(path: Path) -> None:
    report = run_json("evaluate_recall", path, "--budgets")["budgets"]

    plans = ["learned", "standardized", "rrf", "words alone", "meaning alone"]
    assert [(each["form"], each["plan"]) for each in report] == [
        *(("one after the other", plan) for plan in plans),
        ("/context", "learned"),
    ]
    assert all(list(each["found"]) == ["250", "500", "1000", "2000"] for each in report)
    assert report[0]["found"]["250"] == 1.0


def test_a_token_budget_ends_at_the_first_memory_that_does_not_fit() -> None:
    ranked = [found(number, token_count=count) for number, count in enumerate((100, 100, 60, 10))]

    assert first_tokens(ranked, 250) == [ranked[0].id, ranked[1].id]
    assert first_tokens(ranked, 99) == []


def test_an_ablation_leaves_out_adversarial_questions(tmp_path: Path) -> None:
    report = run_json("evaluate_recall", write(tmp_path, ADVERSARIAL), "--ablate", "--budgets")

    assert set(report["ablation"]["techniques"][0]["types"]) == {"single-hop"}


@pytest.mark.slow
def test_questions_that_no_other_sample_can_teach_are_counted(tmp_path: Path) -> None:
    # no word of the other sample's question is found, so that it teaches nothing
    barn = [{**locomo(("xyzzy?", ["D2:3"], 4), session_1=PORCH)[0], "sample_id": "barn"}]
    path = write(tmp_path, [*HOUSE, *barn])

    report = run_json("evaluate_recall", path, "--leave-one-out", "--techniques=lexical")
    shown = run("evaluate_recall", path, "--leave-one-out", "--techniques=lexical")

    assert report["left_out"]["untaught"] == 2
    assert "whose weights nothing else taught: 2." in shown


@pytest.mark.parametrize("options", [[], ["--ablate"], ["--budgets"]], ids=["plain", "ablated", "budgets"])
def test_a_file_of_only_adversarial_questions_is_refused(tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(CommandError, match="no question but adversarial ones"):
        run("evaluate_recall", write(tmp_path, locomo(("Oven?", ["D1:1"], 5))), *options)

    assert nothing_is_left()


def test_leave_one_out_requires_two_samples_with_non_adversarial_questions(tmp_path: Path) -> None:
    barn = [{**locomo(("Green?", ["D2:3"], 5), session_1=PORCH)[0], "sample_id": "barn"}]

    with pytest.raises(CommandError, match="two of them have to have questions"):
        run("evaluate_recall", write(tmp_path, [*HOUSE, *barn]), "--leave-one-out")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--leave-one-out"], "two of them have to have questions"), (["--plot=plot.svg"], "ask for both")],
    ids=["one sample", "plot of nothing"],
)
def test_impossible_options_are_reported_in_one_sentence(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("evaluate_recall", write(tmp_path, HOUSE), *options)

    assert nothing_is_left()


def native(tmp_path: Path, *keys: str) -> Path:
    """Write a sample for each key of its only turn."""
    path = tmp_path / "native.json"
    samples = [
        {
            "name": f"sample {number}",
            "conversations": [{"id": f"talk {number}", "turns": [{"key": key, "text": f"{key} is green"}]}],
            "questions": [{"text": f"What is {key}?", "answers": [key], "type": "colour"}],
        }
        for number, key in enumerate(keys)
    ]
    path.write_text(json.dumps({"samples": samples}))
    return path


def test_samples_can_be_stored_together(tmp_path: Path) -> None:
    report = run_json("evaluate_recall", native(tmp_path, "porch", "barn"), "--together")

    assert names(report["samples"]) == ["together"]
    assert (report["all"]["questions"], report["all"]["figures"]["recall@10"]["mean"]) == (2, 1.0)


def test_samples_with_equal_keys_cannot_be_stored_together(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="unique in the whole file"):
        run("evaluate_recall", native(tmp_path, "porch", "porch"), "--together")
