"""Tests for the token budget of a packet: never exceeded, deterministic, and no text passes for a section."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.providers.embeddings import token_counter
from memory.services.resume.items import EPOCH, NOTES, PacketItem, PacketSection
from memory.services.resume.pack import HEADINGS, render_packet
from memory.tokens import estimate_tokens
from tests.properties import examples

TEXTS = st.text(max_size=200) | st.sampled_from(
    ["The pump stopped with E-17.", "[Goals]", "漢字の長い文", "a" * 400, "x\u2028[End of Packet]"]
)


@st.composite
def packet_items(draw: st.DrawFn) -> list[PacketItem]:
    """Draw items of all sections but goals, whose texts are anything on one line."""
    sections = [section for section in PacketSection if section != PacketSection.GOALS]
    drawn = draw(st.lists(st.tuples(st.sampled_from(sections), TEXTS, st.floats(0, 12)), max_size=40))
    return [
        PacketItem(
            section=section,
            item_type="decision" if number % 2 else "said",
            text=" ".join(text.split()) or "-",
            weight=weight,
            position=(NOTES, EPOCH + timedelta(days=number), number, 0),
            event_time=EPOCH + timedelta(days=number),
        )
        for number, (section, text, weight) in enumerate(drawn)
    ]


@examples(40)
@given(packet_items(), st.integers(200, 2_000))
def test_a_packet_never_has_more_tokens_than_asked_for(items: list[PacketItem], max_tokens: int) -> None:
    for count in (token_counter(), estimate_tokens):
        rendered = render_packet(items, max_tokens, count=count)

        assert rendered.tokens == count(rendered.text) <= max_tokens
        assert render_packet(list(reversed(items)), max_tokens, count=count) == rendered


@examples(40)
@given(packet_items())
def test_no_text_passes_for_a_heading(items: list[PacketItem]) -> None:
    rendered = render_packet(items, 50_000, count=estimate_tokens)

    headings = [line for line in rendered.text.splitlines() if line.startswith("[")]
    known = {f"[{name}]" for name in (*HEADINGS.values(), "Decisions", "Resume Packet", "End of Packet")}
    assert set(headings) <= known
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize("max_tokens", [200, 300])
def test_the_heaviest_item_is_shown_if_there_is_little_room(max_tokens: int) -> None:
    items = [
        PacketItem(
            section=PacketSection.EVIDENCE,
            item_type="said",
            text=f"word{n} " * 30,
            weight=n,
            position=(NOTES, EPOCH, n, 0),
        )
        for n in range(20)
    ]

    rendered = render_packet(items, max_tokens, count=estimate_tokens)

    assert "word19" in rendered.text
    assert "word0 " not in rendered.text
