"""The tokens of a packet: never more than asked for, whatever is said; the same again; nothing passes for a section."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.providers.embeddings import token_counter
from memory.services.resume.pieces import EPOCH, NOTES, Piece, Section
from memory.services.resume.render import HEADINGS, lay_out_packet
from memory.tokens import estimate_tokens

TEXTS = st.text(max_size=200) | st.sampled_from(
    ["The pump stopped with E-17.", "[Goals]", "漢字の長い文", "a" * 400, "x\u2028[End of Packet]"]
)


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """Lines of all sections but goals, whose texts are anything on one line."""
    sections = [section for section in Section if section != Section.GOALS]
    told = draw(st.lists(st.tuples(st.sampled_from(sections), TEXTS, st.floats(0, 12)), max_size=40))
    return [
        Piece(
            section=section,
            says="decision" if number % 2 else "said",
            text=" ".join(text.split()) or "-",
            weight=weight,
            place=(NOTES, EPOCH + timedelta(days=number), number, 0),
            event_time=EPOCH + timedelta(days=number),
        )
        for number, (section, text, weight) in enumerate(told)
    ]


@settings(max_examples=40)
@given(pieces(), st.integers(200, 2_000))
def test_a_packet_never_has_more_tokens_than_asked_for(told: list[Piece], max_tokens: int) -> None:
    for count in (token_counter(), estimate_tokens):
        laid = lay_out_packet(told, max_tokens, count=count)

        assert laid.tokens == count(laid.text) <= max_tokens
        assert lay_out_packet(list(reversed(told)), max_tokens, count=count) == laid


@settings(max_examples=40)
@given(pieces())
def test_what_is_told_passes_for_no_section(told: list[Piece]) -> None:
    laid = lay_out_packet(told, 50_000, count=estimate_tokens)

    headings = [line for line in laid.text.splitlines() if line.startswith("[")]
    known = {f"[{name}]" for name in (*HEADINGS.values(), "Decisions", "Resume Packet", "End of Packet")}
    assert set(headings) <= known
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize("max_tokens", [200, 300])
def test_where_there_is_little_room_the_weightiest_is_told(max_tokens: int) -> None:
    told = [
        Piece(section=Section.EVIDENCE, says="said", text=f"word{n} " * 30, weight=n, place=(NOTES, EPOCH, n, 0))
        for n in range(20)
    ]

    laid = lay_out_packet(told, max_tokens, count=estimate_tokens)

    assert "word19" in laid.text
    assert "word0 " not in laid.text
