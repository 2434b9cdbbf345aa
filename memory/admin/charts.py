"""Charts over time and by name, as numbers. The templates `admin/memory/dashboard/*` make SVG and tables of them.

The SVG has no script and no style: colours are classes (`dashboard.css`) and lengths are attributes. Values that are
not finite are gaps, and negative values count as zero, since the values are amounts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor, isfinite, log10

WIDTH, HEIGHT = 340, 180
LEFT, RIGHT, TOP, BOTTOM = 50, 12, 10, 24
"""Margins of the plot, with room for the labels of both axes."""
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

MAX_TIME_LABELS = 4
GROUP_SHARE = 0.72
"""Share of a group's width that its columns take."""
MIN_VALUE = 1e-300
"""Smaller values count as zero."""

Value = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartUnit:
    """The unit of values. `format` makes texts of them.

    An axis ends at one of the `marks`, which are in order, or else at one of `steps` times a power of ten.
    """

    format: Callable[[float], str]
    steps: Sequence[int] = (1, 2, 5, 10)
    marks: Sequence[float] = ()

    def ceiling(self, highest: float) -> float:
        """Return the lowest end of an axis that `highest` does not exceed, or 1 if `highest` is zero.

        >>> COUNT.ceiling(1.01), SECONDS.ceiling(0.03), SECONDS.ceiling(61), BYTES.ceiling(3_000)
        (2.0, 0.05, 120, 4096)
        """
        if highest < MIN_VALUE:
            return 1.0
        if self.marks and self.marks[0] <= highest <= self.marks[-1]:
            return next(mark for mark in self.marks if mark >= highest)
        power: float = 10.0 ** floor(log10(highest))
        return next((step * power for step in self.steps if step * power >= highest), highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSeries:
    """A named series of values, one for each time or group of the chart."""

    name: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A label of an axis, at a position in pixels."""

    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """A line of a chart. `path` goes through values that have neighbours; `dots` are values between two gaps."""

    name: str
    number: int
    path: str
    dots: Sequence[Dot]
    latest: str
    highest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rectangle, which `title` describes."""

    number: int
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A row of a table of amounts, with its share of the highest one in percent."""

    name: str
    figure: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart ready for its template, which `type` names. `description` replaces a picture for screen readers."""

    type: str
    key: str
    title: str
    description: str = ""
    lines: Sequence[ChartLine] = ()
    bars: Sequence[Bar] = ()
    amounts: Sequence[Amount] = ()
    names: Sequence[str] = ()
    """Names for the legend, if there is more than one series."""
    across: Sequence[Tick] = ()
    upwards: Sequence[Tick] = ()
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    bottom: float = HEIGHT - BOTTOM

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.bars or self.amounts)

    @property
    def template(self) -> str:
        return f"admin/memory/dashboard/{self.type}.svg"


def render_line_chart(
    key: str, title: str, series: Sequence[ChartSeries], *, moments: Sequence[str], unit: ChartUnit
) -> Chart:
    """Render values over time. `moments` labels the times and has as many items as each series has values."""
    known = [ChartSeries(name=each.name, values=[clean_amount(value) for value in each.values]) for each in series]
    known = [each for each in known if any(value is not None for value in each.values)]
    top = unit.ceiling(max((value for each in known for value in each.values if value is not None), default=0.0))
    lines = [chart_line(each, number, top=top, unit=unit) for number, each in enumerate(known)]
    return Chart(
        type="lines",
        key=key,
        title=title,
        description="; ".join(f"{line.name} {line.latest} latest, {line.highest} at most" for line in lines),
        lines=lines,
        names=[line.name for line in lines] if len(lines) > 1 else (),
        across=list(time_ticks(moments)),
        upwards=list(value_ticks(top, unit)),
    )


def chart_line(series: ChartSeries, number: int, *, top: float, unit: ChartUnit) -> ChartLine:
    dots = [line_dot(index, value, of=len(series.values), top=top) for index, value in enumerate(series.values)]
    runs = [[dot for dot in run if dot] for known, run in groupby(dots, key=bool) if known]
    values = [value for value in series.values if value is not None]
    return ChartLine(
        name=series.name,
        number=number,
        path=" ".join(f"M{' L'.join(f'{dot.x} {dot.y}' for dot in run)}" for run in runs if len(run) > 1),
        dots=[run[0] for run in runs if len(run) == 1],
        latest=unit.format(values[-1]),
        highest=unit.format(max(values)),
    )


def line_dot(index: int, value: Value, *, of: int, top: float) -> Dot | None:
    if value is None:
        return None
    return Dot(x=rounded(LEFT + PLOT_WIDTH * index / max(of - 1, 1)), y=y_of(value, top=top))


