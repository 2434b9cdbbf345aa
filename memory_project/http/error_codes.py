"""The codes of all problems that the service answers: what each means, and what the client should do.

The `type` of a problem leads to the page of its code, `/api/docs/errors/<code>`. It is made of this table, as are
`docs/errors.md` and the pages in `docs/errors/`:

    python -m memory_project.http.error_codes docs
"""

import json
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

ERRORS_PATH = "/api/docs/errors"


class ErrorCode(NamedTuple):
    """The documentation of one code."""

    status: int
    meaning: str
    remedy: str


ERROR_CODES = {
    "authentication_failed": ErrorCode(
        401,
        "The API key is malformed, unknown, expired or revoked.",
        "Send `Authorization: Bearer <key>` with a key that staff see as active in the admin.",
    ),
    "bad_request": ErrorCode(
        400, "The request is malformed, for example because of its Host header.", "Send well-formed HTTP."
    ),
    "body_too_large": ErrorCode(
        413,
        "The body is larger than `limit_bytes`.",
        "Split the request. Turns may be streamed as `application/x-ndjson` without this limit.",
    ),
    "bound_to_user": ErrorCode(
        403,
        "The key is bound to a user, and the operation works on data that belong to no user, such as pools.",
        "Use a key that is not bound to a user.",
    ),
    "conflict": ErrorCode(
        409,
        "The request contradicts what is stored, such as an id that is taken, or another write came first.",
        "Read the present state, and decide again.",
    ),
    "forbidden": ErrorCode(
        403,
        "The acting agent or user may read this, but not change it.",
        "Act as the agent or user that it belongs to, or for the account.",
    ),
    "idempotency_key_refused": ErrorCode(
        400,
        "The operation takes no Idempotency-Key: a replay of raw traces.",
        "Send the request without it.",
    ),
    "idempotency_key_reused": ErrorCode(
        422,
        "The Idempotency-Key was used for a request with another body in the last 24 hours.",
        "Use a new key for a new request.",
    ),
    "if_match_refused": ErrorCode(
        400, "The operation compares no versions, so If-Match would not be checked.", "Send the request without it."
    ),
    "internal_error": ErrorCode(
        500, "A bug of the service.", "Report the `request_id` to the operator of the service."
    ),
    "invalid": ErrorCode(
        400,
        "Fields or query parameters are missing, unknown or have values that are not allowed.",
        "See `errors`: for each field, it says what is wrong and what is allowed.",
    ),
    "invalid_id": ErrorCode(
        400,
        "An id or key in the path is too long, empty, not UTF-8, or has control characters.",
        "Send 1 to 100 characters for an id, 1 to 200 for a key, percent-encoded.",
    ),
    "invalid_idempotency_key": ErrorCode(
        400, "The Idempotency-Key is malformed.", "Send 1 to 255 printable ASCII characters without spaces."
    ),
    "invalid_if_match": ErrorCode(
        400, "The If-Match header is malformed.", 'Send `*`, or ETags in double quotes, such as `"3"`.'
    ),
    "invalid_line": ErrorCode(
        400, "A line of a stream is invalid; `line` is its number.", "Correct the line. Nothing of it was stored."
    ),
    "invalid_query": ErrorCode(400, "The query string is not UTF-8.", "Percent-encode the bytes of UTF-8."),
    "line_too_long": ErrorCode(
        413, "A line of a stream is longer than `limit_bytes`.", "Split or shorten the turn in that line."
    ),
    "method_not_allowed": ErrorCode(
        405, "The path exists, but not with this method.", "Use a method that the header `Allow` names."
    ),
    "missing_scope": ErrorCode(
        403, "The key lacks the scope that the operation requires.", "Use a key with the scope that `detail` names."
    ),
    "no_space": ErrorCode(
        507, "The service has no disk space left.", "Tell the operator, and try again later: nothing was stored."
    ),
    "not_acceptable": ErrorCode(406, "There is no answer in the format asked for.", "Accept `application/json`."),
    "not_authenticated": ErrorCode(
        401, "The request has no API key.", "Send the header `Authorization: Bearer <key>`."
    ),
    "not_found": ErrorCode(
        404,
        "It does not exist, or this key may not see it: both are answered alike.",
        "Check the id, `agent_id` and `user_id`.",
    ),
    "outcome_unknown": ErrorCode(
        503,
        "The database was lost during the commit, so that the request may be stored, or not.",
        "Send it again with the same Idempotency-Key or `client_id`: it is stored once.",
    ),
    "parse_error": ErrorCode(
        400,
        "The body is not a JSON object in UTF-8, names a member twice, or is nested too deep.",
        "Send a JSON object with each name once, nested at most 64 levels deep.",
    ),
    "permission_denied": ErrorCode(403, "The key may not do this.", "Use another key."),
    "postgresql_unavailable": ErrorCode(
        503, "PostgreSQL is not reachable.", "Try again after the seconds in `Retry-After`."
    ),
    "provider_error": ErrorCode(503, "An external model gave no usable answer.", "Try again later."),
    "provider_refused": ErrorCode(
        503, "An external model refused the request.", "Tell the operator: the key or the model's name may be wrong."
    ),
    "provider_reply_invalid": ErrorCode(
        503, "An external model gave an answer that cannot be used.", "Try again; tell the operator if it goes on."
    ),
    "provider_unavailable": ErrorCode(
        503, "An external model is not reachable, or too slow.", "Try again after the seconds in `Retry-After`."
    ),
    "redis_unavailable": ErrorCode(
        503, "Redis is not reachable, or cannot serve.", "Try again after the seconds in `Retry-After`."
    ),
    "request_in_progress": ErrorCode(
        409, "A request with the same Idempotency-Key is running.", "Send it again after that one has finished."
    ),
    "request_timeout": ErrorCode(408, "The head or the body of the request did not arrive in time.", "Send it again."),
    "row_locked": ErrorCode(
        503,
        "Another request has worked on what this one would change for longer than MEMORY_LOCK_TIMEOUT_SECONDS, or both "
        "waited for each other.",
        "Send it again.",
    ),
    "stale_version": ErrorCode(
        412,
        "`If-Match` or `expected_version` names another version than the present one.",
        "Read it again, and repeat the change.",
    ),
    "statement_timeout": ErrorCode(
        503,
        "A statement of the database took longer than MEMORY_STATEMENT_TIMEOUT_SECONDS.",
        "Ask for less at once, or tell the operator.",
    ),
    "throttled": ErrorCode(
        429, "The key has sent too many requests in a minute.", "Wait for the seconds in `Retry-After`."
    ),
    "too_large": ErrorCode(
        413,
        "A value is over its limit (`size_bytes`, `limit_bytes`). `stored` says whether it was stored all the same.",
        "Store less, or in several values.",
    ),
    "too_many_runs": ErrorCode(
        429,
        "The account has requested MEMORY_JOB_RUNS_PER_HOUR runs of jobs within an hour.",
        "Wait for the seconds in `Retry-After`. Jobs also run by themselves.",
    ),
    "too_many_streams": ErrorCode(503, "Half of the service's threads store streams already.", "Try again soon."),
    "too_many_turns": ErrorCode(
        413, "A body may have at most `limit` turns.", "Split the request, or stream the turns."
    ),
    "unknown_route": ErrorCode(
        404, "The service has no such path.", "See `detail` for the nearest path, and `/api/docs` for all of them."
    ),
    "unprocessable": ErrorCode(
        422,
        "The request is well-formed, but what is stored does not allow it.",
        "`detail` says why, for example because a conversation that it names does not exist.",
    ),
    "unsupported_media_type": ErrorCode(
        415, "The body is not JSON.", "Send the header `Content-Type: application/json`."
    ),
    "wrong_agent": ErrorCode(
        403, "The key is bound to another agent.", "Leave `agent_id` out, or use a key of that agent."
    ),
    "wrong_user": ErrorCode(
        403,
        "The key is bound to another user, or the conversation is another user's.",
        "Leave `user_id` out, or use a key of that user.",
    ),
    "wrong_vector_width": ErrorCode(
        422,
        "A vector has another number of dimensions than those of its model.",
        "Name its model in `embedding_model`, or leave the vector out: the service makes one.",
    ),
}


