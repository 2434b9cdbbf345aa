"""Charts of figures over time and by name, as numbers: the templates `admin/memory/dashboard/*.svg` make SVG of them.

No script and no style of their own: colours are classes (`dashboard.css`), lengths are attributes. What is no finite
number is a gap, and what is below zero counts as zero: figures of a service are amounts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor, isfinite, log10

WIDTH, HEIGHT = 340, 180
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 10, 24
"""Margins of the plot: room for the labels of both axes."""
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

LABELLED = 4
"""Labels on the axis of time, at most."""
GROUP_SHARE = 0.72
"""Of the room of a group, what its columns have."""
ROW, NAMES, FIGURES = 20, 92, 44
"""Of bars: the height of one with its space, and the room of names and of figures beside it."""
NAME_CHARACTERS = 16
LEAST = 1e-300
"""Less is nothing."""

Value = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What values are of: `tell` makes texts of them; an axis ends at one of `steps` times a power of ten, or at one of
    the `marks`, which are in order and go before."""

    tell: Callable[[float], str]
    steps: Sequence[int] = (1, 2, 5, 10)
    marks: Sequence[float] = ()

    def ceiling(self, most: float) -> float:
        """The least end of an axis that `most` does not exceed; 1 where that is nothing.

        >>> COUNT.ceiling(1.01), SECONDS.ceiling(0.03), SECONDS.ceiling(61), BYTES.ceiling(3_000)
        (2.0, 0.05, 120, 4096)
        """
        if most < LEAST:
            return 1.0
        if self.marks and self.marks[0] <= most <= self.marks[-1]:
            return next(mark for mark in self.marks if mark >= most)
        power: float = 10.0 ** floor(log10(most))
        return next((step * power for step in self.steps if step * power >= most), most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values one after the other, at the moments (or of the groups) that the chart has."""

    name: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`path` goes through all moments that have neighbours; `dots` are those between two gaps. `latest` is told."""

    name: str
    number: int
    path: str
    dots: Sequence[Dot]
    latest: str
    highest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rectangle; `title` says it in words, `figure` stands beside it where there is room."""

    number: int
    x: float
    y: float
    width: float
    height: float
    title: str
    name: str = ""
    figure: str = ""

    @property
    def text_y(self) -> float:
        """Where text beside a bar that lies stands."""
        return rounded(self.y + self.height / 2 + 4)

    @property
    def end(self) -> float:
        return rounded(self.x + self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`sort` names the template; `told` describes it to who does not see it. Without values it is empty."""

    sort: str
    key: str
    title: str
    told: str
    height: float = HEIGHT
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    names: Sequence[str] = ()
    """Of series, where there is more than one: the legend."""
    across: Sequence[Tick] = ()
    upwards: Sequence[Tick] = ()
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT
    bottom: float = HEIGHT - BOTTOM

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.bars)

    @property
    def template(self) -> str:
        return f"admin/memory/dashboard/{self.sort}.svg"


def draw_lines(key: str, title: str, series: Sequence[Series], *, moments: Sequence[str], unit: Unit) -> Chart:
    """Values over time. `moments` are the labels of the times, as many as each series has values."""
    known = [Series(name=each.name, values=[amount(value) for value in each.values]) for each in series]
    known = [each for each in known if any(value is not None for value in each.values)]
    top = unit.ceiling(max((value for each in known for value in each.values if value is not None), default=0.0))
    lines = [draw_line(each, number, top=top, unit=unit) for number, each in enumerate(known)]
    return Chart(
        sort="lines",
        key=key,
        title=title,
        told="; ".join(f"{line.name} {line.latest} now, {line.highest} at most" for line in lines),
        lines=lines,
        names=[line.name for line in lines] if len(lines) > 1 else (),
        across=list(time_ticks(moments)),
        upwards=list(value_ticks(top, unit)),
    )


def draw_line(series: Series, number: int, *, top: float, unit: Unit) -> Line:
    places = [place(index, value, of=len(series.values), top=top) for index, value in enumerate(series.values)]
    runs = [[dot for dot in run if dot] for known, run in groupby(places, key=bool) if known]
    values = [value for value in series.values if value is not None]
    return Line(
        name=series.name,
        number=number,
        path=" ".join(f"M{' L'.join(f'{dot.x} {dot.y}' for dot in run)}" for run in runs if len(run) > 1),
        dots=[run[0] for run in runs if len(run) == 1],
        latest=unit.tell(values[-1]),
        highest=unit.tell(max(values)),
    )


def place(index: int, value: Value, *, of: int, top: float) -> Dot | None:
    if value is None:
        return None
    return Dot(x=rounded(LEFT + PLOT_WIDTH * index / max(of - 1, 1)), y=height_of(value, top=top))


