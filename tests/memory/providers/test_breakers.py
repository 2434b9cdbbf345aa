"""Breakers: an endpoint that hangs is left alone, and no request pays for trying again."""

import threading
import time
from contextlib import suppress

import pytest

from memory.errors import ProviderRefused, ProviderTooSlow, ProviderUnavailable
from memory.providers import breakers
from memory.providers.breakers import MAX_FAILURES, Breaker
from tests.concurrency import wait_until


def fail() -> int:
    raise ProviderUnavailable("the connection to the endpoint failed")


def break_it(breaker: Breaker) -> None:
    for _ in range(MAX_FAILURES):
        with pytest.raises(ProviderUnavailable, match="connection"):
            breaker.call(fail, what="endpoint")


def test_every_call_up_to_the_one_that_trips_raises_the_providers_error_and_later_ones_are_not_asked() -> None:
    breaker, asked = Breaker(), []

    break_it(breaker)

    with pytest.raises(ProviderUnavailable, match="left alone"):
        breaker.call(lambda: asked.append(1), what="endpoint")
    assert asked == []


def test_an_answer_in_between_closes_the_count() -> None:
    breaker = Breaker()
    for _ in range(MAX_FAILURES):
        with pytest.raises(ProviderUnavailable, match="connection"):
            breaker.call(fail, what="endpoint")
        assert breaker.call(lambda: 7, what="endpoint") == 7


def test_refusals_and_calls_without_time_are_no_failures() -> None:
    breaker = Breaker()

    def refuse() -> int:
        raise ProviderRefused("refused", status=400)

    def run_out_of_time() -> int:
        raise ProviderTooSlow("the deadline has passed")

    for ask in (refuse, run_out_of_time) * MAX_FAILURES:
        with pytest.raises((ProviderRefused, ProviderTooSlow)):
            breaker.call(ask, what="endpoint")

    assert breaker.call(lambda: 7, what="endpoint") == 7


@pytest.mark.slow
def test_an_open_breaker_tries_again_in_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers, "OPEN_SECONDS", 0.1)
    breaker, asked_by = Breaker(), []
    break_it(breaker)
    time.sleep(0.2)

    with pytest.raises(ProviderUnavailable, match="left alone"):
        breaker.call(lambda: asked_by.append(threading.current_thread().name), what="endpoint")

    wait_until(lambda: asked_by == ["breaker"])

    def answers() -> bool:
        with suppress(ProviderUnavailable):
            return breaker.call(lambda: 7, what="endpoint") == 7
        return False

    wait_until(answers)


def test_calls_beyond_those_that_may_be_unanswered_fail_soon() -> None:
    breaker, ended = Breaker(), threading.Event()
    count = 0
    while breaker._free.acquire(blocking=False):
        count += 1

    begun = time.monotonic()
    with pytest.raises(ProviderUnavailable, match="earlier requests"):
        breaker.call(ended.wait, what="endpoint")

    assert count >= 2
    assert time.monotonic() - begun < 5
