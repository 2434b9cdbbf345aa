"""JSON documents: parts found and set by JSON Pointer, merged deeply, measured."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import TooLarge, Unprocessable
from memory.tiers.json_documents import (
    ABSENT,
    DEEPEST,
    check_part,
    depth_of,
    measure,
    merge,
    parse_path,
    value_at,
    with_merged,
    with_value,
)

# as RFC 6901, 5 has it
RFC_6901: dict[str, Any] = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4) | st.sampled_from(
    ["", "/", "~", "~0", "~1", "a/b", "0", "01", "-1", "-", "ü"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(names, values, max_size=4)


def path_of(*tokens: str) -> str:
    """The JSON Pointer of these names."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def leaves(value: Any, *tokens: str) -> list[tuple[tuple[str, ...], Any]]:
    """Every part of a document with the names that lead to it."""
    inside = list(enumerate(value)) if isinstance(value, list) else list(value.items()) if is_object(value) else []
    return [(tokens, value), *(leaf for name, part in inside for leaf in leaves(part, *tokens, str(name)))]


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


# paths


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", RFC_6901),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_a_path_leads_where_rfc_6901_says(path: str, found: Any) -> None:
    assert value_at(RFC_6901, parse_path(path)) == found


@pytest.mark.parametrize(
    "path", ["/no", "/foo/2", "/foo/-1", "/foo/01", "/foo/-", "/foo/-/x", "/foo/0/x", "//x", "/foo/"]
)
def test_a_path_may_lead_nowhere(path: str) -> None:
    assert value_at(RFC_6901, parse_path(path)) is ABSENT


@pytest.mark.parametrize("path", ["foo", "/a~", "/a~2", "~1", "/a\0", "/\ud800", "/x" * (DEEPEST + 1)])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(Unprocessable):
        parse_path(path)


@given(documents)
def test_every_part_of_a_document_is_found_by_its_path(document: dict[str, Any]) -> None:
    for tokens, part in leaves(document):
        assert value_at(document, parse_path(path_of(*tokens))) is part


# writing


@given(st.lists(names, min_size=1, max_size=5), values)
def test_what_is_written_by_path_into_nothing_is_read_by_path(tokens: list[str], value: Any) -> None:
    path = parse_path(path_of(*tokens))

    assert value_at(with_value({}, path, value), path) == value


@given(documents, values, st.data())
def test_writing_over_a_part_changes_that_part_alone(document: dict[str, Any], value: Any, data: st.DataObject) -> None:
    tokens, _part = data.draw(st.sampled_from(leaves(document)[1:] or [(("new",), None)]))

    changed = with_value(deepcopy(document), tokens, value)

    beside = [(at, part) for at, part in leaves(document) if at[: len(tokens)] != tokens and at != tokens[: len(at)]]
    assert value_at(changed, tokens) == value
    assert [value_at(changed, at) for at, _part in beside] == [part for _at, part in beside]


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("/plan/goal", {"steps": ["a"], "plan": {"goal": 9}}),
        ("/steps/0", {"steps": [9]}),
        ("/steps/-", {"steps": ["a", 9]}),
        ("/steps/-/done", {"steps": ["a", {"done": 9}]}),
        ("/a~1b/m~0n", {"steps": ["a"], "a/b": {"m~n": 9}}),
        ("/", {"steps": ["a"], "": 9}),
        ("/-", {"steps": ["a"], "-": 9}),
    ],
)
def test_a_write_makes_missing_objects_and_appends_to_lists(path: str, changed: dict[str, Any]) -> None:
    assert with_value({"steps": ["a"]}, parse_path(path), 9) == changed


@pytest.mark.parametrize("path", ["/steps/x", "/steps/5", "/steps/-1", "/steps/00", "/steps/0/x", "/none/x", "/yes/x"])
def test_a_write_through_what_is_no_object_and_no_list_is_refused(path: str) -> None:
    document = {"steps": ["a"], "none": None, "yes": True}

    with pytest.raises(Unprocessable):
        with_value(document, parse_path(path), 9)