def draw_columns(key: str, title: str, series: Sequence[Series], *, groups: Sequence[str], unit: Unit) -> Chart:
    """Amounts by group (a day), of each series a column beside the others. What is unknown counts as nothing."""
    known = [Series(name=each.name, values=[amount(value) or 0.0 for value in each.values]) for each in series]
    is_empty = not any(value for each in known for value in each.values)
    top = unit.ceiling(max((value for each in known for value in each.values if value is not None), default=0.0))
    room = PLOT_WIDTH / max(len(groups), 1)
    totals = [f"{each.name} {unit.tell(sum(value or 0.0 for value in each.values))}" for each in known]
    return Chart(
        sort="columns",
        key=key,
        title=title,
        told=f"In all: {', '.join(totals)}" if totals and not is_empty else "",
        bars=[] if is_empty else list(make_columns(known, groups, room=room, top=top, unit=unit)),
        names=[each.name for each in known] if len(known) > 1 else (),
        across=[Tick(at=rounded(LEFT + room * (index + 0.5)), label=group) for index, group in enumerate(groups)],
        upwards=list(value_ticks(top, unit)),
    )


def make_columns(
    series: Sequence[Series], groups: Sequence[str], *, room: float, top: float, unit: Unit
) -> Iterator[Bar]:
    width = room * GROUP_SHARE / len(series)
    for number, each in enumerate(series):
        for index, (group, value) in enumerate(zip(groups, each.values, strict=True)):
            if value:
                x, y = LEFT + room * (index + (1 - GROUP_SHARE) / 2) + width * number, height_of(value, top=top)
                title = f"{group}: {each.name} {unit.tell(value)}"
                height = rounded(HEIGHT - BOTTOM - y)
                yield Bar(number=number, x=rounded(x), y=y, width=rounded(width), height=height, title=title)


def draw_bars(key: str, title: str, amounts: Sequence[tuple[str, float]], *, unit: Unit) -> Chart:
    """Amounts by name, one bar below the other."""
    known = [(name, amount(value) or 0.0) for name, value in amounts]
    most = max((value for _, value in known), default=0.0) or 1.0
    room = WIDTH - NAMES - FIGURES
    bars = [
        Bar(
            number=0,
            x=NAMES,
            y=ROW * row + 4,
            width=rounded(room * (value / most)),
            height=ROW - 8,
            title=f"{name}: {unit.tell(value)}",
            name=name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…",
            figure=unit.tell(value),
        )
        for row, (name, value) in enumerate(known)
    ]
    return Chart(
        sort="bars", key=key, title=title, told="; ".join(bar.title for bar in bars), bars=bars, height=ROW * len(bars)
    )


def amount(value: Value) -> Value:
    return None if value is None or not isfinite(value) else max(float(value), 0.0)


def value_ticks(top: float, unit: Unit) -> Iterator[Tick]:
    for share in (0.0, 0.5, 1.0):
        yield Tick(at=rounded(HEIGHT - BOTTOM - PLOT_HEIGHT * share), label=unit.tell(top * share), anchor="end")


def time_ticks(moments: Sequence[str]) -> Iterator[Tick]:
    """The first, the last, and what is even between them."""
    count = min(LABELLED, len(moments))
    for number in range(count):
        index = round(number * (len(moments) - 1) / max(count - 1, 1))
        anchor = "start" if number == 0 else "end" if number == count - 1 else "middle"
        yield Tick(
            at=rounded(LEFT + PLOT_WIDTH * index / max(len(moments) - 1, 1)), label=moments[index], anchor=anchor
        )


def height_of(value: float, *, top: float) -> float:
    """Where on the page that is: down is more."""
    return rounded(HEIGHT - BOTTOM - PLOT_HEIGHT * min(value / top, 1.0))


def rounded(place: float) -> float:
    return round(place, 1)


def tell_count(value: float) -> str:
    """In three digits or so.

    >>> [tell_count(value) for value in (0, 0.5, 950, 999.9, 1_500, 2_000_000)]
    ['0', '0.5', '950', '1000', '1.5k', '2M']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{shortly(value / size)}{unit}"
    return shortly(value)


def tell_seconds(value: float) -> str:
    """In the unit that fits.

    >>> [tell_seconds(value) for value in (0, 0.012, 2.5, 300, 7_200, 200_000)]
    ['0', '12 ms', '2.5 s', '5 min', '2 h', '2.31 d']
    """
    for unit, size, least in (("d", 86_400, 172_800), ("h", 3_600, 7_200), ("min", 60, 120), ("s", 1, 1)):
        if value >= least:
            return f"{shortly(value / size)} {unit}"
    return f"{shortly(value * 1_000)} ms" if value else "0"


def tell_bytes(value: float) -> str:
    """In powers of 1024.

    >>> [tell_bytes(value) for value in (0, 512, 1_536, 3 * 1024**3)]
    ['0', '512 B', '1.5 KiB', '3 GiB']
    """
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if value >= 1024**power:
            return f"{shortly(value / 1024**power)} {unit}"
    return f"{shortly(value)} B" if value else "0"


def shortly(value: float) -> str:
    """Three digits that mean something, without an exponent where none is needed."""
    return f"{float(f'{value:.3g}'):g}"


COUNT = Unit(tell=tell_count)
SECONDS = Unit(
    tell=tell_seconds, marks=[60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 172_800]
)
BYTES = Unit(tell=tell_bytes, marks=[2**power for power in range(10, 50)])
