"""Owners, those who take over from them, and absences."""

import pytest

from tests.memory.extraction.spoken import claims, said


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Ottilie takes over refunds", "Ottilie takes over refunds"),
        ("Jens is now responsible for billing", "Jens is responsible for billing"),
        ("Lars does the cluster, I do the dashboards", "Lars does the cluster"),
        ("Lars does the cluster, I do the dashboards", "The user does the dashboards"),
        ("I own refunds", "The user owns refunds"),
        ("Nadia is release captain this time", "Nadia is release captain"),
        ("Nadia is the scrum master for team Kite", "Nadia is scrum master for team Kite"),
        ("Nadia's on leave from today, Jens looks after refunds", "Nadia is on leave since 18 May 2023"),
        ("Nadia's on leave from today, Jens looks after refunds", "Jens looks after refunds"),
        ("Nadia is out of office until 26 May", "Nadia is out of office until 26 May 2023"),
        ("Jens owns the search index. He is away until 26 May.", "Jens is away until 26 May 2023"),
        ("deal with Odile about the licences", "The user asks to deal with Odile about the licences"),
    ],
)
def test_owners_and_absences_are_claims(text: str, claim: str) -> None:
    assert claim in claims(text)


def test_the_only_person_of_the_last_turn_may_be_the_one_who_is_away() -> None:
    one, two = "Jens owns the search index.", "Jens owns the search index. Nadia owns refunds."

    assert "Jens is away until 26 May 2023" in [fact.claim for fact in said(one, "He is away until 26 May.").facts]
    assert not [fact for fact in said(two, "He is away until 26 May.").facts if "away" in fact.claim]


def test_an_absence_ends_at_its_date() -> None:
    [fact] = said("Nadia is away until 26 May.").facts

    assert (fact.temporal, f"{fact.valid_to:%Y-%m-%d}") == ("current", "2023-05-27")


@pytest.mark.parametrize(
    "text",
    ["He is away until 26 May.", "Nadia is away", "I do the same", "Life takes over", "I do it"],
)
def test_who_is_not_clear_owns_nothing_and_is_not_away(text: str) -> None:
    assert claims(text) == []
