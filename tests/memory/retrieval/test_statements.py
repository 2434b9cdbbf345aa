"""Statements with named parameters, as they are sent."""

import pytest

from memory.models import Kind
from memory.retrieval.statements import Sql

pytestmark = pytest.mark.django_db


def test_own_parameters_are_literals_and_given_ones_are_bound() -> None:
    own = {"kind": Kind.TURN, "text": "it's $1, 100% \\ %(given)s", "number": 3}
    statement = Sql(
        text="SELECT %(kind)s = 'turn', %(text)s, %(number)s, %(given)s::text, '100%%'", parameters=own
    ).numbered()

    _columns, rows = statement.read({"given": "it's $2"})

    assert statement.names == ("given",)
    assert rows == [(True, own["text"], 3, "it's $2", "100%")]