def type_of(code: str) -> str:
    """Return the reference that is the `type` of problems with this code."""
    return f"{ERRORS_PATH}/{code}"


def example_of(code: str) -> dict[str, Any]:
    """Return a problem with this code, as the service answers it."""
    status = ERROR_CODES[code].status
    return {
        "type": type_of(code),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": ERROR_CODES[code].meaning.replace("`", ""),
        "code": code,
        "request_id": "019dd6a5-8c00-7000-8000-00000000a001",
    }


def render_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages in `docs/` about errors: their paths and their texts."""
    lines = [
        "# Errors",
        "",
        "Every error below `/api` is a problem document (RFC 9457). Its `code` is one of these, and its `type` leads",
        "to the page of the code, which the service that answered has too, below `/api/docs/errors`.",
        "",
        "| code | status | meaning |",
        "|---|---|---|",
    ]
    for code, documented in ERROR_CODES.items():
        lines.append(f"| [`{code}`](errors/{code}.md) | {documented.status} | {documented.meaning} |")
        yield f"errors/{code}.md", "".join(f"{line}\n" for line in render_page(code, documented))
    yield "errors.md", "".join(f"{line}\n" for line in lines)


def render_page(code: str, documented: ErrorCode) -> Iterator[str]:
    """Yield the lines of the page of a code."""
    yield f"# {code}"
    yield ""
    yield f"Status {documented.status}. {documented.meaning}"
    yield ""
    yield f"**What to do.** {documented.remedy}"
    yield ""
    yield "```text"
    yield from json.dumps(example_of(code), indent=2).splitlines()
    yield "```"
    yield ""
    yield "[All codes](../errors.md)"


def write_pages(folder: Path) -> None:
    """Write the pages into a folder, in place of those that are there."""
    (folder / "errors").mkdir(exist_ok=True)
    for page in (folder / "errors").glob("*.md"):
        page.unlink()
    for path, text in render_pages():
        (folder / path).write_text(text)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
