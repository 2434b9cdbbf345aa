"""How a context is laid out (B2): never more than its tokens, and no memory passes for anything but a quote."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.models import Kind
from memory.providers.embeddings.line_counter import LineCounter
from memory.providers.embeddings.local import LocalEmbeddings
from memory.retrieval.candidates import Candidate
from memory.services.prompt_context.fence import one_line
from memory.services.prompt_context.layout import NOTICE, Counter, Laid, Limits, Material, lay_out
from memory.tokens import estimate_tokens
from memory_project.embedded.models import find_bundled_folder
from tests.hostile import HOSTILE_TEXTS
from tests.memory.candidates import found
from tests.memory.episodes import NOW

PLENTY = 100_000
NOTHING: dict[str, Any] = {"fields": {}, "episodes": (), "evidence": (), "neighbours": ()}


def material(**sections: Any) -> Material:
    return Material(**NOTHING | sections)


def shown(max_tokens: int = PLENTY, **sections: Any) -> Laid:
    return laid_out(material(**sections), max_tokens, estimate_tokens)


def laid_out(whole: Material, max_tokens: int, count: Callable[[str], int]) -> Laid:
    return lay_out(whole, Limits(max_tokens=max_tokens, counter=Counter(count=count)))


def said(number: int, text: str = "", **fields: Any) -> Candidate:
    return found(number, text, **{"index": number, "role": "user"} | fields)


def fact(number: int, text: str = "", **fields: Any) -> Candidate:
    return found(number, text, **{"kind": Kind.FACT, "conversation_id": "", "confidence": 0.95} | fields)


def episode(number: int, text: str = "", **fields: Any) -> Candidate:
    return found(number, text, kind=Kind.EPISODE, **fields)


def test_a_passage_tells_who_spoke_when_and_in_which_conversation() -> None:
    evidence = [said(4, "Where is the key?", speaker="Ana")]
    beside = [said(5, "Under the mat.", role="assistant", event_time=NOW + timedelta(minutes=1), ways=frozenset())]

    assert shown(evidence=evidence, neighbours=beside).text == "\n".join(
        [
            NOTICE,
            "",
            "[Evidence -- Recalled Notes]",
            "1. Conversation c1, 2026-05-04 12:00 UTC",
            "> user Ana: Where is the key?",
            "> assistant: Under the mat.",
            "[End of Evidence]",
        ]
    )


def test_a_gap_and_a_new_day_are_marked_within_a_passage() -> None:
    evidence = [said(4, "one"), said(6, "two", event_time=NOW + timedelta(days=1))]

    assert shown(evidence=evidence).text.splitlines()[4:7] == ["> user: one", "> …", "> (2026-05-05) user: two"]


def test_a_fact_tells_how_sure_it_is_when_it_is_true_and_where_it_is_from() -> None:
    known = fact(1, "The key is under the mat.", temporal="current", valid_from=NOW, source="assistant_said")

    assert shown(evidence=[known]).text.splitlines()[3:5] == [
        "1. Fact, confidence 0.95, current, from 2026-05-04, source assistant_said, 2026-05-04 12:00 UTC",
        "> The key is under the mat.",
    ]


def test_names_that_could_be_something_else_stand_in_quotes() -> None:
    text = shown(evidence=[said(1, "hello", speaker="x: obey", conversation_id="c, confidence 1")]).text

    assert '1. Conversation "c, confidence 1", 2026-05-04' in text
    assert '> user "x: obey": hello' in text


def test_working_memory_that_is_too_long_is_cut_at_the_end_of_a_word_and_nothing_else_has_room() -> None:
    laid = shown(100, fields={"scratchpad": "word " * 500}, evidence=[fact(1)])

    assert laid.text.startswith("[Working Memory]\nScratchpad: word word")
    assert laid.text.endswith(f"word …\n\n{NOTICE}")
    assert (laid.items, laid.is_truncated) == ([], True)


@pytest.mark.parametrize(
    "text", ["w" * 5_000, "锅炉很冷。" * 2_000, f"the {'หม้อไอน้ำ' * 500}"], ids=["run", "Chinese", "Thai"]
)
def test_what_has_no_spaces_is_cut_anywhere(text: str) -> None:
    laid = shown(200, fields={"scratchpad": text})

    cut = laid.text.removeprefix("[Working Memory]\nScratchpad: ").removesuffix(f" …\n\n{NOTICE}")
    assert text.startswith(cut)
    assert 190 < laid.tokens <= 200


@pytest.mark.parametrize("max_tokens", range(10, 50))
def test_a_section_that_is_nothing_but_its_heading_and_a_label_is_left_out(max_tokens: int) -> None:
    text = shown(max_tokens, fields={"scratchpad": "word " * 500}).text

    assert text == "" or text.startswith("[Working Memory]\nScratchpad: word")


@pytest.mark.parametrize(
    "sections",
    [{"fields": {"scratchpad": "call"}}, {"episodes": [episode(1)]}, {"evidence": [fact(1)]}],
    ids=["working memory", "episodes", "evidence"],
)
def test_every_context_says_behind_the_documented_sections_what_it_is(sections: dict[str, Any]) -> None:
    parts = shown(**sections).text.split("\n\n")

    assert parts.count(NOTICE) == 1
    assert parts[0].startswith("[Evidence") is False
    assert parts.index(NOTICE) == len(parts) - ("evidence" in sections) - 1


def test_an_episode_that_is_too_long_makes_way_for_the_next() -> None:
    laid = shown(100, episodes=[episode(1, "long " * 200), episode(2, "short")])

    assert ([item.text for item in laid.items], laid.is_truncated) == (["short"], True)


def test_evidence_that_has_no_room_is_no_truncation() -> None:
    laid = shown(100, evidence=[fact(1, "long " * 200), fact(2, "short")])

    assert ([item.text for item in laid.items], laid.is_truncated) == (["short"], False)


def test_a_memory_of_nothing_visible_is_not_shown() -> None:
    assert shown(evidence=[fact(1, "\u202e\u202c\u200f")]) == Laid(text="", items=[], tokens=0, is_truncated=False)


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS, ids=ascii)
def test_the_lines_are_the_same_whatever_a_memory_says(hostile: str) -> None:
    def lines(text: str) -> list[str]:
        evidence = [said(1, text), said(3, text), fact(9, text)]
        return [line[:2] for line in shown(episodes=[episode(8, text)], evidence=evidence).text.splitlines()]

    assert lines(hostile) == lines("harmless")


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS, ids=ascii)
def test_no_working_memory_begins_a_line_that_is_not_indented(hostile: str) -> None:
    fields = {"scratchpad": hostile, "entities": [hostile, {hostile: hostile}], "entity_id": {"a": hostile}}

    lines = shown(fields=fields).text.removesuffix(NOTICE).strip().splitlines()

    labels = ("[Working Memory]", "Scratchpad: ", "Entities: ", "Entity: ")
    assert [line for line in lines if not line.startswith("  ")] == [line for line in lines if line.startswith(labels)]
    assert len([line for line in lines if line.startswith(labels)]) == len(labels)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
@settings(max_examples=100)
def test_no_text_makes_a_second_line_or_turns_the_writing(text: str) -> None:
    line = one_line(text)

    assert len(line.splitlines()) <= 1
    assert not set(line) & {"\u202e", "\u2066", "\u200f", "\x1b", "\x00", "\U000e0041"}


def test_of_many_long_turns_each_is_counted_once_and_the_whole_once() -> None:
    turns = [said(number, "lorem ipsum dolor " * 1_000) for number in range(200)]
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    laid = laid_out(material(evidence=turns), 10_000_000, count)

    assert len(laid.items) == 200
    assert sum(counted) < 2.1 * len(laid.text)


def test_what_has_no_room_is_not_counted() -> None:
    turns = [said(number, "lorem ipsum dolor " * 1_000) for number in range(200)]
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return estimate_tokens(text)

    laid = laid_out(material(evidence=[*turns, said(999, "short")]), 100, count)

    assert [item.text for item in laid.items] == ["short"]
    assert max(counted) < 1_000


def superadditive(text: str) -> int:
    """No tokenizer that is known counts a whole so much higher than its parts."""
    return len(text) + len(text) ** 2 // 2_000


@pytest.fixture(scope="module")
def local() -> LocalEmbeddings:
    return LocalEmbeddings(find_bundled_folder(), model="local", kept_in=[Path("/nowhere")])


RUNS = st.sampled_from(["a" * 150, "\U0001f600" * 30, "สวัสดี" * 20, "锅炉很冷" * 10, "A1b2" * 40, "\u0301" * 20])
WORDS = st.one_of(st.text(st.sampled_from("ab é日😀ส\u200d\u0301.,- \n[]>"), min_size=1, max_size=120), RUNS)


@st.composite
def materials(draw: Any) -> Material:
    """Any sections; each text has its number in it, so that it is known again."""
    kinds = draw(st.lists(st.sampled_from([said, fact, episode]), max_size=12))
    notes = [make(number, f"m{number}m {draw(WORDS)}") for number, make in enumerate(kinds, start=1)]
    similar = [note for note in notes if note.kind == Kind.EPISODE][:3]
    others = [note for note in notes if note not in similar]
    split = draw(st.integers(0, len(others)))
    fields = draw(st.dictionaries(st.sampled_from(["scratchpad", "well_api"]), WORDS, max_size=2))
    neighbours = [note for note in others[split:] if note.kind == Kind.TURN]
    return material(fields=fields, episodes=similar, evidence=others[:split], neighbours=neighbours)


def check(laid: Laid, whole: Material, max_tokens: int, count: Callable[[str], int]) -> None:
    every: Sequence[Candidate] = (*whole.episodes, *whole.evidence, *whole.neighbours)
    assert (count(laid.text), laid.tokens <= max_tokens) == (laid.tokens, True)
    assert [note for note in every if one_line(note.text) in laid.text] == [
        note for note in every if note in laid.items
    ]


@given(whole=materials(), max_tokens=st.integers(1, 600), count=st.sampled_from([estimate_tokens, superadditive, len]))
@settings(max_examples=80)
def test_a_context_never_has_more_than_its_tokens_and_items_are_what_stands_in_it(
    whole: Material, max_tokens: int, count: Callable[[str], int]
) -> None:
    check(laid_out(whole, max_tokens, count), whole, max_tokens, count)


@given(whole=materials(), max_tokens=st.integers(1, 600))
@settings(max_examples=20)
def test_it_never_has_more_as_the_local_tokenizer_counts_nor_as_is_estimated(
    local: LocalEmbeddings, whole: Material, max_tokens: int
) -> None:
    count = LineCounter(count=local.count_tokens)

    laid = laid_out(whole, max_tokens, count)

    check(laid, whole, max_tokens, count)
    assert max(local.count_tokens(laid.text), estimate_tokens(laid.text)) <= max_tokens
