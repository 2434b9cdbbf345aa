"""Learning and judging the worth of claims, from talk in which what is worth remembering is marked.

A file of marked talk has a line `@ ID KIND NAME TIME` for each conversation, then a line `U: …` or `A: …` for each turn
of the user or the assistant. In the user's turns, `[[` and `]]` are around what somebody would want to know a month
later. A claim is worth keeping if most of what it says is marked.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.evaluation.learning import Numbers
from lab.evaluation.logistic import fit_logistic
from memory.extraction.grounding import word_stems
from memory.extraction.knowledge import Chunk, ChunkTurn
from memory.extraction.rules import read_claims_to_judge
from memory.extraction.rules.open_claims import OPEN, telling_stems
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.verdicts import floor_of
from memory.extraction.worth import WORDS, Worth, features_of, reduce_features

MARKED = re.compile(r"\[\[(.+?)\]\]")
MARKED_SHARE = 0.5
"""Share of a claim's stems in one mark from which the claim is worth keeping."""
TURNS_OF_CHUNK = 40
L2 = 2e-4
"""Ridge on every weight but the bias, as a share of the loss of one row."""
VECTOR_SCALE, WORD_SCALE = 1.5, 0.5
"""What the numbers of a vector and of its words are multiplied by before they are: the ridge is the same for both."""
DIRECTIONS = 20
"""Main directions of the vectors whose products are learned."""
FOLDS = 6
"""Number of groups of files, each of which is judged by weights that were learned on the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedClaims:
    """The claims of a file whose worth is judged, with a row of `features_of` for each.

    `turns` is the number of the users' turns, `marks` that of the marks in them.
    """

    file: str
    turns: int
    marks: int
    claims: list[str]
    by_rule: NDArray[np.bool_]
    floors: Numbers
    features: Numbers
    is_wanted: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthFigures:
    """The quality of the worth on one file, for claims of rules or in the speaker's own words (`by_rule`).

    `kept` claims are worth their floor, and `right` ones of them are marked. `auroc` is the probability that a marked
    claim has more worth than another one. `is_held_out` is False if the weights know the file.
    """

    file: str
    by_rule: bool
    is_held_out: bool
    turns: int
    marks: int
    claims: int
    wanted: int
    auroc: float
    kept: int
    right: int


def read_marked(path: Path) -> MarkedClaims:
    """Read the claims of a file of marked talk. Raises ValueError with the line for anything else."""
    claims: list[Statement] = []
    labels: list[bool] = []
    turns = marks = 0
    for conversation in _read_conversations(path):
        marked = {turn.index: MARKED.findall(turn.text) for turn in conversation}
        clean = [replace(turn, text=MARKED.sub(r"\1", turn.text)) for turn in conversation]
        turns += sum(turn.role == "user" for turn in clean)
        marks += sum(map(len, marked.values()))
        for start in range(0, len(clean), TURNS_OF_CHUNK):
            found = read_claims_to_judge(Chunk(turns=clean[start : start + TURNS_OF_CHUNK]))
            claims += found
            labels += [_is_marked(claim.claim, marked[claim.turn]) for claim in found]
    return MarkedClaims(
        file=path.stem,
        turns=turns,
        marks=marks,
        claims=[claim.claim for claim in claims],
        by_rule=np.array([claim.attribute != OPEN for claim in claims]),
        floors=np.array([floor_of(claim) for claim in claims]),
        features=features_of(claims),
        is_wanted=np.array(labels, dtype=np.float64),
    )


def _read_conversations(path: Path) -> Iterator[list[ChunkTurn]]:
    turns: list[ChunkTurn] = []
    begun = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("@ "):
            if turns:
                yield turns
            turns, begun = [], _time_of(line, f"{path}, line {number}")
        elif line.startswith(("U: ", "A: ")) and begun is not None:
            role = "user" if line[0] == "U" else "assistant"
            at = begun + timedelta(minutes=len(turns))
            turns.append(ChunkTurn(index=len(turns), role=role, speaker=role, text=line[3:], timestamp=at))
        elif line.strip():
            raise ValueError(f"{path}, line {number} begins with none of '@ ', 'U: ' and 'A: '")
    if turns:
        yield turns


def _time_of(line: str, place: str) -> datetime:
    parts = line.split()
    if len(parts) != 5:
        raise ValueError(f"{place}: expected '@ ID KIND NAME TIME'")
    return datetime.fromisoformat(f"{parts[4]}:00+00:00")


def _is_marked(claim: str, marks: Sequence[str]) -> bool:
    stems = telling_stems(claim)
    return any(len(stems & word_stems(mark)) >= max(1, MARKED_SHARE * len(stems)) for mark in marks)


def learn_worth(files: Sequence[MarkedClaims]) -> Worth:
    """Return the weights under which the marked claims are the likeliest."""
    features = np.concatenate([each.features for each in files])
    wanted = np.concatenate([each.is_wanted for each in files])
    directions = np.linalg.svd(features[:, : -len(WORDS)], full_matrices=False).Vh[:DIRECTIONS]
    scale = np.repeat([VECTOR_SCALE, WORD_SCALE], [len(directions), len(WORDS)])
    reduced = scale * reduce_features(features, directions)
    first, second = np.triu_indices(len(scale))
    table = np.hstack([features, reduced[:, first] * reduced[:, second], np.ones((len(features), 1))])
    ridge = np.array([*[L2] * (table.shape[1] - 1), 0.0])
    weights = fit_logistic(table, wanted, np.full(len(table), 1 / len(table)), ridge)
    pairs = np.zeros((len(scale), len(scale)))
    pairs[first, second] = weights[features.shape[1] : -1] * scale[first] * scale[second]
    return Worth(linear=weights[: features.shape[1]], directions=directions, pairs=pairs, intercept=float(weights[-1]))


def judge_marked(files: Sequence[MarkedClaims]) -> list[WorthFigures]:
    """Judge each file by weights that were learned without it; a single one by weights that know it."""
    worth: dict[int, Numbers] = {}
    for start in range(min(FOLDS, len(files))):
        fold = range(start, len(files), FOLDS)
        others = [file for number, file in enumerate(files) if number not in fold]
        learned = learn_worth(others or files)
        worth |= {number: learned.of(files[number].features) for number in fold}
    is_held_out = len(files) > 1
    return [
        _judge(file, worth[number], by_rule=by_rule, is_held_out=is_held_out)
        for number, file in enumerate(files)
        for by_rule in (False, True)
    ]


def _judge(file: MarkedClaims, worth: Numbers, *, by_rule: bool, is_held_out: bool) -> WorthFigures:
    own = file.by_rule == by_rule
    worth, wanted = worth[own], file.is_wanted[own] > 0
    pairs = worth[wanted][:, None] - worth[~wanted][None, :]
    kept = worth >= file.floors[own]
    return WorthFigures(
        file=file.file,
        by_rule=by_rule,
        is_held_out=is_held_out,
        turns=file.turns,
        marks=file.marks,
        claims=len(worth),
        wanted=int(wanted.sum()),
        auroc=float(((pairs > 0) + 0.5 * (pairs == 0)).mean()) if pairs.size else 0.0,
        kept=int(kept.sum()),
        right=int((kept & wanted).sum()),
    )
