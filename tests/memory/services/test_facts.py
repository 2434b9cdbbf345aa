"""Facts: learnt once, about entities, from turns; read as of any moment by those who know them."""

import pytest

from memory.models import Fact
from memory.owner import Owner
from tests.memory.facts import CLAIM, claims, tell, versions_of

pytestmark = pytest.mark.django_db


def test_what_is_learnt_is_believed_and_true_now(owner: Owner) -> None:
    learnt = tell(owner)

    assert learnt.is_new
    assert claims(owner) == [CLAIM]
    assert [version.claim for version in versions_of(learnt.fact)] == [CLAIM]


def test_what_is_known_comes_back_as_it_is(owner: Owner) -> None:
    first, again = tell(owner), tell(owner, "ana lives in  Berlin!")

    assert (first.fact.id, again.is_new) == (again.fact.id, False)
    assert Fact.objects.count() == 1
