"""Learning and judging the worth of claims, from talk with an assistant in which readers judged what was extracted.

A file of judged talk has a line `@ ID KIND NAME TIME` for each conversation, then a line `U: …` or `A: …` for each turn
of the user or the assistant. After a user's turn, a line for each claim that a reader judged: `+ claim` if it says what
the user said, is understood alone and is of use a month later, `- claim` if it is wrong or not understood, `~ claim`
if it is right, but of the moment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.evaluation.learning import Numbers
from lab.evaluation.logistic import fit_logistic
from memory.extraction.knowledge import Chunk, ChunkTurn
from memory.extraction.rules import read_claims_to_judge
from memory.extraction.rules.open_claims import OPEN
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.verdicts import WORTH_FLOOR
from memory.extraction.worth import WORDS, Worth, features_of, reduce_features

GOOD = "+ "
VERDICTS = (GOOD, "- ", "~ ")
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
class JudgedTalk:
    """The claims of a file that a reader judged, with a row of `features_of` for each.

    `turns` is the number of the users' turns, `unjudged` that of the claims without a verdict, which teach nothing.
    """

    file: str
    turns: int
    unjudged: int
    claims: list[str]
    by_rule: NDArray[np.bool_]
    features: Numbers
    is_good: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthFigures:
    """The quality of the worth on one file, for claims of rules or in the speaker's own words (`by_rule`).

    `kept` claims are worth WORTH_FLOOR, and `right` ones of them are good. `auroc` is the probability that a good claim
    has more worth than another one. `is_held_out` is False if the weights know the file.
    """

    file: str
    by_rule: bool
    is_held_out: bool
    turns: int
    unjudged: int
    claims: int
    good: int
    auroc: float
    kept: int
    right: int


def read_judged(path: Path) -> JudgedTalk:
    """Read the judged claims of a file. Raises ValueError with the line for anything but judged talk."""
    claims: list[Statement] = []
    verdicts: list[bool] = []
    turns = found = 0
    for conversation, judged in _read_conversations(path):
        turns += sum(turn.role == "user" for turn in conversation)
        for start in range(0, len(conversation), TURNS_OF_CHUNK):
            for claim in read_claims_to_judge(Chunk(turns=conversation[start : start + TURNS_OF_CHUNK])):
                found += 1
                if (key := (claim.turn, claim.claim)) in judged:
                    claims.append(claim)
                    verdicts.append(judged[key])
    return JudgedTalk(
        file=path.stem,
        turns=turns,
        unjudged=found - len(claims),
        claims=[claim.claim for claim in claims],
        by_rule=np.array([claim.attribute != OPEN for claim in claims]),
        features=features_of(claims),
        is_good=np.array(verdicts, dtype=np.float64),
    )


def _read_conversations(path: Path) -> Iterator[tuple[list[ChunkTurn], dict[tuple[int, str], bool]]]:
    """Yield the turns of each conversation, and whether each judged claim, by the index of its turn, is good."""
    turns: list[ChunkTurn] = []
    verdicts: dict[tuple[int, str], bool] = {}
    begun = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("@ "):
            if turns:
                yield turns, verdicts
            turns, verdicts, begun = [], {}, _time_of(line, f"{path}, line {number}")
        elif line.startswith(("U: ", "A: ")) and begun is not None:
            role = "user" if line[0] == "U" else "assistant"
            at = begun + timedelta(minutes=len(turns))
            turns.append(ChunkTurn(index=len(turns), role=role, speaker=role, text=line[3:], timestamp=at))
        elif line.startswith(VERDICTS) and turns and turns[-1].role == "user":
            verdicts[len(turns) - 1, line[2:]] = line.startswith(GOOD)
        elif line.strip():
            raise ValueError(f"{path}, line {number} begins with none of '@ ', 'U: ', 'A: ', '+ ', '- ' and '~ '")
    if turns:
        yield turns, verdicts


def _time_of(line: str, place: str) -> datetime:
    parts = line.split()
    if len(parts) != 5:
        raise ValueError(f"{place}: expected '@ ID KIND NAME TIME'")
    return datetime.fromisoformat(f"{parts[4]}:00+00:00")


def learn_worth(files: Sequence[JudgedTalk]) -> Worth:
    """Return the weights under which the good claims are the likeliest."""
    features = np.concatenate([each.features for each in files])
    good = np.concatenate([each.is_good for each in files])
    directions = np.linalg.svd(features[:, : -len(WORDS)], full_matrices=False).Vh[:DIRECTIONS]
    scale = np.repeat([VECTOR_SCALE, WORD_SCALE], [len(directions), len(WORDS)])
    reduced = scale * reduce_features(features, directions)
    first, second = np.triu_indices(len(scale))
    table = np.hstack([features, reduced[:, first] * reduced[:, second], np.ones((len(features), 1))])
    ridge = np.array([*[L2] * (table.shape[1] - 1), 0.0])
    weights = fit_logistic(table, good, np.full(len(table), 1 / len(table)), ridge)
    pairs = np.zeros((len(scale), len(scale)))
    pairs[first, second] = weights[features.shape[1] : -1] * scale[first] * scale[second]
    return Worth(linear=weights[: features.shape[1]], directions=directions, pairs=pairs, intercept=float(weights[-1]))


def judge_files(files: Sequence[JudgedTalk]) -> list[WorthFigures]:
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


def _judge(file: JudgedTalk, worth: Numbers, *, by_rule: bool, is_held_out: bool) -> WorthFigures:
    own = file.by_rule == by_rule
    worth, good = worth[own], file.is_good[own] > 0
    pairs = worth[good][:, None] - worth[~good][None, :]
    kept = worth >= WORTH_FLOOR
    return WorthFigures(
        file=file.file,
        by_rule=by_rule,
        is_held_out=is_held_out,
        turns=file.turns,
        unjudged=file.unjudged,
        claims=len(worth),
        good=int(good.sum()),
        auroc=float(((pairs > 0) + 0.5 * (pairs == 0)).mean()) if pairs.size else 0.0,
        kept=int(kept.sum()),
        right=int((kept & good).sum()),
    )
