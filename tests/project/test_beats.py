"""The beats of the web server's processes, which its main process reads while they are written."""

import os
import signal
import time

from memory_project.web.launcher import Beats


def test_a_beat_that_is_read_while_it_is_written_is_the_former_or_the_new_one() -> None:
    started, beats = time.monotonic(), Beats(2)
    beats.note(1, started)
    writer = os.fork()
    if writer == 0:
        while True:
            beats.note(1, time.monotonic())
    try:
        read = []
        while time.monotonic() < started + 1:
            read += [beats.last(1) for _ in range(1_000)]
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)

    assert len(read) > 10_000
    assert started <= min(read) <= max(read) <= time.monotonic()
    assert beats.last(0) == 0.0
