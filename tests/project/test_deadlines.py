"""Questions under a deadline: a limited number runs simultaneously, and callbacks may ask further questions."""

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from memory_project import deadlines
from memory_project.deadlines import AnswerDeadline, Questions

PATIENCE_SECONDS = 60


def test_questions_above_the_simultaneous_limit_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "TURN_SECONDS", PATIENCE_SECONDS)
    questions = Questions("the store", max_simultaneous=2)

    def ask(number: int) -> int:
        return AnswerDeadline(PATIENCE_SECONDS).wait_for(questions.ask(lambda: number))

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(ask, range(40))) == list(range(40))


def test_a_question_behind_a_hanging_one_times_out() -> None:
    questions, released = Questions("the store", max_simultaneous=1), Event()
    hanging = questions.ask(lambda: released.wait(PATIENCE_SECONDS))

    with pytest.raises(TimeoutError, match="earlier questions are unanswered"):
        AnswerDeadline(0).wait_for(questions.ask(lambda: "not asked"))

    released.set()
    assert AnswerDeadline(PATIENCE_SECONDS).wait_for(hanging)


@pytest.mark.parametrize("divisor", [1, 0])
def test_the_callback_of_an_answered_or_failed_question_may_ask_again(divisor: int) -> None:
    questions, again = Questions("the store", max_simultaneous=1), Future[str]()

    def ask_again(_answer: "Future[float]") -> None:
        again.set_result(questions.ask(lambda: "answered").result(PATIENCE_SECONDS))

    released = Event()
    first = questions.ask(lambda: released.wait(PATIENCE_SECONDS) / divisor)
    first.add_done_callback(ask_again)
    released.set()

    assert again.result(PATIENCE_SECONDS) == "answered"


def test_waiting_for_an_answer_stops_at_the_deadline() -> None:
    released = Event()
    hanging = Questions("the store", max_simultaneous=1).ask(lambda: released.wait(PATIENCE_SECONDS))

    with pytest.raises(TimeoutError):
        AnswerDeadline(0.01).wait_for(hanging)

    released.set()
