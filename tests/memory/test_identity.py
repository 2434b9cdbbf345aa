"""Tests of normal forms of claims: differences of style disappear, differences of meaning stay."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.identity import normalize_claim

WRITTEN = st.text(
    st.sampled_from("aÀßK5 .,!?…'’\"“«()[]-+$€<＜。ป้ा राम\u0301\u0345\u00ad\t") | st.characters(), max_size=12
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana likes C++.", "Ana likes C#."),
        ("Ana likes C.", "Ana likes C++."),
        ("Ana likes C++, and Go.", "Ana likes C, and Go."),
        ("Ana works with .NET.", "Ana works with NET."),
        ("The offset is -5.", "The offset is 5."),
        ("The offset is .5.", "The offset is 5."),
        ("The offset is -.5.", "The offset is -5."),
        ("The rate is 0.5.", "The rate is 05."),
        ("It takes 1,5 days.", "It takes 15 days."),
        ("It begins at 1:30.", "It begins at 130."),
        ("The fee is $5.", "The fee is €5."),
        ("The share is 5%.", "The share is 5."),
        ("x < 5", "x > 5"),
        ("x ≤ 5", "x ≥ 5"),
        ("x = 5", "x ≠ 5"),
        ("Ana will re-sign.", "Ana will resign."),
        ("Ana said we'll go.", "Ana said well go."),
        ("ป้าอยู่ที่นี่", "ป่าอยู่ที่นี่"),
        ("राम बड़ा है", "रोम बड़ा है"),
        ("Ana é daqui.", "Ana e daqui."),
        ("Ana is 👍", "Ana is 👎"),
    ],
)
def test_claims_that_differ_in_meaning_stay_different(one: str, other: str) -> None:
    assert normalize_claim(one) != normalize_claim(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana lives in Berlin.", "ANA lives in berlin"),
        ("Ana lives in Berlin!", "Ana lives in Berlin ."),
        ("Ana lives in Berlin…", "Ana lives in Berlin..."),
        ("Ana, who cooks, lives here.", "Ana who cooks lives here"),
        ("Ana  lives\tin\u00a0Berlin", " Ana lives in Berlin\n"),
        ("“Ana” lives in «Berlin».", "Ana lives in 'Berlin'"),
        ("Ana’s house (in Berlin)", "Ana's house in Berlin"),
        ("Ｃ＋＋ is liked", "C++ is liked"),
        ('Ana likes "C++".', "Ana likes C++"),
        ("The offset is \u22125.", "The offset is -5"),
        ("Straße", "STRASSE"),
        ("Ana e\u0301 daqui", "Ana é daqui"),
        ("Ana lives in Ber\u00adlin", "\ufeffAna lives in Berlin\u200b"),
        ("安娜住在柏林。", "安娜住在柏林"),
        ("¿Ana vive aquí?", "Ana vive aquí"),
        ("राम बड़ा है।", "राम बड़ा है"),
    ],
)
def test_claims_that_differ_in_style_are_the_same(one: str, other: str) -> None:
    assert normalize_claim(one) == normalize_claim(other)


@pytest.mark.parametrize("claim", ["?!", "...", "( )"])
def test_punctuation_alone_is_kept(claim: str) -> None:
    assert normalize_claim(claim) == claim


@given(WRITTEN)
@example("̀ͅ")
def test_a_normalized_claim_is_its_own_normal_form(claim: str) -> None:
    once = normalize_claim(claim)

    assert normalize_claim(once) == once


@pytest.mark.slow
def test_every_character_has_one_normal_form() -> None:
    characters = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)

    unstable = [one for one in characters if normalize_claim(once := normalize_claim(f"a{one}b")) != once]

    assert not unstable
