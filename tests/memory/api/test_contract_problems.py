"""Problems, and what all answers share: request ids, parameters, methods, security headers, outages."""

import json
from uuid import UUID, uuid4

import pytest
import redis as redis_library
from django.db import OperationalError
from django.test import Client

from memory import errors
from memory.api.problems import STATUS_OF, handle_api_exception
from memory.models import Account
from memory.services.accounts.register import READ_ONLY, issue_key
from memory_project.http.problems import CONTENT_TYPE
from memory_project.logs import IdFilter
from tests.api_client import ServiceClient
from tests.openapi import operations


def test_a_valid_request_id_is_returned_in_the_header_and_the_problem(api: ServiceClient) -> None:
    answer = api.get("/agents/nobody", HTTP_X_REQUEST_ID="trace-7.a_b")

    assert (answer["X-Request-Id"], answer.json()["request_id"]) == ("trace-7.a_b", "trace-7.a_b")


@pytest.mark.parametrize("given", ["", "a b", "x" * 101, "\0", "é"])
def test_an_invalid_request_id_is_replaced(api: ServiceClient, given: str) -> None:
    answer = api.get("/agents", HTTP_X_REQUEST_ID=given)

    assert UUID(answer["X-Request-Id"]).version == 7


@pytest.mark.parametrize("query", ["colour=red", "agent_id=planner", "page_size=5&page_size=6", "%00=1"])
def test_an_unknown_or_repeated_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    refused = api.get(f"/agents?{query}")

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize("query", ["agent_id=%ff", "agent_id=a%c3", "agent_id=%ed%a0%80", "%ff=1", "page_size=%ff"])
def test_a_query_that_is_not_utf_8_is_refused(api: ServiceClient, query: str) -> None:
    refused = api.get(f"/episodic/c?{query}")

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_query")


def test_the_error_for_an_unknown_query_parameter_names_it_and_the_allowed_ones(api: ServiceClient) -> None:
    assert api.get("/agents?colour=red").json()["errors"] == {
        "colour": ['"colour" is not a query parameter here. Allowed: cursor, page_size.']
    }


def test_a_query_parameter_on_a_post_is_refused(api: ServiceClient) -> None:
    assert api.post("/agents?agent_id=x", {"agent_id": "planner"}).status_code == 400


def test_if_match_is_refused_on_routes_that_do_not_support_it(api: ServiceClient) -> None:
    unknown = {"number": 1, "name": "embed"}
    for operation in operations():
        if operation.method == "get":
            continue
        path = operation.path.format(**{name: unknown.get(name, uuid4()) for name in operation.parameters})

        answer = getattr(api, operation.method)(path, operation.body, HTTP_IF_MATCH='"1"')

        is_refused = answer.status_code == 400 and answer.json()["code"] == "if_match_refused"
        assert is_refused is ("If-Match" not in operation.headers), (operation, answer.content)


def test_if_match_on_a_read_is_ignored(api: ServiceClient) -> None:
    assert api.get("/agents", HTTP_IF_MATCH='"1"').status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_an_unsupported_method_is_answered_with_a_problem(api: ServiceClient, method: str) -> None:
    refused = api.generic(method, "/agents")

    assert (refused.status_code, refused["Content-Type"]) == (405, CONTENT_TYPE)
    assert refused["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "TRACE", "BREW"])
def test_an_unsupported_method_is_a_405_whatever_the_scopes_of_the_api_key(account: Account, method: str) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    refused = reader.generic(method, "/agents/planner")

    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD, PATCH, DELETE")


def test_every_service_error_maps_to_a_status() -> None:
    named = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

    without = [kind for kind in named if not any(parent in STATUS_OF for parent in kind.__mro__)]

    assert without == [errors.MemoryServiceError]


def test_a_too_large_problem_contains_the_size_and_the_limit() -> None:
    exc = errors.TooLarge("too much", stored=True, size_bytes=7, limit_bytes=5)

    answer = handle_api_exception(exc, {})

    assert answer is not None
    assert answer.status_code == 413
    assert json.loads(answer.content).items() >= {"stored": True, "size_bytes": 7, "limit_bytes": 5}.items()


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (redis_library.ConnectionError(), "redis_unavailable"),
        (redis_library.TimeoutError(), "redis_unavailable"),
        (redis_library.BusyLoadingError(), "redis_unavailable"),
        (redis_library.OutOfMemoryError("command not allowed"), "redis_unavailable"),
        (redis_library.ResponseError("MISCONF Errors writing to the AOF file"), "redis_unavailable"),
        (OperationalError(), "postgresql_unavailable"),
    ],
)
def test_a_failing_store_is_a_503_that_names_the_store(exc: Exception, code: str) -> None:
    answer = handle_api_exception(exc, {})

    assert answer is not None
    assert (answer.status_code, json.loads(answer.content)["code"]) == (503, code)


