"""Learning the worth of claims from judged talk: what is read, how weights are judged, and the command."""

from pathlib import Path

import numpy as np
import pytest
from django.core.management.base import CommandError

from lab.evaluation import worth
from lab.evaluation.logistic import fit_logistic
from lab.evaluation.worth import judge_files, learn_worth, read_judged
from lab.management.commands import learn_worth as command
from memory.extraction.rules.verdicts import WORTH_FLOOR
from memory.extraction.worth import WORTH_FILE, features_of, shipped_worth, worth_of_document
from memory_project.embedded.paths import PROJECT
from tests.lab.commands import run, run_json
from tests.memory.extraction.open_statements import own_words

TALK = """
@ a-1 chat Ana 2026-03-04T18:20
U: we never deploy to prod after 3pm, house rule. I pushed the wrong branch just before lunch
+ The user never deploys to prod after 3pm, house rule
~ The user pushed the wrong branch just before lunch
A: ok
U: my tutor wants every figure in blue or orange, and my cat walks over the keys with mud on four feet
+ The user's tutor wants every figure in blue or orange
- What nobody makes of it
A: ok
"""
SAMPLE = PROJECT / "docs" / "sample" / "judged-talk"


def test_the_weights_are_where_the_slope_is_zero() -> None:
    table = np.array([[1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [-1.0, 1.0]])
    wanted, shares, ridge = np.array([1.0, 0.0, 0.0, 1.0]), np.full(4, 0.25), np.array([0.1, 0.0])
    weights = fit_logistic(table, wanted, shares, ridge)
    likely = 1 / (1 + np.exp(-table @ weights))
    np.testing.assert_allclose(table.T @ (shares * (likely - wanted)) + ridge * weights, 0, atol=1e-9)


def test_claims_have_the_verdicts_of_their_turn_and_others_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(TALK, encoding="utf-8")
    judged = read_judged(path)
    assert dict(zip(judged.claims, judged.is_good, strict=True)) == {
        "The user never deploys to prod after 3pm, house rule": 1,
        "The user pushed the wrong branch just before lunch": 0,
        "The user's tutor wants every figure in blue or orange": 1,
    }
    # one claim is about a cat
    assert (judged.turns, judged.unjudged) == (2, 1)


def test_each_file_is_judged_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "FOLDS", 2)
    files = [read_judged(SAMPLE / f"{name}.txt") for name in ("c", "a", "b", "a")]
    figures = judge_files(files)
    assert [each.file for each in figures] == [name for name in "caba" for _ in range(2)]
    assert all(each.is_held_out for each in figures)


@pytest.mark.parametrize(
    "line", ["Hello", "U: before any conversation", "+ before any turn", "@ a-1 chat 2026-03-04T18:20"]
)
def test_anything_else_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(CommandError, match="line 2"):
        run("learn_worth", path)


def test_a_verdict_on_what_the_assistant_said_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(f"{TALK.strip()}\n+ ok\n", encoding="utf-8")
    with pytest.raises(CommandError, match=f"line {len(TALK.strip().splitlines()) + 1}"):
        run("learn_worth", path)


def test_talk_without_both_sorts_teaches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text("@ a-1 chat Ana 2026-03-04T18:20\nU: hello\nA: ok\n", encoding="utf-8")
    with pytest.raises(CommandError, match="claims that are good"):
        run("learn_worth", path)


def test_a_file_is_judged_by_weights_that_do_not_know_it() -> None:
    files = [read_judged(SAMPLE / f"{name}.txt") for name in ("a", "b")]
    for figures, (file, other) in zip(judge_files(files)[::2], (files, files[::-1]), strict=True):
        own = ~file.by_rule
        kept = (learn_worth([other]).of(file.features) >= WORTH_FLOOR)[own]
        assert (figures.file, figures.is_held_out, figures.kept) == (file.file, True, kept.sum())
        assert figures.right == (kept & (file.is_good[own] > 0)).sum()


@pytest.mark.slow
def test_the_shipped_weights_are_what_the_command_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "worth.json"
    monkeypatch.setattr(command.Command, "weights_file", written)
    first, *others = sorted(SAMPLE.glob("*.txt"))
    report = run_json("learn_worth", first, "--write", *map(str, others))
    claims = own_words("The user gets up at five since January", "The user is done")
    shipped = shipped_worth().of(features_of(claims))
    again = worth_of_document(report).of(features_of(claims))
    np.testing.assert_allclose(again, shipped, atol=0.02)
    assert written.stat().st_size == pytest.approx(WORTH_FILE.stat().st_size, rel=0.05)
    assert report["learned"]["files"] == len(list(SAMPLE.glob("*.txt")))


def test_the_command_shows_a_table(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(TALK, encoding="utf-8")
    assert "own words" in run("learn_worth", path)
