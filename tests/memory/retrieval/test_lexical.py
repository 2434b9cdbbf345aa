"""BM25 in the database against the formula, by hand and by a plain loop, and the terms that count."""

from math import log

import pytest

from memory.models import Account, Memory
from memory.owner import Owner
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.lexical import MAX_MATCHES, MAX_SCORED, MAX_TERMS
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.episodes import NOW, draft, store
from tests.memory.words import (
    analysis_for,
    count_terms,
    found_by_search,
    found_by_words,
    prefixed,
    texts_by_words,
)

pytestmark = pytest.mark.django_db

# with their lengths in tokens: three on average
LENGTHS = {"pump pump seal": 3, "pump roof": 2, "roof roof roof field": 4}


def store_lengths(owner: Owner) -> None:
    for text, length in LENGTHS.items():
        store(owner, draft(text))
        Memory.objects.filter(text=text).update(token_count=length)


# idf is ln(1 + (3 - df + 0.5) / (df + 0.5)): ln(8/5) = 0.470004 for pump and roof (df 2), ln(8/3) = 0.980829 for seal
# and field (df 1). The other factor is 2.2 tf / (tf + 1.2 (0.25 + 0.75 length / 3)): 4.4/3.2 for two in three tokens,
# 2.2/2.2 for one in three, 2.2/1.9 for one in two, 6.6/4.5 for three in four, 2.2/2.5 for one in four.
BY_HAND = [
    ("pump", {"pump pump seal": 0.646255, "pump roof": 0.544215}),
    ("seal", {"pump pump seal": 0.980829}),
    ("roof", {"pump roof": 0.544215, "roof roof roof field": 0.689339}),
    ("seals for the pump", {"pump pump seal": 1.627084, "pump roof": 0.544215}),
    ("roof or field", {"pump roof": 0.544215, "roof roof roof field": 1.552468}),
    ("boiler", {}),
]


@pytest.mark.parametrize(("query", "expected"), BY_HAND)
def test_a_score_equals_the_result_of_the_formula(owner: Owner, query: str, expected: dict[str, float]) -> None:
    store_lengths(owner)

    texts = dict(Memory.objects.values_list("id", "text"))
    for scores in (found_by_words(owner, query), found_by_search(owner, query)):
        assert {texts[memory_id]: score for memory_id, score in scores.items()} == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("times", [1, 2, 3, 7, 60, 254, 255])
def test_a_term_counts_as_often_as_it_stands_in_a_text(owner: Owner, times: int) -> None:
    store(owner, draft("seal " + "pump " * times))
    Memory.objects.update(token_count=1)

    [score] = found_by_words(owner, "pump").values()

    # one memory of the average length: ln(4/3) x 2.2 tf / (tf + 1.2)
    assert score == pytest.approx(log(4 / 3) * 2.2 * times / (times + 1.2), rel=1e-9)


def test_word_statistics_cover_all_agents_of_the_account_only(owner: Owner, stranger: Account) -> None:
    store_lengths(owner)
    before = found_by_words(owner, "pump roof")
    store(Owner(account_id=stranger.id, agent_id="assistant"), draft("pump roof roof"))

    assert found_by_words(owner, "pump roof") == before
    store(Owner(account_id=owner.account_id, agent_id="another"), draft("pump"))
    assert found_by_words(owner, "pump roof").keys() == before.keys()
    assert found_by_words(owner, "pump roof") != before


def test_the_rarest_known_terms_of_a_long_question_are_used(owner: Owner) -> None:
    docs = {f"w{number:03}": 1 + number for number in range(100)}
    count_terms(owner.account_id, docs, docs=1_000, tokens=5_000)

    terms = analysis_for(owner, " ".join([*reversed(docs), "unknown"])).terms

    assert [term.lexeme for term in terms] == [prefixed(owner.account_id, f"w{n:03}") for n in range(MAX_TERMS)]
    assert terms[2].weight == pytest.approx(log(1 + (1_000 - 3 + 0.5) / (3 + 0.5)))


