"""Self-query: the times that a question speaks of, and whose words it asks for, read out of the question itself.

Both prefer, and leave nothing out. By rules; where they find nothing, by a language model if one is configured, which
is believed only where the question has the words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from memory.identity import fold
from memory.providers.sentences import UNSPACED
from memory.retrieval.plans import Moment
from memory.retrieval.queries import Query, Window
from memory.retrieval.rewriters.readings import (
    MOST_TIMES,
    SELF_QUERY,
    Filters,
    Time,
    read_question,
)
from memory.retrieval.rewriters.speakers import ASSISTANT, MOST_SPEAKERS, USER, speakers_of
from memory.retrieval.rewriters.time_words import may_name_time
from memory.retrieval.rewriters.times import windows_of
from memory.retrieval.rewriters.words import LONGEST_READ, merge

EARLIEST_YEAR, LATEST_YEARS_AHEAD = 1900, 50
"""What a model says of other years makes no sense."""
_LETTER = rf"[^\W{UNSPACED}]"


def read_filters(query: Query, moment: Moment) -> Query:
    """With the windows and speakers of the text; the same query where there are none."""
    text = query.text[:LONGEST_READ]
    found = with_filters(query, windows_of(text, now=moment.now), speakers_of(text))
    if found is not query or moment.model is None or not text.strip():
        return found
    answer = read_question(query, moment, SELF_QUERY, Filters, model=moment.model, fallback=query)
    return with_filters(query, sensible_windows(answer.times, text, moment), sensible_speakers(answer.speakers, text))


def with_filters(query: Query, windows: Sequence[Window], speakers: Sequence[str]) -> Query:
    found = replace(
        query,
        windows=merge(query.windows, windows, most=MOST_TIMES),
        speakers=merge(query.speakers, speakers, most=MOST_SPEAKERS),
    )
    return query if found == query else found


def sensible_windows(times: Sequence[Time], text: str, moment: Moment) -> list[Window]:
    """Of the times that a model names, those whose words stand in the text and may name one, and whose days are."""
    named = [each for each in times[:MOST_TIMES] if stands_in(each.words, text) and may_name_time(each.words)]
    windows = [window_of_days(each, moment.now) for each in named]
    return [window for window in windows if window is not None]


def window_of_days(named: Time, now: datetime) -> Window | None:
    """None for days that there are not, in the wrong order, or far from every memory."""
    try:
        first, last = (None if day is None else date.fromisoformat(day) for day in (named.first_day, named.last_day))
    except ValueError:
        return None
    days = [day for day in (first, last) if day is not None]
    if not days or days != sorted(days):
        return None
    if not all(EARLIEST_YEAR <= day.year <= now.year + LATEST_YEARS_AHEAD for day in days):
        return None
    return Window(
        since=None if first is None else midnight(first), until=None if last is None else midnight(last, days=1)
    )


def midnight(day: date, *, days: int = 0) -> datetime:
    return datetime.combine(day + timedelta(days=days), time.min, tzinfo=UTC)


def sensible_speakers(speakers: Sequence[str], text: str) -> list[str]:
    """Roles, and names that stand in the text."""
    return list(spoken_of(speakers[:MOST_SPEAKERS], text))


def spoken_of(speakers: Sequence[str], text: str) -> Iterator[str]:
    for speaker in speakers:
        name = " ".join(speaker.split())
        if name.lower() in (USER, ASSISTANT):
            yield name.lower()
        elif stands_in(name, text):
            yield name


def stands_in(words: str, text: str) -> bool:
    """As whole words, however they are written; in scripts without spaces anywhere."""
    bare = re.escape(" ".join(fold(words).split()))
    return bool(bare) and re.search(rf"(?<!{_LETTER}){bare}(?!{_LETTER})", " ".join(fold(text).split())) is not None