def render_column_chart(
    key: str, title: str, series: Sequence[ChartSeries], *, groups: Sequence[str], unit: ChartUnit
) -> Chart:
    """Render amounts by group, such as a day, with one column per series. Unknown values count as zero."""
    known = [
        ChartSeries(name=each.name, values=[clean_amount(value) or 0.0 for value in each.values]) for each in series
    ]
    is_empty = not any(value for each in known for value in each.values)
    top = unit.ceiling(max((value for each in known for value in each.values if value is not None), default=0.0))
    room = PLOT_WIDTH / max(len(groups), 1)
    totals = [f"{each.name} {unit.format(sum(value or 0.0 for value in each.values))}" for each in known]
    return Chart(
        type="columns",
        key=key,
        title=title,
        description=f"Total: {', '.join(totals)}" if totals and not is_empty else "",
        bars=[] if is_empty else list(column_bars(known, groups, room=room, top=top, unit=unit)),
        names=[each.name for each in known] if len(known) > 1 else (),
        across=[Tick(at=rounded(LEFT + room * (index + 0.5)), label=group) for index, group in enumerate(groups)],
        upwards=list(value_ticks(top, unit)),
    )


def column_bars(
    series: Sequence[ChartSeries], groups: Sequence[str], *, room: float, top: float, unit: ChartUnit
) -> Iterator[Bar]:
    width = room * GROUP_SHARE / len(series)
    for number, each in enumerate(series):
        for index, (group, value) in enumerate(zip(groups, each.values, strict=True)):
            if value:
                x, y = LEFT + room * (index + (1 - GROUP_SHARE) / 2) + width * number, y_of(value, top=top)
                title = f"{group}: {each.name} {unit.format(value)}"
                height = rounded(HEIGHT - BOTTOM - y)
                yield Bar(number=number, x=rounded(x), y=y, width=rounded(width), height=height, title=title)


def render_amounts(key: str, title: str, amounts: Sequence[tuple[str, float]], *, unit: ChartUnit) -> Chart:
    """Render amounts by name as a table with a bar for each."""
    known = [(name, clean_amount(value) or 0.0) for name, value in amounts]
    highest = max((value for _, value in known), default=0.0) or 1.0
    rows = [
        Amount(name=name, figure=unit.format(value), share=rounded(100 * (value / highest))) for name, value in known
    ]
    return Chart(type="amounts", key=key, title=title, amounts=rows)


def clean_amount(value: Value) -> Value:
    return None if value is None or not isfinite(value) else max(float(value), 0.0)


def value_ticks(top: float, unit: ChartUnit) -> Iterator[Tick]:
    for share in (0.0, 0.5, 1.0):
        yield Tick(at=rounded(HEIGHT - BOTTOM - PLOT_HEIGHT * share), label=unit.format(top * share), anchor="end")


def time_ticks(moments: Sequence[str]) -> Iterator[Tick]:
    """Yield the first and the last time, and evenly spaced ones between them."""
    count = min(MAX_TIME_LABELS, len(moments))
    for number in range(count):
        index = round(number * (len(moments) - 1) / max(count - 1, 1))
        anchor = "start" if number == 0 else "end" if number == count - 1 else "middle"
        yield Tick(
            at=rounded(LEFT + PLOT_WIDTH * index / max(len(moments) - 1, 1)), label=moments[index], anchor=anchor
        )


def y_of(value: float, *, top: float) -> float:
    """Return the vertical position of a value, in pixels from the top."""
    return rounded(HEIGHT - BOTTOM - PLOT_HEIGHT * min(value / top, 1.0))


def rounded(pixels: float) -> float:
    return round(pixels, 1)


def format_count_short(value: float) -> str:
    """Format a count in about three digits.

    >>> [format_count_short(value) for value in (0, 0.5, 950, 999.9, 1_500, 2_000_000)]
    ['0', '0.5', '950', '1000', '1.5k', '2M']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{format_digits(value / size)}{unit}"
    return format_digits(value)


def format_seconds(value: float) -> str:
    """Format a duration in the unit that fits.

    >>> [format_seconds(value) for value in (0, 0.012, 2.5, 300, 7_200, 200_000)]
    ['0', '12 ms', '2.5 s', '5 min', '2 h', '2.31 d']
    """
    for unit, size, least in (("d", 86_400, 172_800), ("h", 3_600, 7_200), ("min", 60, 120), ("s", 1, 1)):
        if value >= least:
            return f"{format_digits(value / size)} {unit}"
    return f"{format_digits(value * 1_000)} ms" if value else "0"


def format_bytes(value: float) -> str:
    """Format a size in powers of 1024.

    >>> [format_bytes(value) for value in (0, 512, 1_536, 3 * 1024**3)]
    ['0', '512 B', '1.5 KiB', '3 GiB']
    """
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if value >= 1024**power:
            return f"{format_digits(value / 1024**power)} {unit}"
    return f"{format_digits(value)} B" if value else "0"


def format_digits(value: float) -> str:
    """Format a number in three significant digits, without an exponent if possible."""
    return f"{float(f'{value:.3g}'):g}"


COUNT = ChartUnit(format=format_count_short)
SECONDS = ChartUnit(
    format=format_seconds, marks=[60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 172_800]
)
BYTES = ChartUnit(format=format_bytes, marks=[2**power for power in range(10, 50)])
