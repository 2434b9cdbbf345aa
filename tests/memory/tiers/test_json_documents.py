"""Tests of JSON documents: parts read and written by JSON Pointer, deep merges, sizes."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import TooLarge, Unprocessable
from memory.tiers.json_documents import (
    ABSENT,
    MAX_DEPTH,
    check_storable,
    measure_depth,
    measure_document,
    merge_value_at,
    merge_values,
    parse_path,
    set_value_at,
    value_at,
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
    """Return the JSON Pointer of these names."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def leaves(value: Any, *tokens: str) -> list[tuple[tuple[str, ...], Any]]:
    """Return every part of a document with the names that lead to it."""
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
def test_paths_follow_rfc_6901(path: str, found: Any) -> None:
    assert value_at(RFC_6901, parse_path(path)) == found


@pytest.mark.parametrize(
    "path", ["/no", "/foo/2", "/foo/-1", "/foo/01", "/foo/-", "/foo/-/x", "/foo/0/x", "//x", "/foo/"]
)
def test_a_missing_part_is_absent(path: str) -> None:
    assert value_at(RFC_6901, parse_path(path)) is ABSENT


@pytest.mark.parametrize("path", ["foo", "/a~", "/a~2", "~1", "/a\0", "/\ud800", "/x" * (MAX_DEPTH + 1)])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(Unprocessable):
        parse_path(path)


@given(documents)
def test_every_part_of_a_document_is_found_by_its_path(document: dict[str, Any]) -> None:
    for tokens, part in leaves(document):
        assert value_at(document, parse_path(path_of(*tokens))) is part


# writing


@given(st.lists(names, min_size=1, max_size=5), values)
def test_a_value_written_by_path_is_read_by_path(tokens: list[str], value: Any) -> None:
    path = parse_path(path_of(*tokens))

    assert value_at(set_value_at({}, path, value), path) == value


@given(documents, values, st.data())
def test_writing_over_a_part_changes_that_part_alone(document: dict[str, Any], value: Any, data: st.DataObject) -> None:
    tokens, _part = data.draw(st.sampled_from(leaves(document)[1:] or [(("new",), None)]))

    changed = set_value_at(deepcopy(document), tokens, value)

    others = [(at, part) for at, part in leaves(document) if at[: len(tokens)] != tokens and at != tokens[: len(at)]]
    assert value_at(changed, tokens) == value
    assert [value_at(changed, at) for at, _part in others] == [part for _at, part in others]


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
    assert set_value_at({"steps": ["a"]}, parse_path(path), 9) == changed


@pytest.mark.parametrize("path", ["/steps/x", "/steps/5", "/steps/-1", "/steps/00", "/steps/0/x", "/none/x", "/yes/x"])
def test_a_write_through_a_plain_value_is_refused(path: str) -> None:
    document = {"steps": ["a"], "none": None, "yes": True}

    with pytest.raises(Unprocessable):
        set_value_at(document, parse_path(path), 9)


@pytest.mark.parametrize("value", [[], "x", 1, None, True])
def test_the_whole_must_be_an_object(value: Any) -> None:
    for change in (set_value_at, merge_value_at):
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
    assert merge_values(stored, value) == merged


@given(st.lists(st.dictionaries(names, values, max_size=3), min_size=2, max_size=2), documents)
def test_merges_of_different_names_commute(parts: list[dict[str, Any]], document: dict[str, Any]) -> None:
    here, there = ({f"{number}{name}": value for name, value in part.items()} for number, part in enumerate(parts))

    assert merge_values(merge_values(document, here), there) == merge_values(merge_values(document, there), here)


@given(documents, documents)
def test_a_merge_changes_neither_argument_and_is_idempotent(stored: dict[str, Any], value: dict[str, Any]) -> None:
    before = deepcopy((stored, value))

    merged = merge_values(stored, value)

    assert (stored, value) == before
    assert merge_values(merged, value) == merged
    assert [value_at(merged, (name,)) for name in set(stored) - set(value)] == [
        stored[name] for name in set(stored) - set(value)
    ]


def test_a_merge_by_path_creates_missing_parts() -> None:
    document: dict[str, Any] = {"plan": {"goal": 1}}

    merge_value_at(document, ("plan",), {"steps": []})
    merge_value_at(document, ("plan", "steps", "-"), "first")
    merge_value_at(document, ("who", "is"), {"in": None})

    assert document == {"plan": {"goal": 1, "steps": ["first"]}, "who": {"is": {"in": None}}}


# what may be stored


@given(documents)
def test_a_document_is_measured_as_compact_json_in_utf_8(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    measured = measure_document(document, limit_bytes=1_000_000)

    assert (measured.text, measured.size_bytes, measured.entry_count) == (text, len(text.encode()), len(document))


def test_one_byte_over_the_limit_is_too_large() -> None:
    measure_document({"a": "ü"}, limit_bytes=10)

    with pytest.raises(TooLarge) as refused:
        measure_document({"a": "üx"}, limit_bytes=10)

    assert refused.value.facts == {"stored": False, "size_bytes": 11, "limit_bytes": 10}


def nested(depth: int) -> Any:
    value: Any = 1
    for _layer in range(depth):
        value = [value]
    return value


def test_data_deeper_than_the_limit_is_refused() -> None:
    check_storable(nested(MAX_DEPTH))
    check_storable(nested(MAX_DEPTH - 3), below=3)

    for value, below in ((nested(MAX_DEPTH + 1), 0), (nested(MAX_DEPTH - 2), 3), (nested(100_000), 0)):
        with pytest.raises(Unprocessable):
            check_storable(value, below=below)


@given(values)
def test_depth_counts_objects_and_lists_within_one_another(value: Any) -> None:
    deepest = max(len(tokens) + isinstance(part, (dict, list)) for tokens, part in leaves(value))

    assert measure_depth(value, limit=100) == deepest


@pytest.mark.parametrize("value", ["\0", {"\0": 1}, ["\\\0"], "\ud800", float("nan"), float("inf"), {1, 2}, b"x"])
def test_values_without_a_form_in_json_or_the_database_are_refused(value: Any) -> None:
    with pytest.raises(Unprocessable):
        check_storable(value)


def test_a_text_that_looks_like_an_escape_is_accepted() -> None:
    check_storable({"\\u0000": "\\\\u0000"})


def test_an_invalid_path_is_refused_with_the_rule() -> None:
    with pytest.raises(Unprocessable, match="~1 for a slash and ~0 for ~"):
        parse_path("a~b")
