"""The worth of claims: what is kept of them, and what is dropped."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_django import Settings

from memory.checks import check_extractor
from memory.extraction.grounding import word_stems
from memory.extraction.knowledge import MAX_EXTRACTED_ITEMS, Chunk, KnownFact
from memory.extraction.model_extractor import knowledge_extractor
from memory.extraction.rules import RuleExtractor
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.verdicts import MAX_JUDGED
from memory.extraction.worth import WORDS, Worth, features_of, shipped_worth, worth_of
from memory.providers.language_models import language_model
from tests.memory.extraction.open_statements import own_words
from tests.memory.extraction.spoken import turn


def kept(*texts: str, speaker: str = "", keeps: Sequence[str] | None = None, known: Sequence[str] = ()) -> list[str]:
    """Return the claims that are extracted by the shipped judge, or by one that keeps these claims alone."""

    def judge(claims: Sequence[Statement]) -> NDArray[np.float64]:
        return worth_of(claims) if keeps is None else np.array([float(each.claim in keeps) for each in claims])

    chunk = Chunk(turns=[turn(text, speaker=speaker, index=index) for index, text in enumerate(texts)])
    extraction = RuleExtractor(judge).extract(chunk, meter=lambda usage: None, deadline_seconds=1)
    return [fact.claim for fact in extraction.facts]


@pytest.mark.parametrize(
    ("lasting", "momentary"),
    [
        ("The user does night shifts on the renal unit every second week", "The user does not know what to say"),
        ("The user's mother does not drive in the dark", "The user's mother is asleep on the sofa"),
        ("Invoices are sent from the billing service only, never from the shop", "The invoice test is red again"),
        ("The user takes Marevan for an irregular heartbeat", "The user takes another coffee"),
        ("Raw amounts are in bani and the marts are in lei", "The second row is wrong in the output"),
        ("The user does not read email on weekends", "The user does not see the button on the page"),
        ("Nothing may be merged without the approval of Henrike", "Nothing is printed to the console"),
    ],
)
def test_what_lasts_is_worth_more_than_what_is_of_the_moment(lasting: str, momentary: str) -> None:
    more, less = shipped_worth().of(features_of(own_words(lasting, momentary)))
    assert more > less + 0.05


def test_worth_is_between_0_and_1_and_depends_on_nothing_else_in_the_batch() -> None:
    claims = own_words("The user gets up at five since January", "The user is done", "Raw is in bani")
    together = shipped_worth().of(features_of(claims))
    alone = [shipped_worth().of(features_of([claim]))[0] for claim in claims]
    assert ((together > 0) & (together < 1)).all()
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_the_worth_is_a_logistic_function_of_the_numbers_and_of_their_products() -> None:
    # a vector of two numbers, of which the first is kept for products, and one word that matches
    features = np.zeros((1, 2 + len(WORDS)))
    features[0, :3] = 0.5, -1.0, 1.0
    linear, pairs = np.zeros(2 + len(WORDS)), np.zeros((1 + len(WORDS), 1 + len(WORDS)))
    linear[:3] = 1.0, 0.25, -0.5
    pairs[0, 0], pairs[0, 1], pairs[1, 1] = 2.0, -1.0, 0.8
    worth = Worth(linear=linear, directions=np.array([[1.0, 0.0]]), pairs=pairs, intercept=0.1)
    # 0.5 - 0.25 - 0.5 + 0.1, and the products of 0.5 and 1: 0.5 - 0.5 + 0.8
    np.testing.assert_allclose(worth.of(features), 1 / (1 + np.exp(-0.65)))


def test_what_is_said_of_the_moment_is_worth_less() -> None:
    claim = "The user needs the slides for 20 May 2026"
    then, now = own_words(claim) + own_words(claim, sentence="I need the slides for tomorrow")
    assert shipped_worth().of(features_of([now])) < shipped_worth().of(features_of([then]))


def test_the_numbers_of_a_claim_say_what_it_kept_of_its_sentence() -> None:
    sentence = "I paint boats, not cars, or do I?"
    [claim] = own_words("The user paints boats", sentence=sentence)
    numbers = dict(zip(WORDS, features_of([claim])[0, -len(WORDS) :], strict=True))
    assert [numbers[name] for name in ("negated", "negation_lost", "asked", "exclaimed")] == [0, 1, 1, 0]
    # "paint" and "boat"
    assert numbers["share_of_sentence"] == pytest.approx(2 / len(word_stems(sentence)))
    assert numbers["sentence_length"] == 8 / 20


def test_nothing_is_judged_without_claims() -> None:
    assert worth_of([]).shape == (0,)


def test_a_claim_in_the_speakers_own_words_is_kept_if_it_is_worth_it() -> None:
    said = "we never deploy to prod after 3pm, house rule since January. I nodded wrongly, and with great conviction."
    assert kept(said) == ["The user never deploys to prod after 3pm, house rule since January"]


def test_what_else_a_turn_says_changes_no_verdict() -> None:
    talk = "The bus was late again and I read half a chapter. My tea is cold now. " * 3
    said = "I work from home on Fridays."
    assert set(kept(said)) <= set(kept(f"{talk}{said} {talk}"))
    assert kept(said)


def test_a_claim_of_a_rule_is_dropped_if_it_is_not_worth_it() -> None:
    text = "The staging db runs on pg 15."
    assert kept(text, keeps=["The staging db runs on pg 15"]) == ["The staging db runs on pg 15"]
    assert kept(text, keeps=[]) == []


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I live in Porto.", "The user lives in Porto"),
        ("My sister is Maria.", "The user's sister is Maria"),
        ("I'm allergic to peanuts.", "The user is allergic to peanuts"),
        ("I'm a nurse.", "The user is a nurse"),
        ("Maria owns billing.", "Maria owns billing"),
    ],
)
def test_homes_relatives_work_and_owners_are_not_judged(text: str, claim: str) -> None:
    assert kept(text, keeps=[]) == [claim]


def test_plain_settings_and_what_says_that_it_changed_are_kept_and_measurements_are_not() -> None:
    assert kept("The timeout is 30 seconds.", keeps=[]) == ["The timeout is 30 seconds"]
    assert kept("The dinner moved to 8 pm.", keeps=[]) == ["The dinner moved to 8 pm"]
    assert kept("My eyes are like two boiled sweets today.") == []


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Batch size is 1000 now, not 500.", "Batch size is 1000"),
        ("We raised the request timeout to 60 seconds.", "The user raised the request timeout to 60 seconds"),
        ("We upgraded to Node 22.", "The user upgraded to Node 22"),
    ],
)
def test_what_replaces_another_value_is_not_judged_though_that_one_is_not_known(text: str, claim: str) -> None:
    assert kept(text, keeps=[]) == [claim]


@pytest.mark.parametrize(
    "text", ["The pump is 20 years old.", "We raised the flag to the top.", "We moved to 2 tables."]
)
def test_what_replaces_nothing_is_judged(text: str) -> None:
    assert kept(text, keeps=[]) == []


def test_what_changes_another_fact_and_what_it_changes_are_not_judged() -> None:
    said = ("The staging db runs on pg 15.", "Correction: the staging db runs on pg 16 now.")
    chunk = Chunk(turns=[turn(text, index=index) for index, text in enumerate(said)])
    plain = RuleExtractor().extract(chunk, meter=lambda usage: None, deadline_seconds=1)
    assert any(fact.contradicts or fact.corrects for fact in plain.facts)
    assert kept(*said, keeps=[]) == [fact.claim for fact in plain.facts]


def test_a_dropped_claim_leaves_the_numbers_of_the_others_alone() -> None:
    house_rule = "The user never deploys to prod after 3pm, house rule since January"
    said = ("The lamp is off.", "I love cheese.", "we never deploy to prod after 3pm, house rule since January")
    assert kept(*said, keeps=[house_rule]) == ["The user loves cheese", house_rule]


def test_a_claim_in_the_speakers_own_words_changes_no_fact() -> None:
    chunk = Chunk(
        turns=[turn("we are in Berlin for the fair each summer")],
        known=[KnownFact(number=1, claim="The user lives in Porto")],
    )
    extractor = RuleExtractor(lambda claims: np.ones(len(claims)))
    facts = extractor.extract(chunk, meter=lambda usage: None, deadline_seconds=1).facts
    assert [(fact.claim, fact.contradicts) for fact in facts] == [
        ("The user is in Berlin for the fair each summer", ())
    ]


def test_a_long_text_has_a_limited_number_of_claims_judged() -> None:
    judged: list[str] = []

    def judge(claims: Sequence[Statement]) -> NDArray[np.float64]:
        judged.extend(each.claim for each in claims)
        return np.ones(len(claims))

    text = " ".join(f"The x{number} cluster is never restarted in prod{number}." for number in range(1000))
    chunk = Chunk(turns=[turn(text)])
    extraction = RuleExtractor(judge).extract(chunk, meter=lambda usage: None, deadline_seconds=1)
    assert len(judged) <= MAX_JUDGED
    assert 0 < len(extraction.facts) <= MAX_EXTRACTED_ITEMS


def test_people_who_talk_to_each_other_are_not_judged() -> None:
    assert kept("I visited the Louvre in May 2023.", speaker="Ana", keeps=[]) == ["Ana visited the Louvre in May 2023"]


def test_without_the_bundled_weights_nothing_is_judged_and_a_check_says_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EXTRACTION_MODEL = ""
    language_model.cache_clear()
    assert check_extractor() == []
    for module in ("memory.extraction.model_extractor", "memory.checks"):
        monkeypatch.setattr(f"{module}.is_bundle_installed", lambda: False)

    chunk = Chunk(turns=[turn("we never deploy to prod after 3pm, house rule since January")])
    extraction = knowledge_extractor().extract(chunk, meter=lambda usage: None, deadline_seconds=1)
    assert [each.id for each in check_extractor()] == ["memory.W020"]
    assert extraction.facts == ()


def test_a_condition_that_does_harm_if_it_is_forgotten_is_kept_whatever_the_judge_says() -> None:
    assert kept("he loves sichuan, im coeliac so check they do gluten free!!", keeps=[]) == ["The user is coeliac"]
    assert kept("I'm hungry so check they are open!!", keeps=[]) == []
