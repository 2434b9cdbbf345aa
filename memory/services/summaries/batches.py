"""What a claim of the queue of summaries comes down to: turns that are read, and digested part by part."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory import conf
from memory.extraction.messages import tools_named
from memory.models import EpisodicMemory, Turn
from memory.providers.digests import Digest, Digester, Stretch, how_many_fit, pieces, room_beside
from memory.providers.language_models import Usage
from memory.providers.summaries import Message
from memory.services.conversations.queue import Claimed, read_turns, turns_between
from memory.services.summaries.episodes import covered_turns, current_summary, digest_of
from memory_project.tracing import traced


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The turns that the current summary does not cover, up to `stop`, in parts that a digester can be shown.

    `previous` is the summary that the new one takes in. `usages` grow while the parts are digested.
    """

    claim: Claimed
    start: int
    stop: int
    turns: Sequence[Turn]
    parts: Sequence[Sequence[Message]]
    previous: EpisodicMemory | None
    usages: list[Usage] = field(default_factory=list)


def read_work(claim: Claimed) -> Work:
    """As many of the turns as a model can be shown at once, at least one, and the summary of those before."""
    previous = current_summary(claim.conversation)
    start = covered_turns(claim.conversation, previous)
    unread = turns_between(claim, start, claim.target)
    room = room_beside(digest_of(previous), max_tokens=conf.SUMMARY_INPUT_TOKENS)
    turns = read_turns(unread, max_tokens=room)
    messages = [message_of(turn) for turn in turns]
    fitting = how_many_fit(messages, max_tokens=room)
    # what is missing, or quarantined, behind the last one is done with it
    following = unread.filter(index__gt=turns[fitting - 1].index).first() if fitting else None
    return Work(
        claim=claim,
        start=start,
        stop=claim.target if following is None else following.index,
        turns=turns[:fitting],
        parts=cut_into_parts(messages[:fitting], room=room),
        previous=previous,
    )


def message_of(turn: Turn) -> Message:
    return Message(role=turn.role, name=turn.name, content=turn.text, timestamp=turn.event_time)


def cut_into_parts(messages: Sequence[Message], *, room: int) -> list[Sequence[Message]]:
    """One part where all of them fit; a message that does not is cut."""
    if len(messages) != 1:
        return [messages] if messages else []
    if len(list(pieces(messages[0], max_tokens=room))) == 1:
        return [messages]
    # beside the digest of the pieces before, whatever its size will be
    return [[piece] for piece in pieces(messages[0], max_tokens=conf.SUMMARY_INPUT_TOKENS // 2)]


@traced("summarize", account=lambda work: work.claim.conversation.account_id)
def digest_work(work: Work, digester: Digester) -> Digest | None:
    """Part after part, the previous summary taken in; None where there is nothing to digest, nor was before.

    Asks no database, and may run in a thread. Raises ProviderError; what was used until then is in the work.
    """
    digest = digest_of(work.previous)
    tools = tools_named([turn.payload for turn in work.turns])
    for part in work.parts:
        digest = digester.digest(
            Stretch(messages=part, previous=digest, tools=tools),
            max_tokens=conf.SUMMARY_TOKENS,
            meter=work.usages.append,
            deadline_seconds=conf.SUMMARY_TIMEOUT_SECONDS,
        )
    return digest
