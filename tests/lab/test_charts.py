"""The picture of an ablation: well-formed, in order, to scale."""

from xml.etree import ElementTree as Tree

import pytest

from lab.evaluation.ablation import Ablation, AblationRow
from lab.evaluation.charts import BARS, render_chart

NAMESPACE = "{http://www.w3.org/2000/svg}"


def row(name: str, share: float) -> AblationRow:
    return AblationRow(name=name, all=share, types={"t": share})


def ablation(**lost: float) -> Ablation:
    """Return an ablation with 0.8 for all signals, and 0.25 for each signal alone."""
    return Ablation(
        signals=[row("all signals", 0.8), row("words and meaning", 0.6)],
        alone=[row(name, 0.25) for name in lost],
        without=[row(name, 0.8 - each) for name, each in lost.items()],
    )


def texts(chart: str) -> list[str]:
    return [element.text or "" for element in Tree.fromstring(chart).iter(f"{NAMESPACE}text")]


def bars(chart: str, kind: str) -> list[float]:
    rects = Tree.fromstring(chart).iter(f"{NAMESPACE}rect")
    return [float(rect.attrib["width"]) for rect in rects if rect.attrib.get("class") == kind]


def test_the_signal_with_the_largest_loss_comes_first() -> None:
    drawn = texts(render_chart(ablation(small=0.01, large=0.1, none=-0.02)))

    assert [name for name in drawn if name in {"small", "large", "none"}] == ["large", "small", "none"]
    assert {"10.0", "1.0", "-2.0", "all signals 80.0", "words and meaning 60.0"} <= set(drawn)


def test_a_rounded_zero_has_no_sign() -> None:
    assert "0.0" in texts(render_chart(ablation(none=-0.0001)))


def test_bars_are_to_scale() -> None:
    chart = render_chart(ablation(large=0.1, small=0.025, none=-0.1))

    assert bars(chart, "alone") == [pytest.approx(BARS / 4)] * 3
    assert bars(chart, "lost") == [pytest.approx(BARS / 2), pytest.approx(BARS / 8)]
    assert bars(chart, "gained") == [pytest.approx(BARS / 2)]


@pytest.mark.parametrize("lost", [{}, {"nothing": 0.0}, {"<&\"'>": 0.1}], ids=["none", "zero", "markup"])
def test_any_ablation_can_be_drawn(lost: dict[str, float]) -> None:
    assert set(lost) <= set(texts(render_chart(ablation(**lost))))


def test_dark_pages_have_colours_of_their_own() -> None:
    assert "prefers-color-scheme: dark" in render_chart(ablation(small=0.01))
