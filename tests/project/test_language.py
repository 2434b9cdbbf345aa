"""The language of the code: what the style guide in CONTRIBUTING.md asks for and a machine can see."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("memory", "memory_project", "ledger", "lab")

FRAGMENT = re.compile(
    r"(?:Of|Those|These|As|By|Where|With|Without|What|Which|Whether|Whose|Whom|Who|None|How|From|To|For|In|On|At|Within"
    r"|Beside|Before|After|Under|Behind|When|That|And|Or|Only|Not|Also|So|Until|Because|Since)(?=[\s,])"
)
"""Words that open a fragment, which leans on the name below it, instead of a sentence."""

REPLACED_WORDS = {
    "tell": "format, serialize or render",
    "told": "formatted, redacted or visible",
    "represent": "serialize",
    "settle": "store, recompute or mark, and what",
    "spread": "propagate",
    "nudge": "notify",
    "knob": "setting",
    "knobs": "setting",
    "stretch": "page, range or batch",
    "recaller": "retriever",
    "orientation": "query analysis",
    "sitting": "session segment",
    "wording": "normalized text",
    "tells": "says or returns",
    "whoever": "the agent, user or key that",
    "deed": "action",
    "deeds": "actions",
}
"""Words of a private dialect, which may not come back as parts of names, and what to write instead."""

ALLOWED_NAMES = frozenset({"wording", "tells_when"})
"""A column of the database and a signal of the shipped ranking weights, which keep their names."""

SHARED_FUNCTION_NAMES_LIMIT = 0.08
"""The share of module-level functions whose name some other module uses too; what implements a protocol may."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

# Parsing all files takes longer than all else here: only those are parsed in which a search finds a trace.
OPENING_FRAGMENT = re.compile(rf'"""\\?\s*{FRAGMENT.pattern}')
REPLACED_WORD = re.compile("|".join(REPLACED_WORDS), re.IGNORECASE)
CLASS, FUNCTION = re.compile(r"^class (\w+)", re.MULTILINE), re.compile(r"^(?:async )?def (\w+)", re.MULTILINE)
"""Definitions of modules, which begin their lines."""


# not while modules are imported: every process of a run imports this one
@cache
def product() -> dict[str, str]:
    """Return the texts of the product's modules by their paths."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths if "migrations" not in path.parts}


def suite() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))}


def parse_where(found: re.Pattern[str], texts: dict[str, str]) -> dict[str, ast.Module]:
    """Return the modules by their paths in whose text the pattern is found."""
    return {path: ast.parse(text) for path, text in texts.items() if found.search(text)}


def definitions(tree: ast.Module) -> Iterator[Definition]:
    return (node for node in ast.walk(tree) if isinstance(node, Definition))


def docstrings(tree: ast.Module) -> Iterator[str]:
    return filter(None, (ast.get_docstring(node) for node in (tree, *definitions(tree))))


def test_docstrings_open_with_a_sentence() -> None:
    fragments = [
        f"{path}: {doc.splitlines()[0]}"
        for path, tree in parse_where(OPENING_FRAGMENT, product() | suite()).items()
        for doc in docstrings(tree)
        if FRAGMENT.match(doc)
    ]

    assert fragments == []


def words_of_name(name: str) -> list[str]:
    """Split a name at underscores and capitals."""
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)


def names_bound(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of functions, classes, arguments, variables and attributes that a module binds, with lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def test_names_use_the_words_of_the_glossary() -> None:
    advice = [
        f"{path}:{line}: {name}: say {REPLACED_WORDS[word.lower()]}"
        for path, tree in parse_where(REPLACED_WORD, product()).items()
        for name, line in names_bound(tree)
        if name not in ALLOWED_NAMES
        for word in words_of_name(name)
        if word.lower() in REPLACED_WORDS
    ]

    assert advice == []


def test_no_two_public_classes_share_a_name() -> None:
    found = defaultdict(list)
    for path, text in product().items():
        for name in CLASS.findall(text):
            if not name.startswith("_") and "/commands/" not in path:
                found[name].append(path)

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_few_functions_share_a_name() -> None:
    found = defaultdict(list)
    for path, text in product().items():
        for name in FUNCTION.findall(text):
            found[name].append(path)

    shared = {name: paths for name, paths in found.items() if len(paths) > 1}
    share = sum(map(len, shared.values())) / sum(map(len, found.values()))

    assert share < SHARED_FUNCTION_NAMES_LIMIT, shared
