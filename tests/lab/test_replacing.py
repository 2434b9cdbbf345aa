"""Learning when a later statement replaces an earlier one: what the weights separate, and how they are judged."""

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from lab.evaluation.files import open_file
from lab.evaluation.replacing import (
    SMALL_SIZES,
    ComparedPairs,
    join_pairs,
    judge_held_out,
    learn_replacements,
    small_samples,
)
from memory.extraction.replacement import FEATURES, INTERCEPT, WEIGHTS
from memory_project.installation import PROJECT

UPDATES = PROJECT / "docs/sample/updates.json"
CHANGE = FEATURES.index("has_change")


def sample(name: str, *, missed: int = 0) -> ComparedPairs:
    """Return 40 pairs, of which those with a phrase of change are replacements."""
    features = np.zeros((40, len(FEATURES)))
    features[:10, CHANGE] = 1.0
    return ComparedPairs(
        sample=name, features=features, is_replacement=features[:, CHANGE].copy(), share=1.0, missed=missed
    )


def test_learned_weights_separate_replacements_from_other_pairs() -> None:
    pairs = sample("one")

    probabilities = learn_replacements([pairs]).probabilities(pairs.features)

    assert probabilities[:10].min() > 0.5 > probabilities[10:].max()


def test_a_sample_is_judged_by_what_the_others_teach_and_missed_replacements_count() -> None:
    [figures] = judge_held_out([sample("one"), sample("two", missed=20)], least=[0.5])

    assert (figures.precision, figures.recall) == (1.0, 0.5)


def test_small_samples_have_one_question_each_and_no_other_replacement() -> None:
    whole = open_file(UPDATES)[0]
    replaced = {key for question in whole.questions for key in question.replaced}

    small = list(small_samples(whole))

    assert len(small) >= len([question for question in whole.questions if question.replaced])
    for each in small:
        [question] = each.questions
        kept = {*question.answers, *question.replaced}
        assert kept <= set(each.ids)
        assert len(each.ids) <= len(kept) + max(SMALL_SIZES)
        assert set(each.ids) & replaced <= kept
        assert {turn.id for talk in each.talks for turn in talk.turns} == set(each.ids.values())
        assert set(each.ids.values()).isdisjoint(whole.ids.values())


def test_a_sample_and_its_small_samples_are_left_out_together() -> None:
    joined = join_pairs([sample("one"), sample("one-0", missed=2)])

    assert (joined.sample, len(joined.features), joined.is_replacement.sum(), joined.missed) == ("one", 80, 20, 2)


def test_the_shipped_weights_have_one_value_for_each_feature() -> None:
    assert len(WEIGHTS) == len(FEATURES)
    assert np.isfinite([INTERCEPT, *WEIGHTS]).all()


def test_a_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("learn_replacements", "missing.json")
