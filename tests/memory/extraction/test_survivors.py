"""Parts of a text that must survive shortening are recognized by their form and restored if they got lost."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.extraction.survivors import append_lost_facts, facts_in, keeps_negations
from tests.properties import examples

PIECES = st.lists(
    st.sampled_from(
        [
            "`a b`",
            '"x `y"',
            "5",
            "rows",
            "is",
            "E1205,",
            "/etc/hosts",
            "(OPS-12)",
            "'quote d'",
            "not",
            '"',
            "`",
            "\n",
            "µ5.",
        ]
    )
    | st.text(max_size=12),
    max_size=20,
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("All 81,204 rows are in.", ("81,204 rows",)),
        ("It costs 84.50 euros, or 12 % more.", ("84.50 euros", "12")),
        ("Version v2.3.1 of psycopg.pool broke.", ("v2.3.1", "psycopg.pool")),
        ("See /etc/hosts and src/app.py, line 12.", ("/etc/hosts", "src/app.py", "12")),
        ("It raised KeyError (E1205) for lock_timeout.", ("KeyError", "E1205", "lock_timeout")),
        ("Read https://example.org/a?b=1, and tell SRE.", ("https://example.org/a?b=1", "SRE")),
        ('He said "go on" at 14:30 on Monday.', ('"go on"', "14:30", "Monday")),
        ("Run `make up` with --force.", ("`make up`", "--force")),
        ("OPS-12 is closed, commit 3a35498 has it.", ("OPS-12", "3a35498")),
        ("Well, that went as we hoped. OK.", ()),
        ("", ()),
    ],
)
def test_facts_are_recognized_by_their_form(text: str, facts: tuple[str, ...]) -> None:
    assert facts_in(text) == facts


def test_lost_facts_are_appended_in_a_line() -> None:
    short = append_lost_facts("The import failed.", "The import failed with E1205 after 30 minutes.")

    assert short == "The import failed.\nAlso: E1205, 30 minutes"


def test_a_text_without_lost_facts_stays_unchanged() -> None:
    assert append_lost_facts("E1205 again.", "It was E1205, once more.") == "E1205 again."


@given(short=PIECES, original=PIECES)
@example(short="", original='a"5 "x y" b"6')
@examples(150)
def test_appending_lost_facts_restores_every_fact_of_the_original(short: str, original: str) -> None:
    restored = append_lost_facts(short, original)

    assert set(facts_in(original)) <= set(facts_in(restored))
    assert all(fact in restored for fact in facts_in(original))
    assert restored.lstrip("\n").startswith(short.lstrip("\n"))


@pytest.mark.parametrize(
    ("short", "is_kept"),
    [
        ("Do not run job_7.", True),
        ("Run job_7.", False),
        ("Something about it.", False),
        ("Do not run job_7, nor job_8.", False),
    ],
)
def test_a_lost_or_added_negation_is_detected(short: str, is_kept: bool) -> None:
    assert keeps_negations(short, "Please do not run job_7 under any circumstances.") is is_kept


def test_an_invented_fact_is_detected() -> None:
    assert not keeps_negations("It took 31 minutes.", "It took 30 minutes.")
