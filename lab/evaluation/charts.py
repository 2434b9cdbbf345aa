"""The ablation of signals as a picture: one line a signal, what it finds alone, and what is lost without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as Tree

from lab.evaluation.ablation import Ablation

SVG = "http://www.w3.org/2000/svg"
WIDTH = 780
LABELS, ALONE, LOST = 150, 180, 500
"""The x positions where the columns of names end and the bars of the two halves begin."""
BARS = 200
"""Length of the longest bar."""
TOP, LINE, BAR, BOTTOM = 78, 24, 14, 34
GAP = 6
HUNDRED = 100.0
STYLE = """
svg { font: 13px system-ui, sans-serif; }
rect.page { fill: #ffffff; } text { fill: #1f2328; } text.quiet { fill: #59636e; }
rect.alone { fill: #3b76b0; } rect.lost { fill: #b35c1e; } rect.gained { fill: #6e7781; }
line { stroke: #59636e; stroke-width: 1; } line.mark { stroke-dasharray: 3 3; }
text.title { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  rect.page { fill: #0d1117; } text { fill: #e6edf3; } text.quiet { fill: #9198a1; }
  rect.alone { fill: #6ca6e0; } rect.lost { fill: #e39a55; } rect.gained { fill: #8b949e; }
  line { stroke: #9198a1; }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationBar:
    """A bar of the chart, in hundredths."""

    name: str
    alone: float
    lost: float


def bars_of_ablation(ablation: Ablation) -> list[AblationBar]:
    """Return the bars, those whose absence costs most first."""
    everything = ablation.signals[0].all
    lines = [
        AblationBar(name=alone.name, alone=HUNDRED * alone.all, lost=HUNDRED * (everything - without.all))
        for alone, without in zip(ablation.alone, ablation.without, strict=True)
    ]
    return sorted(lines, key=lambda line: (-line.lost, line.name))


def render_chart(ablation: Ablation) -> str:
    """Return the chart as SVG, for light and dark pages."""
    lines = bars_of_ablation(ablation)
    height = TOP + LINE * len(lines) + BOTTOM
    root = Tree.Element(
        "svg", xmlns=SVG, viewBox=f"0 0 {WIDTH} {height}", width=str(WIDTH), height=str(height), role="img"
    )
    Tree.SubElement(
        root, "title"
    ).text = "Answers among the first ten by each signal alone, and what is lost without it"
    Tree.SubElement(root, "style").text = STYLE
    Tree.SubElement(root, "rect", {"class": "page", "width": "100%", "height": "100%"})
    write(root, "Each signal alone", x=ALONE, y=22, kind="title")
    write(root, "recall@10, %", x=ALONE, y=40, kind="quiet")
    write(root, "All but this one", x=LOST, y=22, kind="title")
    write(root, "points of recall@10 lost (left: gained)", x=LOST, y=40, kind="quiet")
    render_bars(root, lines)
    for place, row in enumerate(reversed(ablation.signals)):
        render_reference_line(root, row.name, HUNDRED * row.all, bottom=height - BOTTOM, is_higher=bool(place))
    Tree.indent(root)
    return Tree.tostring(root, encoding="unicode") + "\n"


def render_bars(root: Tree.Element, lines: Sequence[AblationBar]) -> None:
    """Draw the bars. Losses have a scale of their own, whose zero leaves room for gains."""
    least, most = min([0.0, *(line.lost for line in lines)]), max([0.0, *(line.lost for line in lines)])
    scale = BARS / max(most - least, 1.0)
    zero = LOST - least * scale
    for place, line in enumerate(lines):
        top = TOP + LINE * place
        write(root, line.name, x=LABELS, y=top + BAR - 2, anchor="end")
        bar(root, "alone", x=ALONE, y=top, width=line.alone * BARS / HUNDRED)
        write(root, f"{line.alone:.1f}", x=ALONE + line.alone * BARS / HUNDRED + GAP, y=top + BAR - 2, kind="quiet")
        width = line.lost * scale
        bar(root, "lost" if width >= 0 else "gained", x=zero + min(width, 0.0), y=top, width=abs(width))
        # a zero has no sign
        lost = round(line.lost, 1) + 0.0
        write(root, f"{lost:.1f}", x=zero + max(width, 0.0) + GAP, y=top + BAR - 2, kind="quiet")
    foot = TOP + LINE * len(lines)
    Tree.SubElement(root, "line", x1=f"{zero:.1f}", x2=f"{zero:.1f}", y1=str(TOP - GAP), y2=str(foot))


def render_reference_line(root: Tree.Element, name: str, value: float, *, bottom: int, is_higher: bool) -> None:
    """Draw a line across all bars of the first half, with its name above or below."""
    x = ALONE + value * BARS / HUNDRED
    Tree.SubElement(
        root, "line", {"class": "mark", "x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": str(TOP - GAP), "y2": str(bottom)}
    )
    y = TOP - 2 * GAP if is_higher else bottom + 3 * GAP
    write(root, f"{name} {value:.1f}", x=x, y=y, kind="quiet", anchor="middle")


def bar(root: Tree.Element, kind: str, *, x: float, y: float, width: float) -> None:
    Tree.SubElement(
        root,
        "rect",
        {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": str(BAR), "rx": "2"},
    )


def write(root: Tree.Element, text: str, *, x: float, y: float, kind: str = "", anchor: str = "start") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    Tree.SubElement(root, "text", place | ({"class": kind} if kind else {})).text = text