@pytest.mark.parametrize("value", [[], "x", 1, None, True])
def test_the_whole_is_an_object_and_nothing_else(value: Any) -> None:
    for change in (with_value, with_merged):
        with pytest.raises(Unprocessable):
            change({"a": 1}, (), value)


# merging


@pytest.mark.parametrize(
    ("stored", "value", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1}}, {"a": {"y": {"z": 2}}}, {"a": {"x": 1, "y": {"z": 2}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {}, {"a": {"x": 1}}),
    ],
)
def test_objects_merge_and_everything_else_is_replaced(stored: Any, value: Any, merged: Any) -> None:
    assert merge(stored, value) == merged


@given(st.lists(st.dictionaries(names, values, max_size=3), min_size=2, max_size=2), documents)
def test_merges_of_different_names_commute(parts: list[dict[str, Any]], document: dict[str, Any]) -> None:
    here, there = ({f"{number}{name}": value for name, value in part.items()} for number, part in enumerate(parts))

    assert merge(merge(document, here), there) == merge(merge(document, there), here)


@given(documents, documents)
def test_a_merge_changes_neither_side_and_done_again_nothing(stored: dict[str, Any], value: dict[str, Any]) -> None:
    before = deepcopy((stored, value))

    merged = merge(stored, value)

    assert (stored, value) == before
    assert merge(merged, value) == merged
    assert [value_at(merged, (name,)) for name in set(stored) - set(value)] == [
        stored[name] for name in set(stored) - set(value)
    ]


def test_a_merge_by_path_writes_where_nothing_was() -> None:
    document: dict[str, Any] = {"plan": {"goal": 1}}

    with_merged(document, ("plan",), {"steps": []})
    with_merged(document, ("plan", "steps", "-"), "first")
    with_merged(document, ("who", "is"), {"in": None})

    assert document == {"plan": {"goal": 1, "steps": ["first"]}, "who": {"is": {"in": None}}}


# what may be stored


@given(documents)
def test_a_document_is_measured_as_compact_json_in_utf_8(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    measured = measure(document, limit_bytes=1_000_000)

    assert (measured.text, measured.size_bytes, measured.entry_count) == (text, len(text.encode()), len(document))


def test_one_byte_over_the_limit_is_too_large() -> None:
    measure({"a": "ü"}, limit_bytes=10)

    with pytest.raises(TooLarge) as refused:
        measure({"a": "üx"}, limit_bytes=10)

    assert refused.value.facts == {"stored": False, "size_bytes": 11, "limit_bytes": 10}


def nested(depth: int) -> Any:
    value: Any = 1
    for _layer in range(depth):
        value = [value]
    return value


def test_data_is_no_deeper_than_a_body_may_be() -> None:
    check_part(nested(DEEPEST))
    check_part(nested(DEEPEST - 3), below=3)

    for value, below in ((nested(DEEPEST + 1), 0), (nested(DEEPEST - 2), 3), (nested(100_000), 0)):
        with pytest.raises(Unprocessable):
            check_part(value, below=below)


@given(values)
def test_depth_counts_objects_and_lists_within_one_another(value: Any) -> None:
    deepest = max(len(tokens) + isinstance(part, (dict, list)) for tokens, part in leaves(value))

    assert depth_of(value, most=100) == deepest


@pytest.mark.parametrize("value", ["\0", {"\0": 1}, ["\\\0"], "\ud800", float("nan"), float("inf"), {1, 2}, b"x"])
def test_what_json_or_the_database_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(Unprocessable):
        check_part(value)


def test_a_text_that_only_spells_an_escape_is_taken() -> None:
    check_part({"\\u0000": "\\\\u0000"})


def test_a_path_that_is_none_is_told_how_names_are_spelt() -> None:
    with pytest.raises(Unprocessable, match="~1 stands for a slash and ~0 for ~"):
        parse_path("a~b")
