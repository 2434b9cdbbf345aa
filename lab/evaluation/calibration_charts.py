"""The calibration of confidence as a picture: the mean confidence of results against the share that are answers."""

from collections.abc import Sequence
from xml.etree import ElementTree as Tree

from lab.evaluation.charts import HUNDRED, SVG, write
from lab.evaluation.confidence import ConfidenceFigures

SIDE = 320
"""Length of both axes, from 0 to 1."""
LEFT, TOP, BOTTOM = 70, 54, 56
WIDTH = 680
LEGEND, LINE = LEFT + SIDE + 40, 24
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
COLOURS = {
    "light": ("#3b76b0", "#b35c1e", "#2e7d4f", "#8250a8", "#a33c5e", "#6e7781"),
    "dark": ("#6ca6e0", "#e39a55", "#67c08c", "#b98fdd", "#e0839f", "#8b949e"),
}


def style(theme: str) -> str:
    rules = (
        f".c{place} {{ stroke: {each}; fill: {each}; }} polyline.c{place} {{ fill: none; }}"
        for place, each in enumerate(COLOURS[theme])
    )
    return "\n".join(rules)


STYLE = f"""
svg {{ font: 13px system-ui, sans-serif; }}
rect.page {{ fill: #ffffff; }} text {{ fill: #1f2328; }} text.quiet {{ fill: #59636e; }}
text.title {{ font-weight: 600; }}
line {{ stroke: #59636e; stroke-width: 1; }} line.mark {{ stroke-dasharray: 3 3; }} polyline {{ stroke-width: 2; }}
{style("light")}
@media (prefers-color-scheme: dark) {{
rect.page {{ fill: #0d1117; }} text {{ fill: #e6edf3; }} text.quiet {{ fill: #9198a1; }} line {{ stroke: #9198a1; }}
{style("dark")}
}}
"""


def render_calibration(figures: Sequence[ConfidenceFigures]) -> str:
    """Return the chart as SVG, for light and dark pages: a line per file, and one where confidence is exact."""
    height = TOP + SIDE + BOTTOM
    size = {"width": str(WIDTH), "height": str(height), "viewBox": f"0 0 {WIDTH} {height}"}
    root = Tree.Element("svg", {"xmlns": SVG, "role": "img"} | size)
    Tree.SubElement(root, "title").text = "Share of answers among results by their confidence"
    Tree.SubElement(root, "style").text = STYLE
    Tree.SubElement(root, "rect", {"class": "page", "width": "100%", "height": "100%"})
    render_axes(root)
    for place, each in enumerate(figures):
        kind = f"c{place % len(COLOURS['light'])}"
        points = [(x_of(one.confidence), y_of(one.answers)) for one in each.bins]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        Tree.SubElement(root, "polyline", {"class": kind, "points": path})
        y = TOP + LINE * (place + 1)
        for x_mark, y_mark in [*points, (LEGEND, y - 4)]:
            Tree.SubElement(root, "circle", {"class": kind, "cx": f"{x_mark:.1f}", "cy": f"{y_mark:.1f}", "r": "4"})
        layout = ", apart" if each.is_apart else ""
        write(root, f"{each.file}{layout} ({'held out' if each.is_held_out else 'fitted'})", x=LEGEND + 12, y=y)
    Tree.indent(root)
    return Tree.tostring(root, encoding="unicode") + "\n"


def render_axes(root: Tree.Element) -> None:
    write(root, "Share of answers, %", x=LEFT, y=TOP - 26, kind="title")
    write(root, "mean confidence, %", x=LEFT + SIDE / 2, y=TOP + SIDE + 40, kind="quiet", anchor="middle")
    for tick in TICKS:
        write(root, f"{HUNDRED * tick:.0f}", x=x_of(tick), y=TOP + SIDE + 18, kind="quiet", anchor="middle")
        write(root, f"{HUNDRED * tick:.0f}", x=LEFT - 10, y=y_of(tick) + 4, kind="quiet", anchor="end")
    for kind, end in (("axis", (1.0, 0.0)), ("axis", (0.0, 1.0)), ("mark", (1.0, 1.0))):
        ends = {"x1": x_of(0.0), "y1": y_of(0.0), "x2": x_of(end[0]), "y2": y_of(end[1])}
        Tree.SubElement(root, "line", {"class": kind} | {name: f"{each:.1f}" for name, each in ends.items()})


def x_of(share: float) -> float:
    return LEFT + SIDE * share


def y_of(share: float) -> float:
    return TOP + SIDE * (1 - share)
