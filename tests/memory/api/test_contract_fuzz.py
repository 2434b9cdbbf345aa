"""Generated requests for every operation of the OpenAPI document, valid and invalid.

No answer is a 500, and all answers are as the document describes them.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core import signals
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memory_project.http.paths import keep_encoded_slashes
from tests.openapi import read_document

pytestmark = pytest.mark.django_db

FEW_EXAMPLES = 3
EXAMPLES = int(os.environ.get("MEMORY_FUZZ_EXAMPLES", FEW_EXAMPLES))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(autouse=True)
def kept_connection() -> Iterator[None]:
    """Keep the test's connection, which a request would close as an old one. Django's own test client keeps it too."""
    signals.request_started.disconnect(close_old_connections)
    signals.request_finished.disconnect(close_old_connections)
    yield
    signals.request_started.connect(close_old_connections)
    signals.request_finished.connect(close_old_connections)


# archives are bytes
schemathesis.serializer.alias("application/zip", "application/octet-stream")
document = schemathesis.openapi.from_dict(read_document())
# not the project's own module, which names a folder for the counters of all processes in the environment
document.app = keep_encoded_slashes(get_wsgi_application())


@pytest.mark.slow
@document.parametrize()
@settings(
    max_examples=EXAMPLES,
    # `make fuzz` draws more, and other ones each time
    derandomize=EXAMPLES == FEW_EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_generated_request_gets_a_response_the_document_describes(
    case: Any, api_key: str, empty_redis: None
) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {api_key}"}, checks=CHECKS)
