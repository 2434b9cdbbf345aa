"""Counting the tokens of texts of which most lines were counted before."""

from collections.abc import Callable
from dataclasses import dataclass, field

from memory.tokens import estimate_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounter:
    """Tokens of a text as `count` has them, and no fewer than estimated; each line is counted once.

    No tokenizer joins what stands on two lines, so that those of a text are those of its lines.
    """

    count: Callable[[str], int]
    known: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        return sum(map(self._count_line, text.splitlines(keepends=True)))

    def _count_line(self, line: str) -> int:
        if line not in self.known:
            self.known[line] = max(self.count(line), estimate_tokens(line))
        return self.known[line]
