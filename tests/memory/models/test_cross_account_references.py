"""PostgreSQL itself refuses a row that refers to a row of another account, whatever the code forgot."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction

from memory.models import Account
from memory_project.tenancy import ReferenceInAccount
from tests.memory.models.tenant_rows import managed_models, model_with, references_of, store_row

pytestmark = pytest.mark.django_db

REFERENCES = [
    pytest.param(model_with(model, field), reference, id=reference.name)
    for model in managed_models()
    for field, reference in references_of(model).items()
]
"""Every reference between tables of accounts, and a model whose rows have it. The database has no other ones, according
to `test_tenant_tables`."""


def target_of(model: type[models.Model], reference: ReferenceInAccount) -> Any:
    return model._meta.get_field(reference.field).related_model


def store_checked(model: type[models.Model], account: Account, **given: Any) -> Any:
    """Store a row, and check now what is otherwise checked at the end of the transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        row = store_row(model, account.id, **given)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    return row


@pytest.mark.parametrize(("model", "reference"), REFERENCES)
def test_a_row_may_not_refer_to_another_account(
    account: Account, stranger: Account, model: type[models.Model], reference: ReferenceInAccount
) -> None:
    theirs = store_checked(target_of(model, reference), stranger)

    with pytest.raises(IntegrityError) as refusal:
        store_checked(model, account, **{reference.field: theirs})

    cause: Any = refusal.value.__cause__
    assert cause.diag.constraint_name == reference.name


@pytest.mark.parametrize(("model", "reference"), REFERENCES)
def test_the_same_row_may_refer_to_its_own_account(
    account: Account, model: type[models.Model], reference: ReferenceInAccount
) -> None:
    ours = store_checked(target_of(model, reference), account)

    row = store_checked(model, account, **{reference.field: ours})

    assert model._default_manager.filter(id=row.id, account=account, **{reference.field: ours}).exists()
