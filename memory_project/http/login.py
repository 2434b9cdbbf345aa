"""The log-in of staff: attempts are counted in Redis, and too many are refused for a while, right ones included."""

import hashlib
import logging
from collections.abc import Iterator
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django_otp import devices_for_user, match_token

from memory_project.http.problems import REDIS_ERRORS

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 15 * 60
MAX_ATTEMPTS = 10
"""Attempts on one user name from one address within the window."""
MAX_ATTEMPTS_ON_NAME = 50
"""Attempts on one user name from any address."""
MAX_ATTEMPTS_FROM_ADDRESS = 100
"""Attempts on any user name from one address, unless it is that of a trusted proxy."""

CODE_REFUSAL = "Type the code that your authenticator app shows now. Each code is good for one log-in."
REFUSAL = f"Too many attempts to log in. Wait {WINDOW_SECONDS // 60} minutes and try again."


class ThrottledLoginForm(AdminAuthenticationForm):
    """The form that logs staff in. An attempt counts before it is judged, so that many at a time gain nothing.

    The code is asked of users who have switched two-factor authentication on.
    """

    code = forms.CharField(
        required=False,
        max_length=9,
        label="Code",
        help_text="Only with two-factor authentication.",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )

    def clean(self) -> Any:
        name = self.cleaned_data.get("username") or ""
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if not count_attempt(name, address):
            logger.warning("Log-in refused after too many attempts from %s", address)
            raise ValidationError(REFUSAL, code="too_many_attempts")
        cleaned = super().clean()
        if self.get_user() is None:
            # without a name or a password, nothing was tried
            return cleaned
        self.check_code()
        forget_attempts(name, address)
        return cleaned

    def check_code(self) -> None:
        """Refuse a user with two-factor authentication whose code is missing, wrong or used already."""
        user: Any = self.get_user()
        code = (self.cleaned_data.get("code") or "").replace(" ", "")
        if next(devices_for_user(user), None) and not (code and match_token(user, code)):
            raise ValidationError(CODE_REFUSAL, code="wrong_code")


def attempt_counters(name: str, address: str) -> Iterator[tuple[str, int]]:
    """Yield the keys of the counters that an attempt moves, and how far they may go. Names are kept as digests."""
    digest = hashlib.sha256(name.casefold().encode("utf-8", "surrogatepass")).hexdigest()
    yield f"login:{digest}:{address}", MAX_ATTEMPTS
    yield f"login:{digest}", MAX_ATTEMPTS_ON_NAME
    if not {address, "*"} & set(settings.TRUSTED_PROXIES):
        yield f"login::{address}", MAX_ATTEMPTS_FROM_ADDRESS


def count_attempt(name: str, address: str) -> bool:
    """Count an attempt, and return False if there were too many. With Redis down nothing is counted."""
    try:
        # an address that is refused already locks nobody out from elsewhere
        return all(count_up(key) <= limit for key, limit in attempt_counters(name, address))
    except REDIS_ERRORS as err:
        logger.warning("Attempts to log in are not counted: %s", type(err).__name__)
        return True


def count_up(key: str) -> int:
    """Add one to a counter, which ends a window after its first attempt."""
    cache.add(key, 0, timeout=WINDOW_SECONDS)
    try:
        return int(cache.incr(key))
    except ValueError:
        # it ended in between
        cache.add(key, 1, timeout=WINDOW_SECONDS)
        return 1


def forget_attempts(name: str, address: str) -> None:
    """Start the counter of this name and address again after a successful log-in."""
    try:
        cache.delete(next(attempt_counters(name, address))[0])
    except REDIS_ERRORS as err:
        logger.warning("Attempts to log in are still counted: %s", type(err).__name__)
