"""Confidence of results, and the silence of prompt contexts where nothing is likely to help."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger import store as ledger
from memory import conf
from memory.models import Memory
from memory.owner import Owner
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.confidence import (
    CONFIDENCE_FILE,
    FEATURES,
    FLOOR,
    Calibration,
    add_confidence,
    confidence_features,
    is_about_stranger,
    learned_calibrations,
    read_calibrations,
    weigh_words_by,
    word_shares,
)
from memory.retrieval.plans import QueryAnalysis, ScoringContext, Term
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.prompt_context.build import PromptContext, build_prompt_context
from memory.services.recall.recall import RecallRequest, recall
from memory.services.turns import TurnDraft
from memory_project.embedded.models import BUNDLED_MODEL
from memory_project.redis import ConversationRef
from tests.memory.candidates import asking, found
from tests.memory.context import request_for
from tests.memory.episodes import NOW, direction
from tests.memory.turns import say, turn

WIDTH = 384
FAR, NEAR = 1.5, 0.3
FOREIGN = "Did Priya see the boiler?"
WITH_MEANING = Calibration(intercept=-1.0, similarity=2.0, words=3.0, stranger=-4.0)


def of_model(angle: float, model: str = BUNDLED_MODEL) -> ClientVector:
    return ClientVector(model=model, vector=direction(angle, width=WIDTH))


def term(weight: float, **fields: bool) -> Term:
    return Term(lexeme="word", docs=1, weight=weight, selects=True, **fields)


def question(*terms: Term, **fields: Any) -> ScoringContext:
    asked = asking(**{"text": "anything", "model": BUNDLED_MODEL, "vector": direction(0.0)} | fields)
    return replace(asked, analysis=QueryAnalysis(terms=terms))


TERMS = (term(3.0), term(1.0), term(2.0, is_content=False), term(4.0, is_subject=True))


@pytest.mark.parametrize(
    ("held", "share"),
    [
        pytest.param(0b0000, 0.0, id="nothing"),
        pytest.param(0b0001, 0.75, id="the word of weight 3, of 4"),
        pytest.param(0b0010, 0.25, id="the word of weight 1"),
        pytest.param(0b0011, 1.0, id="both"),
        pytest.param(0b1100, 0.0, id="a stop word and a subject"),
        pytest.param(0b1111, 1.0, id="all"),
    ],
)
def test_a_word_counts_by_its_weight_unless_it_is_a_stop_word_or_a_subject(held: int, share: float) -> None:
    assert word_shares([found(1, held=held)], question(*TERMS)).tolist() == [share]


def test_a_question_without_known_words_has_no_share() -> None:
    assert word_shares([found(1), found(2)], question()).tolist() == [0.0, 0.0]
    assert word_shares([found(1, held=1)], question(term(2.0, is_content=False))).tolist() == [0.0]


@pytest.mark.parametrize(
    ("held", "unknown", "share"),
    [
        pytest.param(0b10, [], 1.0, id="who is Ana"),
        pytest.param(0b01, [], 0.0, id="another memory"),
        pytest.param(0b10, [term(4.0, is_subject=True)], 0.5, id="who are Ana and Priya"),
        pytest.param(0b10, [term(4.0)], 0.0, id="what is Ana's surname"),
    ],
)
def test_names_count_where_a_question_has_no_other_words(held: int, unknown: list[Term], share: float) -> None:
    context = question(term(2.0, is_content=False), term(4.0, is_subject=True), subjects=["Ana"])
    context = replace(context, analysis=replace(context.analysis, unknown=unknown))

    assert word_shares([found(1, held=held)], context).tolist() == [share]


@pytest.mark.parametrize(
    ("unknown", "share"),
    [
        pytest.param([], 1.0, id="all words are known"),
        pytest.param([term(4.0)], 0.5, id="a word of weight 4, as much as the known ones"),
        pytest.param([term(4.0), term(8.0)], 0.25, id="two"),
        pytest.param([term(4.0, is_content=False), term(9.0, is_subject=True)], 1.0, id="a stop word and a subject"),
    ],
)
def test_words_that_the_account_does_not_know_count_as_well(unknown: list[Term], share: float) -> None:
    context = question(*TERMS)
    context = replace(context, analysis=replace(context.analysis, unknown=unknown))

    assert word_shares([found(1, held=0b0011)], context).tolist() == [share]


@pytest.mark.parametrize(
    ("subjects", "candidate", "is_stranger"),
    [
        pytest.param([], found(1), False, id="no subject"),
        pytest.param(["Priya"], found(1, speaker="Ana"), True, id="nobody known"),
        pytest.param(["Ana"], found(1, speaker="ana"), False, id="the speaker"),
        pytest.param(["Ana Diaz"], found(1, speaker="Ana"), False, id="part of the name"),
        pytest.param(["Annie"], found(1, "Annie, come!", held=0b1000, speaker="Ana"), False, id="a nickname in a text"),
        pytest.param(["Priya"], found(1, held=0b0011, speaker="Ana"), True, id="only other words in the text"),
    ],
)
def test_a_stranger_is_named_by_no_candidate_and_speaks_none(
    subjects: list[str], candidate: Candidate, is_stranger: bool
) -> None:
    candidates = [found(2, speaker="Ben"), candidate]

    assert is_about_stranger(candidates, question(*TERMS, subjects=subjects)) == is_stranger


@pytest.mark.parametrize("user_id", ["Henk", "henk-bakery", "u:henk"])
def test_the_user_is_no_stranger_where_no_message_has_a_name(user_id: str) -> None:
    asked = question(*TERMS, subjects=["Henk"])
    by_user = replace(asked, owner=replace(asked.owner, user_id=user_id))

    assert is_about_stranger([found(1)], asked)
    assert not is_about_stranger([found(1)], by_user)


def test_confidence_is_logistic_in_the_features() -> None:
    features = confidence_features(
        [found(1, similarity=0.5, held=0b0001), found(2, similarity=None)], question(*TERMS, subjects=["Priya"])
    )

    assert features.tolist() == [[0.5, 0.75, 1.0], [0.0, 0.0, 1.0]]
    # odds -1 + 1 + 2.25 - 4 = -1.75 and -5
    assert WITH_MEANING.chances(features).tolist() == pytest.approx([0.1480, 0.0067], abs=1e-4)


@pytest.mark.parametrize(
    ("text", "unknown", "similarity"),
    [
        pytest.param("Ana", [term(4.0)], 0.0, id="what is Ana's surname"),
        pytest.param("ANA", [term(4.0)], 0.0, id="in other letters"),
        pytest.param("Ana", [], 0.5, id="who is Ana"),
        pytest.param("Ana's surname is Diaz", [term(4.0)], 0.5, id="an answer"),
        pytest.param("Anabel", [term(4.0)], 0.5, id="another name"),
    ],
)
def test_a_bare_name_means_nothing_to_a_question_that_asks_more(
    text: str, unknown: list[Term], similarity: float
) -> None:
    context = question(term(4.0, is_subject=True), subjects=["Ana"], names=["Ana"])
    context = replace(context, analysis=replace(context.analysis, unknown=unknown))

    assert confidence_features([found(1, text, similarity=0.5, held=1)], context)[0, 0] == similarity


def test_no_candidates_have_no_features() -> None:
    assert confidence_features([], question(*TERMS, subjects=["Priya"])).shape == (0, 3)


def test_similarities_of_another_model_do_not_count() -> None:
    candidates = [found(1, similarity=0.9, held=0b0001), found(2, similarity=-0.9, held=0b0001)]

    add_confidence(candidates, question(*TERMS, model="another"))

    words = learned_calibrations().with_words
    weighed = weigh_words_by(candidates, question(*TERMS))
    expected = words.chances(confidence_features(candidates[:1], weighed) * [0, 1, 1])[0]
    assert [each.likelihood for each in candidates] == [pytest.approx(expected)] * 2


def test_words_weigh_by_the_candidates_that_hold_them_wherever_else_in_the_account_they_are() -> None:
    candidates = [found(1, held=0b01), found(2), found(3)]
    rare, common, name = term(math.log(2.0)), replace(term(math.log(1.2)), docs=2), term(1.5 * math.log(2.0))

    weighed = weigh_words_by(
        candidates, replace(question(), analysis=QueryAnalysis(terms=(rare, common, name), docs=2))
    )

    # held by one of three, and by none: ln(1 + 2.5 / 1.5) and ln(1 + 3.5 / 0.5). The name keeps its 1.5
    assert [each.weight for each in weighed.analysis.terms] == pytest.approx([0.9808, 2.0794, 3.1192], abs=1e-4)


def test_the_shipped_weights_are_valid_and_say_how_they_were_learned() -> None:
    learned = json.loads(CONFIDENCE_FILE.read_text())["learned"]

    assert learned_calibrations().with_words.similarity == 0
    assert learned["model"] == BUNDLED_MODEL
    assert learned["questions"] > 0 < learned["foreign"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{}", "with_meaning"),
        ('{"with_meaning": {"intercept": 1}}', "with_meaning"),
        ('{"with_meaning": {"intercept": NaN, "similarity": 1, "words": 1, "stranger": 1}}', "intercept"),
        (
            json.dumps({part: dict.fromkeys(("intercept", *FEATURES), 0) for part in ("with_meaning", "with_words")}),
            "model",
        ),
        ("no JSON", "Expecting value"),
        (None, "cannot be read"),
    ],
)
def test_an_invalid_file_is_refused_with_its_path(tmp_path: Path, content: str | None, complaint: str) -> None:
    path = tmp_path / "confidence.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ValueError, match=complaint) as refusal:
        read_calibrations(path)

    assert str(path) in str(refusal.value)


def store(owner: Owner, *texts: str, angle: float | None = FAR, model: str = BUNDLED_MODEL) -> None:
    own = None if angle is None else of_model(angle, model)
    drafts: list[TurnDraft] = [replace(turn(text), own=own) for text in texts]
    say(owner, *drafts, conversation_id="before")


def context_for(owner: Owner, query: str, *, model: str = BUNDLED_MODEL, **asked: Any) -> PromptContext:
    request = request_for(query=query, own=of_model(0.0, model), mark=True, **asked)
    return build_prompt_context(owner, request, now=NOW)


def recalled(owner: Owner, query: str, **asked: Any) -> Bundle:
    request = RecallRequest(query=Query(text=query, **asked), own=of_model(0.0))
    return recall(owner, request, now=NOW)


def marked(owner: Owner) -> set[str]:
    return set(ledger.get_all(ConversationRef(account_id=owner.account_id, conversation_id="c1")))


@pytest.mark.django_db
@pytest.mark.usefixtures("empty_redis", "embedding_server")
class TestSilence:
    def test_a_foreign_question_gets_no_evidence_and_marks_nothing(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", "Ana called the plumber.")

        context = context_for(owner, FOREIGN)

        assert (context.abstained, context.items, marked(owner)) == (True, [], set())
        assert "boiler" not in context.context

    def test_a_question_with_an_answer_gets_it(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", angle=NEAR)

        context = context_for(owner, "Is the boiler out?")

        assert not context.abstained
        assert [item.text for item in context.items] == ["The boiler is out."]
        assert marked(owner) == {item.item_key for item in context.items}

    def test_a_question_about_a_name_alone_gets_what_names_it(self, owner: Owner) -> None:
        store(owner, "Ana called the plumber.")

        assert [item.text for item in context_for(owner, "Who is Ana?").items] == ["Ana called the plumber."]
        assert context_for(owner, "Who is Priya?").abstained
        assert context_for(owner, "What is Ana's surname?").abstained

    def test_a_bare_name_breaks_no_silence(self, owner: Owner) -> None:
        store(owner, "Ana", angle=NEAR)

        assert context_for(owner, "What is Ana's surname?").abstained
        assert not context_for(owner, "Who is Ana?").abstained

        store(owner, "She is Ana Diaz.", angle=NEAR)
        assert not context_for(owner, "What is Ana's surname?").abstained

    def test_what_other_users_say_does_not_change_the_confidence(self, owner: Owner) -> None:
        user, other = replace(owner, user_id="u1"), replace(owner, user_id="u2")
        store(user, "The boiler is out.", "Ana called the plumber.", "The plumber comes on Monday.")
        query = "Did the plumber bill the boiler repair?"
        alone = [each.likelihood for each in recalled(user, query).results]

        far = of_model(FAR)
        texts = ("The repair is done.", "A bill for the repair.", "My boiler is new.", "I ride a horse.")
        say(other, *[replace(turn(text), own=far) for text in texts], conversation_id="other")

        assert [each.likelihood for each in recalled(user, query).results] == alone

    def test_an_owner_without_memories_has_not_abstained(self, owner: Owner) -> None:
        assert not context_for(owner, FOREIGN).abstained

    def test_a_recall_has_no_floor(self, owner: Owner) -> None:
        store(owner, "The boiler is out.")

        found = recalled(owner, FOREIGN)

        assert not found.abstained
        assert [each.likelihood < FLOOR for each in found.results] == [True]

    def test_pinned_results_stay(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", "The boiler is old.")
        Memory.objects.filter(text="The boiler is old.").update(pinned=True)

        context = context_for(owner, FOREIGN)

        assert "The boiler is old." in [item.text for item in context.items if item.ways]
        assert "The boiler is out." not in [item.text for item in context.items if item.ways]
        assert not context.abstained

    def test_memories_that_wait_for_a_vector_are_not_silenced(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", angle=None)

        assert [item.text for item in context_for(owner, FOREIGN).items] == ["The boiler is out."]

    def test_without_comparable_similarities_nothing_is_silenced(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", model="another")

        context = context_for(owner, FOREIGN, model="another")

        assert [item.text for item in context.items] == ["The boiler is out."]

    def test_a_model_with_weights_of_its_own_is_silent_as_well(
        self, owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = json.loads(CONFIDENCE_FILE.read_text())
        content["learned"]["model"] = "another"
        path = tmp_path / "weights.json"
        path.write_text(json.dumps(content))
        store(owner, "The boiler is out.", model="another")
        assert not context_for(owner, FOREIGN, model="another").abstained

        monkeypatch.setattr(conf, "CONFIDENCE_WEIGHTS", str(path))
        learned_calibrations.cache_clear()
        context = context_for(owner, FOREIGN, model="another")
        learned_calibrations.cache_clear()

        assert (context.abstained, context.items) == (True, [])

    def test_the_least_confidence_of_a_request_replaces_the_floor(self, owner: Owner) -> None:
        store(owner, "The boiler is out.")

        assert [item.text for item in context_for(owner, FOREIGN, min_score=0.0).items] == ["The boiler is out."]
        assert context_for(owner, FOREIGN, min_score=0.9).abstained

    def test_a_least_confidence_leaves_out_single_results(self, owner: Owner) -> None:
        store(owner, "The boiler is out.", angle=NEAR)
        store(owner, "Ana called the plumber.")

        every, some = recalled(owner, "boiler out"), recalled(owner, "boiler out", min_score=0.2)

        assert len(every.results) == 2
        assert [each.text for each in some.results] == ["The boiler is out."]
        assert recalled(owner, "boiler out", min_score=1.0).abstained
