"""Visits of pages in a browser, and the faults that they show: errors, overflow, and what axe finds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

RECORD_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
// colours change at once, so that they can be measured
const still = new CSSStyleSheet();
still.replaceSync("*, *::before, *::after { transition: none !important; animation: none !important; }");
document.adoptedStyleSheets = [still];
"""
OVERFLOW = """() => {
    const width = document.documentElement.clientWidth, boxes = [];
    for (const each of document.querySelectorAll("body *")) {
        const box = each.getBoundingClientRect();
        if (box.width > 0 && box.right > width + 1 && getComputedStyle(each).position !== "absolute")
            boxes.push(`${each.tagName.toLowerCase()}#${each.id}.${each.className} ends at ${Math.round(box.right)}`);
        if (each.scrollWidth > each.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(each).overflowX)
            && each.matches("#changelist-form .results, #content, main, #main"))
            boxes.push(`${each.className || each.id} scrolls by ${each.scrollWidth - each.clientWidth}`);
    }
    const by = document.documentElement.scrollWidth - width;
    return by > 0 || boxes.some((box) => box.includes("scrolls")) ? [`the page by ${by}`, ...boxes.slice(-4)] : [];
}"""
RUN_AXE = """async (rules) => {
    const options = {resultTypes: ["violations"], runOnly: rules.length ? {type: "rule", values: rules} : undefined};
    // Django's box for permissions has tooltips that are named against the rules
    const found = await axe.run({exclude: [[".help-tooltip"]]}, options);
    return found.violations.filter((each) => ["serious", "critical"].includes(each.impact)).map((each) =>
        `${each.impact} ${each.id}: ` + each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | "));
}"""


@cache
def axe_source() -> str:
    """Return the script of axe, or "" if the package that brings it is not installed."""
    spec = find_spec("axe_playwright_python")
    return (Path(str(spec.origin)).parent / "axe.min.js").read_text() if spec else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A browser window. `faults` has what went wrong on the pages that it has opened, by address."""

    page: Any
    faults: dict[str, list[str]] = field(default_factory=dict)
    measuring: list[str] = field(default_factory=list)
    """The colour scheme that axe looks at just now."""

    @classmethod
    def at(cls, context: Any) -> "Visitor":
        visitor = cls(page=context.new_page())
        visitor.page.add_init_script(RECORD_VIOLATIONS)
        visitor.page.on("pageerror", lambda error: visitor.add_fault(f"error: {error}"))
        # Playwright marks the functions that it is given, and a frozen object takes no marks
        visitor.page.on("console", lambda message: visitor.read_console(message))
        visitor.page.on("dialog", lambda dialog: visitor.refuse_dialog(dialog))
        return visitor

    @property
    def address(self) -> str:
        return "/" + str(self.page.url).split("/", 3)[-1]

    def add_fault(self, fault: str) -> None:
        self.faults.setdefault(self.address, []).append(fault)

    def read_console(self, message: Any) -> None:
        # axe measures with styles of its own, which the policy refuses
        if message.type == "error" and not self.measuring:
            self.add_fault(f"console: {message.text} {message.location.get('url', '')}")

    def refuse_dialog(self, dialog: Any) -> None:
        self.add_fault(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, address: str) -> None:
        self.page.goto(address)

    def look(self, *, widths: Sequence[int], axe: Mapping[str, Sequence[str]]) -> None:
        """Record violations of the policy, overflow at each width, and faults that axe finds in each colour scheme.

        `axe` has the rules to check by scheme; no rules are all of them.
        """
        for fault in self.find_faults(widths=widths, axe=axe):
            self.add_fault(fault)

    def find_faults(self, *, widths: Sequence[int], axe: Mapping[str, Sequence[str]]) -> Iterator[str]:
        yield from self.page.evaluate("window.violations")
        for width in widths:
            self.page.set_viewport_size({"width": width, "height": 900})
            if over := self.page.evaluate(OVERFLOW):
                yield f"overflows at {width}: {'; '.join(over)}"
        self.page.set_viewport_size({"width": 1280, "height": 900})
        for scheme, rules in axe.items() if axe_source() else ():
            self.page.emulate_media(color_scheme=scheme)
            self.measuring.append(scheme)
            if not self.page.evaluate("Boolean(window.axe)"):
                self.page.evaluate(axe_source() + "; undefined")
            found = self.page.evaluate(RUN_AXE, list(rules))
            self.measuring.clear()
            yield from (f"{scheme}: {fault}" for fault in found)
