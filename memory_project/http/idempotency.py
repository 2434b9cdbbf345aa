"""`Idempotency-Key`: a repeated write gets the first answer again, and happens once.

Only answers of success are recorded: a refused request changed nothing, and may be corrected and sent again under its
key. The answer of a POST is a row that commits with the write. Other methods have the same effect when they are
repeated, and their answers are recorded after the write.

A write to Redis notes in its script that it was done (`memory_project.redis.ONCE`), so that it happens once even if its
answer could not be recorded. A stream of turns is compared by the hash of its body once all of it was read.

While a request runs, a mark in Redis keeps out a second one with the same key. A thread of its process renews the mark,
so that it may be short, and that of a killed process soon expires.
Without Redis, only writes are kept apart: by a lock of the transaction of the write. Both work through a pooler that
gives each transaction another session.
"""

import hashlib
import re
import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import redis
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memory_project.http.credentials import Credential, get_credential
from memory_project.http.problems import Problem
from memory_project.http.streams import is_ndjson_stream
from memory_project.measures import HIT, KEPT_ANSWERS, MISS
from memory_project.redis import RUNNING_PATTERN, client, script

MAX_ID_CHARACTERS = 100
RUNNING_SECONDS = 10
"""Seconds for which a request keeps out others with the same key once its process no longer renews its mark."""

RENEWALS_PER_MARK = 4

END_RUN = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
"""
"""Deletes the mark of a request, but not one that another has made since it expired."""

VALID_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class RunningMarks:
    """The marks of the requests that run in this process, and the thread that renews them while there are any."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, mark: str, key: str) -> None:
        """Renew a mark under its key from now on."""
        with self._lock:
            self._keys[mark] = key
            # a fork has none of its parent's threads
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._renew, name="idempotency marks", daemon=True)
                self._thread.start()

    def discard(self, mark: str) -> None:
        """Renew it no longer; nothing for a mark that is not of this process."""
        with self._lock:
            self._keys.pop(mark, None)

    def _renew(self) -> None:
        while True:
            time.sleep(RUNNING_SECONDS / RENEWALS_PER_MARK)
            with self._lock:
                keys = [*self._keys.values()]
                if not keys:
                    # under the lock, so that whoever adds one starts another thread
                    self._thread = None
                    return
            with suppress(redis.RedisError), client().pipeline(transaction=False) as batch:
                for key in keys:
                    batch.expire(key, RUNNING_SECONDS)
                batch.execute()


RUNNING_MARKS = RunningMarks()


class AlreadyAnswered(Exception):  # noqa: N818  an answer, not an error: ends the request early
    """Carries the recorded first answer out of the view."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__("already answered")
        self.response = response


@dataclass(slots=True, kw_only=True)
class IdempotentAttempt:
    """One request with an `Idempotency-Key`."""

    credential: Credential
    request_hash: str
    body_hash: str
    now: datetime
    user_id: str = ""
    conversation_id: str = ""
    is_recorded: bool = False
    mark: str = field(default_factory=secrets.token_hex)

    def begin_run(self) -> bool:
        """Mark that the request runs, and return False if another with the same key does. True without Redis."""
        try:
            is_free = client().set(self._running_key, self.mark, nx=True, ex=RUNNING_SECONDS)
            # a command that was repeated on a new connection finds its own mark
            is_own = bool(is_free) or client().get(self._running_key) == self.mark
        except redis.RedisError:
            return True
        if is_own:
            RUNNING_MARKS.add(self.mark, self._running_key)
        return is_own

    def end_run(self) -> None:
        """Delete the mark of this request."""
        RUNNING_MARKS.discard(self.mark)
        with suppress(redis.RedisError):
            script(END_RUN)(keys=[self._running_key], args=[self.mark])

    @property
    def _running_key(self) -> str:
        return RUNNING_PATTERN.format(account_id=self.credential.account_id, request_hash=self.request_hash)

    @property
    def _lock_id(self) -> int:
        return int.from_bytes(bytes.fromhex(self.request_hash)[:8], "big", signed=True)

    def lock(self) -> None:
        """Lock the key until the caller's transaction ends, and replay what was recorded before.

        Raises a 409 problem while another request with the same key writes, else what `replay` raises.
        """
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [self._lock_id])
            if not cursor.fetchone()[0]:
                raise still_running()
        # after the lock: another request may have written since this one looked first
        if self._find_answer() is not None:
            self.replay()

    def replay(self) -> None:
        """Raise AlreadyAnswered if an answer is recorded, or a 422 problem if the recorded body differs."""
        kept = self._find_answer()
        KEPT_ANSWERS.labels(MISS if kept is None else HIT).inc()
        if kept is None:
            return
        self.is_recorded = True
        if kept.body_hash != self.body_hash:
            detail = "This Idempotency-Key was used with a different body. Use a new key for a new request."
            raise Problem(422, "idempotency_key_reused", detail)
        answer = HttpResponse(kept.body.encode(), status=kept.status, content_type=kept.content_type or None)
        answer["Idempotency-Replayed"] = "true"
        if not kept.content_type:
            del answer["Content-Type"]
        if kept.etag:
            answer["ETag"] = kept.etag
        raise AlreadyAnswered(answer)

    def _find_answer(self) -> Any:
        return _answers().fresh(self.now).filter(**self._identity()).first()

    @property
    def write_id(self) -> str:
        """The id of the request's writes: the same request has the same one, and another body has another one."""
        return hashlib.sha256(f"{self.request_hash}{self.body_hash}".encode()).hexdigest()

    def record(self, status: int, content_type: str, body: bytes, *, etag: str = "") -> None:
        """Store the answer in the caller's transaction, replacing an expired one."""
        answers = _answers()
        row = answers.model(
            **self._identity(),
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            body_hash=self.body_hash,
            status=status,
            content_type=content_type,
            body=body.decode(),
            etag=etag,
            expires_at=self.now + timedelta(hours=settings.IDEMPOTENCY_HOURS),
        )
        unique = ["account", "api_key", "request_hash"]
        changed = ["user_id", "conversation_id", "body_hash", "status", "content_type", "body", "etag", "expires_at"]
        answers.bulk_create([row], update_conflicts=True, unique_fields=unique, update_fields=changed)

    def _identity(self) -> dict[str, Any]:
        return {
            "account_id": self.credential.account_id,
            "api_key_id": self.credential.key_id,
            "request_hash": self.request_hash,
        }


