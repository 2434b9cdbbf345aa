"""Replay-ready evidence of a packet: what was done for the goal that presses most, in a part of its room."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.services.prompt_context.fence import one_line
from memory.services.replay.candidates import Piece as ReplayedPiece
from memory.services.replay.replay import FEWEST_TOKENS, MOST_TOKENS, ReplayRequest, Slice, replay
from memory.services.resume.pieces import GIVEN, Piece, Section

SHARE = 0.3
"""Of the packet's tokens."""
REPLAY_WEIGHT = 20.0


def replay_work(owner: Owner, goal_id: UUID, *, max_tokens: int, now: datetime) -> Slice:
    """What a replay of the goal tells a resume, so that it fits into the packet."""
    room = min(max(int(SHARE * max_tokens), FEWEST_TOKENS), MOST_TOKENS)
    return replay(owner, ReplayRequest(goal_id=goal_id, max_tokens=room), now=now)


def replay_pieces(told: Slice) -> list[Piece]:
    """A line for each piece of the slice, in its order."""
    return [replay_piece(each, place) for place, each in enumerate(told.pieces)]


def replay_piece(each: ReplayedPiece, place: int) -> Piece:
    return Piece(
        section=Section.REPLAY,
        says="replay",
        text=one_line(each.text),
        label=f"{each.slot or 'episode'}: ",
        weight=REPLAY_WEIGHT,
        place=(GIVEN, each.event_time, place, 0),
        id=each.memory_id,
        kind=Kind(each.kind) if each.memory_id else None,
        event_time=each.event_time,
        is_apart=True,
    )


def only_told(told: Slice, pieces: Sequence[Piece]) -> Slice:
    """The slice as it stands in the packet."""
    ids = {piece.id for piece in pieces}
    kept = [each for each in told.pieces if each.memory_id in ids]
    return replace(told, pieces=kept, left_out=told.left_out + len(told.pieces) - len(kept))
