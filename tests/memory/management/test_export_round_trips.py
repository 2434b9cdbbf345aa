"""Properties of exports: any canonical file is exported again byte for byte."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from memory.models import Account
from tests.memory.management.exports import FILES, canonical, export, load
from tests.memory.management.exports import tiny_embedder as tiny_embedder
from tests.properties import examples

pytestmark = pytest.mark.django_db


@pytest.mark.slow
@settings(parent=examples(60), suppress_health_check=list(HealthCheck))
@given(FILES)
def test_any_canonical_file_comes_back_byte_for_byte(files: list[dict[str, Any]]) -> None:
    one, other = (Account.objects.create(name=f"{number} {os.urandom(8).hex()}") for number in range(2))
    document = canonical(*files)

    load(one, document)
    load(other, export(one))

    assert export(one) == document
    assert export(other) == document
