"""Paths and URIs that an artifact may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.services.artifacts.store import MAX_URI_CHARACTERS, find_uri_error
from tests.properties import examples

KEPT = [
    "docs/roses.md",
    "/srv/garden/plan 2.pdf",
    "C:\\garden\\plan.xlsx",
    "https://example.org/a?x=1&copy=2#data:x",
    "s3://bucket/data:2026/part.parquet",
    "file:///tmp/javascript:notes.txt",
    "git@example.org:garden/plan.git",
    "urn:isbn:0451450523",
    "docs/100%.md",
    "docs/%E0%A4%A.md",
    "文書/薔薇.md",
    "metadata:roses",
]
RUN = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "javascript :alert(1)",
    "java script:alert(1)",
    "java%0ascript:alert(1)",
    "%6Aavascript:alert(1)",
    "%256Aavascript:alert(1)",
    "javascript%3Aalert(1)",
    "&#106;avascript:alert(1)",
    "javascript&colon;alert(1)",
    "ｊａｖａｓｃｒｉｐｔ:alert(1)",
    "javascript：alert(1)",
    "java%ffscript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "DATA:text/html;base64,PHNjcmlwdD4=",
    "blob:https://example.org/1",
    "about:blank",
    "filesystem:https://example.org/x",
    "view-source:javascript:alert(1)",
    "feed:feed:javascript:alert(1)",
    "%25252525252525256Aavascript:alert(1)",
]
HIDING = [
    "",
    " javascript:alert(1)",
    "docs/roses.md ",
    "java\tscript:alert(1)",
    "docs/\x00roses.md",
    "docs/\x1broses.md",
    "docs/roses\n.md",
    "docs/roses\u2028.md",
    "docs/\u202egpj.exe",
    "docs/ro\u200bses.md",
    "docs/\ud800.md",
    "x" * (MAX_URI_CHARACTERS + 1),
]


@pytest.mark.parametrize("uri", KEPT, ids=ascii)
def test_ordinary_addresses_are_allowed(uri: str) -> None:
    assert find_uri_error(uri) == ""


@pytest.mark.parametrize("uri", RUN, ids=ascii)
def test_addresses_that_a_browser_would_run_are_refused(uri: str) -> None:
    assert find_uri_error(uri) == "a path or URI must not be one that a browser would run"


@pytest.mark.parametrize("uri", HIDING, ids=lambda uri: ascii(uri)[:30])
def test_uris_that_hide_their_target_or_are_too_long_are_refused(uri: str) -> None:
    assert find_uri_error(uri)


@examples(100)
@given(
    st.lists(st.booleans(), min_size=10, max_size=10),
    st.lists(st.sampled_from(["", " ", "%09", "&#10;", "%20"]), min_size=10, max_size=10),
)
def test_every_spelling_of_a_script_is_refused(is_upper: list[bool], between: list[str]) -> None:
    letters = (letter.upper() if upper else letter for letter, upper in zip("javascript", is_upper, strict=True))
    spelt = "".join(letter + blank for letter, blank in zip(letters, between, strict=True))

    assert find_uri_error(f"{spelt}:alert(1)")


@examples(100)
@given(st.text(max_size=40))
def test_checking_any_text_as_a_uri_raises_no_error(text: str) -> None:
    assert isinstance(find_uri_error(text), str)