def test_a_value_of_another_type_in_redis_is_no_outage() -> None:
    exc = redis_library.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")

    answer = handle_api_exception(exc, {})

    assert answer is not None
    assert (answer.status_code, json.loads(answer.content)["code"]) == (409, "conflict")


def test_an_unexpected_exception_is_not_turned_into_a_problem_by_the_handler() -> None:
    assert handle_api_exception(ZeroDivisionError(), {}) is None


def test_the_content_security_policy_allows_only_our_own_sources() -> None:
    policy = Client().get("/health/live")["Content-Security-Policy"]

    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy


@pytest.mark.urls("tests.broken_urls")
def test_an_unexpected_exception_is_a_500_problem_without_details() -> None:
    answer = Client(raise_request_exception=False).get("/api/v1/broken")

    assert (answer.status_code, answer["Content-Type"]) == (500, CONTENT_TYPE)
    assert "division" not in answer.content.decode()
    assert answer.json()["request_id"] == answer["X-Request-Id"]


@pytest.mark.urls("tests.broken_urls")
@pytest.mark.parametrize(
    ("path", "content_type"), [("/api/v1/storeless", CONTENT_TYPE), ("/admin/storeless", "text/plain")]
)
def test_a_page_whose_store_is_down_is_a_503(path: str, content_type: str) -> None:
    answer = Client().get(path)

    assert (answer.status_code, answer["Content-Type"]) == (503, content_type)
    assert answer["Retry-After"] == "1"
    assert b"secret" not in answer.content


@pytest.mark.urls("tests.broken_urls")
@pytest.mark.parametrize("path", ["/api/v1/storeless", "/admin/storeless", "/api/v1/broken"])
def test_every_log_line_about_a_failure_has_the_request_id(path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(IdFilter())

    Client(raise_request_exception=False).get(path, HTTP_X_REQUEST_ID="trace-9")

    assert "django.request" in {record.name for record in caplog.records}
    assert {getattr(record, "request_id", "") for record in caplog.records} == {"trace-9"}


@pytest.mark.parametrize("path", ["/api", "/api/v2/agents", "/api/v1"])
def test_unknown_paths_below_the_api_prefix_are_answered_with_problems(path: str) -> None:
    assert Client().get(path)["Content-Type"] == CONTENT_TYPE


def test_a_disallowed_host_is_answered_with_a_problem() -> None:
    answer = Client().get("/api/v1/agents", HTTP_HOST="evil.example")

    assert (answer.status_code, answer["Content-Type"]) == (400, CONTENT_TYPE)


@pytest.mark.parametrize(
    ("method", "path", "detail"),
    [
        ("PUT", "/agents", 'Method "PUT" not allowed. Allowed here: GET, HEAD, POST.'),
        ("POST", "/search", "There is no path /api/v1/search. Did you mean /api/v1/memories/search?"),
    ],
)
def test_a_detail_says_what_to_do_instead(api: ServiceClient, method: str, path: str, detail: str) -> None:
    assert detail in api.generic(method, path).json()["detail"]


def test_a_request_without_a_key_is_told_how_to_send_one() -> None:
    assert "`Authorization: Bearer <key>`" in Client().get("/api/v1/agents").json()["detail"]


def test_malformed_json_is_located(api: ServiceClient) -> None:
    answer = api.generic("POST", "/recall", '{"query": "x"', content_type="application/json")

    assert answer.json()["detail"] == "The body is not valid JSON: Expecting ',' delimiter at line 1, column 14."


def test_a_body_of_another_type_is_told_the_right_one(api: ServiceClient) -> None:
    answer = api.generic("POST", "/recall", "query=x", content_type="application/x-www-form-urlencoded")

    assert "`Content-Type: application/json`" in answer.json()["detail"]


def test_a_program_that_forgot_the_prefix_is_told_the_path() -> None:
    program, browser = (Client().get("/recall", HTTP_ACCEPT=accept) for accept in ("*/*", "text/html,*/*"))

    assert "Did you mean /api/v1/recall?" in program.json()["detail"]
    assert (browser.status_code, browser["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_the_root_leads_to_the_documentation() -> None:
    assert Client().get("/")["Location"] == "/api/docs"


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("/contexts", "type", "context_type"),
        ("/goals", "title", "description"),
        ("/goals", "parent_id", "parent"),
        ("/pools", "name", "pool_id"),
        ("/tool-invocations", "error", "error_message"),
        ("/facts", "clam", "claim"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(api: ServiceClient, path: str, field: str, meant: str) -> None:
    answer = api.post(path, {"agent_id": "assistant", field: "x"})

    assert f'Did you mean "{meant}"?' in answer.json()["errors"][field][0]
