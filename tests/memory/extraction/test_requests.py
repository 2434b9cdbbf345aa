"""Standing orders: requests in the form of a question, prohibitions, and what they are about."""

import pytest

from tests.memory.extraction.spoken import claims


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (
            "Can you always use grams, not ounces?",
            "The user asks to always use grams, not ounces",
        ),
        ("oh and can you always round prices to 2 decimals", "The user asks to always round prices to 2 decimals"),
        ("Could you not use emojis in the changelog?", "The user asks not to use emojis in the changelog"),
        ("could you move my swim lesson to Tuesday from now on?", "The user asks to move their swim lesson to Tuesday"),
        ("From now on, could you answer in Polish?", "The user asks to answer in Polish"),
        ("Could you please never push to release branches?", "The user asks never to push to release branches"),
        ("could you stop using semicolons?", "The user asks not to use semicolons"),
        ("Would you mind not sending push messages after 10pm?", "The user asks not to send push messages after 10pm"),
        ("don't call me before 9am please", "The user asks not to call before 9am"),
        ("please don't schedule anything after 6pm", "The user asks not to schedule anything after 6pm"),
        ("Canadian spelling please.", "The user asks for Canadian spelling"),
        ("And metric units, please.", "The user asks for metric units"),
    ],
)
def test_a_request_that_lasts_is_a_standing_order(text: str, claim: str) -> None:
    assert claims(text) == [claim]


@pytest.mark.parametrize(
    "text",
    [
        "can you add a test?",
        "Can you always trust him?",
        "can you not see it?",
        "could you swim from there?",
        "Would you mind?",
        "Thanks for the messages please",
        "a message please",
        "The physio says it is strained. no stairs for ten days",
    ],
)
def test_other_questions_order_nothing(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("never hardcode prices in views, it bit us twice", "The user asks never to hardcode prices in views"),
        ("never run backfills on monday please", "The user asks never to run backfills on Mondays"),
        ("keep tokens in Vault, never in env files", "The user asks to keep tokens in Vault, never in env files"),
        ("for this repo: never mock the clock in tests, only in fixtures",
         "The user asks never to mock the clock in tests, only in fixtures"),
        ("in the gateway service, always use tabs", "The user asks to always use tabs in the gateway service"),
        ("For all repos: no merge commits please", "The user asks for no merge commits for all repos"),
    ],
)  # fmt: skip
def test_prohibitions_keep_their_exceptions_and_what_they_hold_for(text: str, claim: str) -> None:
    assert claims(text) == [claim]


@pytest.mark.parametrize(
    "text",
    [
        "Use tabs, not spaces, in Makefiles.",
        "Put secrets in Vault, never in env files, on staging.",
        "Use ruff, for the new services.",
        "Use pnpm, not npm (only in the web folder).",
        "Let's go with Postgres, for the billing service.",
    ],
)
def test_an_order_without_the_place_for_which_it_holds_is_no_claim(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Use tabs in Makefiles, not spaces.", "The user asks to use tabs in Makefiles, not spaces"),
        ("Put secrets in Vault, never in env files.", "The user asks to put secrets in Vault, never in env files"),
        ("Use pnpm, not npm, it is faster.", "The user asks to use pnpm, not npm"),
        ("From now on, use pnpm, not npm.", "The user asks to use pnpm, not npm"),
        ("Use pnpm, not npm, if in doubt.", "The user asks to use pnpm, not npm"),
        ("The pool size is 45, on staging.", "The pool size is 45"),
    ],
)
def test_what_limits_no_order_does_not_cost_its_claim(text: str, claim: str) -> None:
    assert claims(text) == [claim]


def test_what_is_missing_is_no_wish_where_it_is_a_reason() -> None:
    assert claims("no milk in the house so water it is") == []
    assert claims("no emojis in commit messages, it is a rule") == ["The user asks for no emojis in commit messages"]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Don't deploy to production without my ok.", "The user asks not to deploy to production without their ok"),
        ("Never deploy without my written okay.", "The user asks never to deploy without their written okay"),
        ("Don't push to main without asking me.", "The user asks not to push to main without asking them"),
        (
            "Don't touch prod without telling me first, ok?",
            "The user asks not to touch prod without telling them first",
        ),
        (
            "Don't restart the importer unless I say so.",
            "The user asks not to restart the importer unless they say so",
        ),
        (
            "Never send anything to clients before I have seen it.",
            "The user asks never to send anything to clients before they have seen it",
        ),
        ("Don't deploy on Fridays, ok?", "The user asks not to deploy on Fridays"),
        ("Don't use tabs, ok.", "The user asks not to use tabs"),
        ("Don't call me before 9, okay", "The user asks not to call before 9"),
    ],
)
def test_an_order_keeps_its_condition_whole(text: str, claim: str) -> None:
    assert claims(text) == [claim]


@pytest.mark.parametrize(
    "text",
    ["Don't worry unless I say so.", "Don't you agree, ok?", "Don't deploy to production without.", "I left, ok?"],
)
def test_what_orders_nothing_has_no_condition_to_keep(text: str) -> None:
    assert not any("without" in claim or "unless" in claim or "agree" in claim for claim in claims(text))