@pytest.mark.parametrize(
    ("counts", "selecting"),
    [
        pytest.param({"aa": 10, "bb": MAX_MATCHES - 10, "cc": MAX_MATCHES}, ["aa", "bb"], id="as many as may be"),
        pytest.param({"aa": 11, "bb": MAX_MATCHES - 10}, ["aa"], id="one too many"),
        pytest.param({"aa": 50_000, "bb": 60_000}, ["aa"], id="one at least"),
        pytest.param({"aa": 0, "bb": 3}, ["bb"], id="none that nothing holds"),
        pytest.param({"aa": 0}, [], id="none at all"),
    ],
)
def test_only_the_most_selective_terms_select_rows(owner: Owner, counts: dict[str, int], selecting: list[str]) -> None:
    count_terms(owner.account_id, counts, docs=100_000, tokens=500_000)

    terms = analysis_for(owner, " ".join(counts)).terms

    expected = [prefixed(owner.account_id, term) for term in selecting]
    assert [term.lexeme for term in terms if term.selects] == expected
    assert len(terms) == sum(docs > 0 for docs in counts.values())


# of 1,000 memories 20 hold each of the words: ln(1 + 980.5 / 20.5) = 3.888330; times 1.5 and 0.5
def test_names_count_more_than_other_words_and_expansions_less(owner: Owner) -> None:
    count_terms(owner.account_id, {"weir": 20, "mill": 20, "dam": 20}, docs=1_000, tokens=5_000)

    terms = analysis_for(owner, "weir mill", names=["Mill"], expansions=["dam weir"]).terms

    assert {term.lexeme[6:]: term.weight for term in terms} == pytest.approx(
        {"mill": 5.832495, "weir": 3.888330, "dam": 1.944165}, abs=1e-6
    )


# each one in one memory of three tokens, of three on average: ln(1 + 3.5 / 2.5) = 0.875469 for mill and race in two of
# five, times 2.2 / 2.2; both are 1.750937, and twice that where they stand side by side
def test_a_text_with_the_exact_quoted_phrase_scores_double(owner: Owner) -> None:
    store(owner, *map(draft, ("the mill race", "race the mill", "one two three", "four five six", "seven eight nine")))
    Memory.objects.update(token_count=3)

    found = found_by_words(owner, "mill race", phrases=["mill race"])

    assert list(found.values()) == pytest.approx([3.501875, 1.750937], abs=1e-6)
    assert texts_by_words(owner, "mill race", phrases=["mill race"]) == ["the mill race", "race the mill"]


@pytest.mark.parametrize("phrase", ["", "  ", "!!", "unheard of"])
def test_phrases_that_no_memory_holds_change_nothing(owner: Owner, phrase: str) -> None:
    store_lengths(owner)

    assert found_by_words(owner, "pump", phrases=[phrase]) == found_by_words(owner, "pump")


@pytest.mark.parametrize(
    ("counts", "degraded"),
    [
        pytest.param({"pump": MAX_SCORED + 1, "seal": MAX_SCORED + 2}, ["common_words"], id="all common"),
        pytest.param({"pump": MAX_SCORED}, [], id="as many as are scored"),
        pytest.param({"pump": 9, "seal": MAX_SCORED + 1}, [], id="a rare one"),
    ],
)
def test_a_question_of_common_words_alone_is_reported_as_degraded(
    owner: Owner, counts: dict[str, int], degraded: list[str]
) -> None:
    store(owner, draft("pump seal"))
    count_terms(owner.account_id, counts, docs=100_000, tokens=500_000)
    query = Query(text="pump seal")

    bundle = recall(owner, RecallRequest(query=query, techniques=["lexical"]), now=NOW)

    assert ([each.text for each in bundle.results], bundle.degraded) == (["pump seal"], degraded)
