"""An erasure whose process is killed again and again goes on where it was, and is completed."""

import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from memory.models import Conversation, Erasure, Memory
from memory.owner import Owner
from memory.services.custody.subjects import continue_erasure, request_subject, verify_receipt
from tests.memory.custody import later
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.maintenance.workers import environment
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)

CONVERSATIONS = 12
KILLS = 5


def run_and_kill(erasure: Erasure, *, batches: int, seconds: float) -> None:
    """Continue the erasure in a process of its own, and kill that some time after it began its last batch."""
    command = [sys.executable, "-m", "tests.memory.services.custody.killed_eraser"]
    with subprocess.Popen(
        [*command, str(erasure.account_id), str(erasure.id)], env=environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(batches):
            process.stdout.readline()
        time.sleep(seconds)
        process.kill()


@pytest.mark.slow
def test_a_killed_erasure_is_completed_by_the_next_process(owner: Owner, empty_redis: None) -> None:
    ana, chance = replace(owner, user_id="ana"), random.Random(4)
    for number in range(CONVERSATIONS):
        say(ana, *[turn(f"message {each}") for each in range(20)], conversation_id=f"talk-{number}")
        know(ana, f"Likes {number} figs.")
    know(replace(owner, user_id="ben"), "Likes figs.")
    erasure = request_subject(owner, "ana", now=NOW)

    for _ in range(KILLS):
        run_and_kill(erasure, batches=chance.randint(1, 4), seconds=chance.random() / 10)
    # the step is empty between two passes
    begun = Erasure.objects.exclude(step="", passes=0).exists()
    while erasure.status != "completed":
        erasure = continue_erasure(owner.account_id, erasure.id, now=later())

    assert begun
    assert set(Memory.objects.values_list("user_id", flat=True)) == {"ben"}
    assert not Conversation.objects.exists()
    assert (erasure.counts["conversations"], erasure.counts["turn"]) == (CONVERSATIONS, CONVERSATIONS * 20)
    assert verify_receipt(owner, dict(erasure.receipt or {}), erasure.signature)
