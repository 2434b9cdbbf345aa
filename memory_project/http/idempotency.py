"""`Idempotency-Key`: a POST that is sent again gets its first answer again, and its write happens once.

The answer is a row that commits with the write. While one request runs, a session lock of PostgreSQL keeps a twin out;
it goes with the connection, so that a killed process leaves nothing behind.
"""

import hashlib
import re
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memory_project.http.credentials import Credential, credential_of
from memory_project.http.problems import Problem
from memory_project.measures import HIT, KEPT_ANSWERS, MISS

SANE_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class AlreadyAnswered(Exception):  # noqa: N818  an answer, not an error: ends the request early
    """The first answer, to be given again."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__("already answered")
        self.response = response


class Attempt:
    """One request that carries an `Idempotency-Key`, and holds its lock until `release`."""

    def __init__(self, credential: Credential, *, request_hash: str, body_hash: str, now: datetime) -> None:
        self.credential = credential
        self.request_hash = request_hash
        self.body_hash = body_hash
        self.now = now
        self.is_recorded = False

    @property
    def _lock_id(self) -> int:
        return int.from_bytes(bytes.fromhex(self.request_hash)[:8], "big", signed=True)

    def acquire(self) -> None:
        """Raises a 409 problem while the same request is running elsewhere."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [self._lock_id])
            if not cursor.fetchone()[0]:
                raise Problem(409, "request_in_progress", "The same request is still running.")

    def release(self) -> None:
        """The connection goes back to a pool: a lock left on it would outlive the request."""
        if connection.connection is None or connection.connection.closed:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [self._lock_id])

    def replay(self) -> None:
        """Raises AlreadyAnswered with the first answer, or a 422 problem when the body differs."""
        kept = _answers().fresh(self.now).filter(**self._identity()).first()
        KEPT_ANSWERS.labels(MISS if kept is None else HIT).inc()
        if kept is None:
            return
        if kept.body_hash != self.body_hash:
            raise Problem(422, "idempotency_key_reused", "This Idempotency-Key came with another body before.")
        answer = HttpResponse(kept.body.encode(), status=kept.status, content_type=kept.content_type or None)
        answer["Idempotency-Replayed"] = "true"
        if not kept.content_type:
            del answer["Content-Type"]
        if kept.etag:
            answer["ETag"] = kept.etag
        raise AlreadyAnswered(answer)

    def record(self, status: int, content_type: str, body: bytes, *, etag: str = "") -> None:
        """Keep the answer, over an expired one if there is one. In the caller's transaction."""
        answers = _answers()
        row = answers.model(
            **self._identity(),
            body_hash=self.body_hash,
            status=status,
            content_type=content_type,
            body=body.decode(),
            etag=etag,
            expires_at=self.now + timedelta(hours=settings.IDEMPOTENCY_HOURS),
        )
        unique, changed = (
            ["account", "api_key", "request_hash"],
            ["body_hash", "status", "content_type", "body", "etag"],
        )
        answers.bulk_create([row], update_conflicts=True, unique_fields=unique, update_fields=[*changed, "expires_at"])

    def _identity(self) -> dict[str, Any]:
        return {
            "account_id": self.credential.account_id,
            "api_key_id": self.credential.key_id,
            "request_hash": self.request_hash,
        }


def _answers() -> Any:
    return apps.get_model("memory", "IdempotentRequest")._default_manager


def begin_attempt(request: Request) -> Attempt | None:
    """The attempt of a POST with an `Idempotency-Key`, its lock held; None for other requests.

    Raises AlreadyAnswered, or a problem: 400 malformed key, 409 still running, 422 another body.
    """
    key, credential = request.headers.get("Idempotency-Key"), credential_of(request)
    if key is None or request.method != "POST" or credential is None:
        return None
    if not SANE_KEY.fullmatch(key):
        raise Problem(400, "invalid_idempotency_key", "An Idempotency-Key has 1 to 255 printable ASCII characters.")
    identity = "\n".join((str(credential.key_id), request.method, request.path, key))
    attempt = Attempt(
        credential,
        request_hash=hashlib.sha256(identity.encode()).hexdigest(),
        body_hash=hashlib.sha256(request.body).hexdigest(),
        now=timezone.now(),
    )
    attempt.acquire()
    try:
        attempt.replay()
    except BaseException:
        attempt.release()
        raise
    return attempt


def record_with_write(attempt: Attempt, response: Response) -> None:
    """Keep what a view answers, inside the transaction of its write."""
    empty = response.data is None
    body = b"" if empty else JSONRenderer().render(response.data)
    with transaction.atomic():
        content_type = "" if empty else "application/json"
        attempt.record(response.status_code, content_type, body, etag=response.headers.get("ETag", ""))


def record_afterwards(attempt: Attempt, response: HttpResponseBase) -> None:
    """Keep what was not kept with a write: refusals, and writes that are in Redis only.

    Never a 5xx, it may pass; nor a 412, after which a client looks and sends the same with another `If-Match`.
    """
    if (
        attempt.is_recorded
        or response.status_code >= 500
        or response.status_code == 412
        or getattr(response, "streaming", False)
    ):
        return
    if isinstance(response, Response):
        record_with_write(attempt, response)
    elif isinstance(response, HttpResponse):
        attempt.record(response.status_code, response.get("Content-Type", ""), response.content)
