"""Authentication by API key: `Authorization: Bearer <key>`, found by its hash in one query."""

import re
from datetime import datetime

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memory.models import ApiKey
from memory.models.accounts import LAST_USED_RESOLUTION
from memory_project.http.credentials import Credential
from memory_project.http.problems import ProblemDetails

INVALID_KEY_DETAIL = (
    "The API key is not valid: it is unknown, revoked, expired or malformed. Send it as `Authorization: Bearer <key>`."
)
BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9_-]{1,200})")


class ApiKeyAuthentication(BaseAuthentication):
    """Sets `request.auth` to a Credential. Unknown, revoked, expired and malformed keys get the same answer."""

    def authenticate(self, request: Request) -> tuple[None, Credential] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        match = BEARER.fullmatch(header.strip())
        credential = find_credential(match[1], now=timezone.now()) if match else None
        if credential is None:
            raise AuthenticationFailed(INVALID_KEY_DETAIL)
        return None, credential

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def judge_stream_key(authorization: str) -> ProblemDetails | None:
    """Return what speaks against reading a stream with this Authorization header; None if its key may write.

    The web server asks before it reads more than the beginning.
    """
    match = BEARER.fullmatch(authorization.strip())
    credential = find_credential(match[1], now=timezone.now()) if match else None
    if credential is None:
        return ProblemDetails(status=401, code="authentication_failed", detail=INVALID_KEY_DETAIL)
    if "write" not in credential.scopes:
        return ProblemDetails(status=403, code="missing_scope", detail="This key lacks the scope write.")
    return None


def find_credential(secret: str, *, now: datetime) -> Credential | None:
    """Return the credential of a usable key, else None. Records the key's use, at most once a minute."""
    key = ApiKey.find_usable(secret, now)
    if key is None:
        return None
    if key.last_used_at is None or key.last_used_at < now - LAST_USED_RESOLUTION:
        ApiKey.objects.touch(key.id, now)
    return Credential(
        key_id=key.id,
        account_id=key.account_id,
        agent_id=key.agent_id,
        user_id=key.user_id,
        scopes=frozenset(key.scopes),
        prefix=key.prefix,
        audit_level=key.audit_level,
        has_erasures=key.has_erasures,
        secrets=key.secrets,
    )
