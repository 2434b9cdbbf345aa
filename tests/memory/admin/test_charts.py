"""Charts: whatever the series, well-formed SVG within its box, with a text alternative."""

import doctest
from collections.abc import Iterator
from xml.etree import ElementTree as Tree

from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from memory.admin import charts
from memory.admin.charts import (
    BYTES,
    COUNT,
    HEIGHT,
    SECONDS,
    WIDTH,
    Chart,
    ChartSeries,
    ChartUnit,
    render_amounts,
    render_column_chart,
    render_line_chart,
)
from tests.properties import examples

VALUES = st.none() | st.floats() | st.integers(0, 10**12).map(float)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@st.composite
def series(draw: st.DrawFn) -> tuple[list[ChartSeries], list[str]]:
    """Up to four series of one length, and the labels of their moments."""
    length = draw(st.integers(0, 12))
    values = st.lists(VALUES, min_size=length, max_size=length)
    made = draw(st.lists(st.builds(ChartSeries, name=NAMES, values=values), max_size=4))
    return made, draw(st.lists(NAMES, min_size=length, max_size=length))


def svg_of(chart: Chart) -> Tree.Element | None:
    """Return the picture of the chart on the page, or None for an empty chart."""
    page = Tree.fromstring(render_to_string("admin/memory/dashboard/chart.html", {"chart": chart}))
    pictures = [each for each in page if each.tag.endswith("}svg")]
    return pictures[0] if pictures else None


def numbers_of(picture: Tree.Element) -> Iterator[tuple[float, float]]:
    """Points that something is drawn at."""
    for each in picture.iter():
        at = {name: float(each.get(name, 0)) for name in ("x", "y", "cx", "cy", "width", "height", "x1", "x2")}
        if each.tag.endswith("}path"):
            steps = each.get("d", "").replace("M", " ").replace("L", " ").split()
            yield from zip(map(float, steps[::2]), map(float, steps[1::2]), strict=True)
        elif not each.tag.endswith("}svg"):
            yield at["x"] + at["cx"] + at["x1"], at["y"] + at["cy"]
            yield at["x"] + at["width"], at["y"] + at["height"]


@examples(60)
@given(series())
def test_any_series_gives_svg_within_its_box(made: tuple[list[ChartSeries], list[str]]) -> None:
    known, labels = made
    lines = render_line_chart("k", "Title & <more>", known, moments=labels, unit=COUNT)
    columns = render_column_chart("k", "Title", known, groups=labels, unit=COUNT)

    for chart in (lines, columns):
        picture = svg_of(chart)
        assert (picture is None) is chart.is_empty
        if picture is not None:
            assert all(0 <= x <= WIDTH and 0 <= y <= chart.height for x, y in numbers_of(picture))
            assert (picture.get("role"), len(picture.findall("{*}title") + picture.findall("{*}desc"))) == ("img", 2)


@examples(60)
@given(st.lists(st.tuples(NAMES, st.floats())))
def test_any_amounts_give_a_table_with_bars_within_it(amounts: list[tuple[str, float]]) -> None:
    chart = render_amounts("k", "Title & <more>", amounts, unit=COUNT)

    page = Tree.fromstring(render_to_string("admin/memory/dashboard/chart.html", {"chart": chart}))
    assert [each.text or "" for each in page.iter("th")] == [name for name, _ in amounts]
    assert all(0 <= float(str(each.get("width")).rstrip("%")) <= 100 for each in page.iter("rect"))


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    values = [None, 5, 10, None, 0, None, float("nan")]
    chart = render_line_chart("k", "t", [ChartSeries(name="s", values=values)], moments=list("abcdefg"), unit=COUNT)

    [line] = chart.lines
    assert line.path == "M96.3 83.0 L142.7 10.0"
    assert [(dot.x, dot.y) for dot in line.dots] == [(235.3, HEIGHT - charts.BOTTOM)]
    assert (line.latest, line.highest, chart.description) == ("0", "10", "s 0 latest, 10 at most")
    assert [tick.label for tick in chart.upwards] == ["0", "5", "10"]
    assert [tick.label for tick in chart.across] == ["a", "c", "e", "g"]


@given(st.floats(0, allow_infinity=False), st.sampled_from([COUNT, SECONDS, BYTES]))
def test_an_axis_ends_at_or_slightly_above_its_highest_value(most: float, unit: ChartUnit) -> None:
    top = unit.ceiling(most)

    assert most <= top
    assert top <= most * 10 or most < charts.MIN_VALUE


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(charts).failed == 0
