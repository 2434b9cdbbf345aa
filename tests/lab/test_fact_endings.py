"""Learning when a fact ends because its statement was replaced: weights, figures, and the command."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from lab.evaluation.fact_endings import EndingFigures, FactEndings, judge, judge_files, learn_fact_endings
from lab.management.commands import learn_fact_endings as command
from memory.extraction.fact_endings import FEATURES
from memory_project.embedded.paths import PROJECT

PLAIN = PROJECT / "docs/sample/plain-updates.json"


def endings(file: str = "one", *, wrong: int = 0) -> FactEndings:
    """Return 20 facts, of which the first ten end: all but `wrong` of them with a strong link. Each is in two rows."""
    facts = [number for number in range(20) for _row in range(2)]
    features = np.zeros((40, len(FEATURES)))
    features[2 * wrong : 20, 0] = 3.0
    return FactEndings(file=file, facts=facts, features=features, is_ended=np.array([1.0, 0.0] * 10 + [0.0] * 20))


def test_what_is_common_to_facts_that_end_gets_weight() -> None:
    learned = learn_fact_endings([endings()])

    strong, weak = (learned.probability([link, *[0.0] * (len(FEATURES) - 1)]) for link in (3.0, 0.0))
    assert strong == pytest.approx(0.5, abs=0.05)
    assert weak < 0.1


def test_a_fact_counts_once_and_is_ended_rightly_if_one_of_the_turns_that_end_it_replaced_its_own() -> None:
    always = learn_fact_endings([endings()])._replace(intercept=9.0)

    assert judge(endings(), always) == EndingFigures(file="one", replaced=10, ended=10, wrongly=10)


def test_each_file_is_judged_by_what_the_others_teach() -> None:
    assert [each.file for each in judge_files([endings("one"), endings("two")])] == ["one", "two"]
    assert judge_files([endings()]) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("empty_redis")
def test_the_command_learns_from_a_file_and_writes_the_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command.Command, "weights_file", tmp_path / "weights.json")

    printed = io.StringIO()
    call_command("learn_fact_endings", str(PLAIN), "--write", "--held-out", str(PLAIN), stdout=printed)

    written = json.loads((tmp_path / "weights.json").read_text())
    assert list(written["weights"]) == list(FEATURES)
    assert written["weights"]["link"] > 0
    assert "plain-updates" in printed.getvalue()


def test_a_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("learn_fact_endings", "missing.json")