def still_running() -> Problem:
    detail = "A request with the same Idempotency-Key is still running. Retry after it has finished."
    return Problem(409, "request_in_progress", detail)


def _answers() -> Any:
    return apps.get_model("memory", "IdempotentRequest")._default_manager


def begin_attempt(request: Request) -> IdempotentAttempt | None:
    """Return the attempt of a write with an `Idempotency-Key`, which keeps others out; None for other requests.

    Raises AlreadyAnswered, or a problem: 400 malformed key, 409 still running, 422 another body.
    """
    key, credential = request.headers.get("Idempotency-Key"), get_credential(request)
    if key is None or request.method in SAFE_METHODS or credential is None:
        return None
    if not VALID_KEY.fullmatch(key):
        detail = "The Idempotency-Key must have 1 to 255 printable ASCII characters without spaces."
        raise Problem(400, "invalid_idempotency_key", detail)
    identity = "\n".join((str(credential.key_id), str(request.method), request.get_full_path(), key))
    is_stream = is_ndjson_stream(request.META)
    # before `data`, which leaves nothing of the body to read
    body_hash = "" if is_stream else hashlib.sha256(request.body).hexdigest()
    fields: Any = request.query_params if is_stream else request.data
    attempt = IdempotentAttempt(
        credential=credential,
        request_hash=hashlib.sha256(identity.encode()).hexdigest(),
        body_hash=body_hash,
        now=timezone.now(),
        user_id=named_in(request, fields, "user_id") or credential.user_id,
        conversation_id=named_in(request, fields, "conversation_id"),
    )
    if is_stream:
        # may take long, and is kept apart where it writes
        return attempt
    is_free = attempt.begin_run()
    try:
        # before a 409: a killed process may have left both an answer and its mark
        attempt.replay()
        if not is_free:
            raise still_running()
    except BaseException:
        attempt.end_run()
        raise
    return attempt


def named_in(request: Request, fields: Any, name: str) -> str:
    """Return an id that the path, or else these fields, give; "" without a valid one."""
    body = fields.get(name) if isinstance(fields, Mapping) else None
    given = (request.parser_context or {}).get("kwargs", {}).get(name, body)
    return given if isinstance(given, str) and len(given) <= MAX_ID_CHARACTERS and "\x00" not in given else ""


def record_with_write(attempt: IdempotentAttempt, response: Response) -> None:
    """Record a view's answer inside the transaction of its write. One statement."""
    empty = response.data is None
    body = b"" if empty else JSONRenderer().render(response.data)
    content_type = "" if empty else "application/json"
    attempt.record(response.status_code, content_type, body, etag=response.headers.get("ETag", ""))


def record_afterwards(attempt: IdempotentAttempt, response: HttpResponseBase) -> None:
    """Record an answer of success that no write recorded, such as that of a write to Redis only."""
    if attempt.is_recorded or response.status_code >= 400 or getattr(response, "streaming", False):
        return
    if isinstance(response, Response):
        record_with_write(attempt, response)
    elif isinstance(response, HttpResponse):
        attempt.record(response.status_code, response.get("Content-Type", ""), response.content)
