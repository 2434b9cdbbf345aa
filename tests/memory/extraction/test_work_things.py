"""Obligations of things, second halves without a verb, and values that say which thing is meant."""

import pytest

from tests.memory.extraction.spoken import claims


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("the phone numbers must be masked before they leave the warehouse",
         "The phone numbers must be masked before they leave the warehouse"),
        ("the sync has to run only on battery by default", "The sync has to run only on battery by default"),
        ("PRs must be approved by a maintainer", "PRs must be approved by a maintainer"),
        ("KITE-88 must be merged before the 26th", "KITE-88 must be merged before the 26th"),
        ("Prices go to gs://acme-features/price", "Prices go to gs://acme-features/price"),
        ("the alpha goes out on the 22nd, production on the 29th", "The alpha goes out on the 22nd"),
        ("the alpha goes out on the 22nd, production on the 29th", "Production goes out on the 29th"),
        ("the api timeout is 20s, the worker timeout 90s", "The worker timeout is 90s"),
        ("Metric is mean recall, not MAE.", "Metric is mean recall, not MAE"),
        ("limit is 4 boards per account", "Limit is 4 boards per account"),
        ("the server is runs.acme.internal", "The server is runs.acme.internal"),
        ("deadline for all this is June 9, the auditors come then", "Deadline is 9 June 2023"),
        ("log runs to MLflow", "The user asks to log runs to MLflow"),
        ("Reindexing should run weekly, Tuesdays 4 am, in Airflow.", "Reindexing should run weekly, Tuesdays 4 am"),
        ("the cut-over moved to 9 June, sales wants to check it", "The cut-over moved to 9 June 2023"),
    ],
)  # fmt: skip
def test_statements_about_things_are_claims(text: str, claim: str) -> None:
    assert claim in claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "Log runs slowly",
        "The thread should not have a noticeable overhead",
        "Ruff can be installed with a package",
        "The request is well-formed, but the account is not known",
        "then we need PDF",
        "I need two slides",
        "the server is down",
        "limit is too low",
        "Relationships need to be built on trust",
        "they must be masked before they leave",
        "Metric is nice, not bad",
    ],
)
def test_statements_that_say_nothing_lasting_yield_no_claim(text: str) -> None:
    assert claims(text) == []
