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

OPENING_FRAGMENT = re.compile(rf'"""\\?\s*{FRAGMENT.pattern}')
"""What may be a docstring that opens with a fragment; only files with one are parsed, since that takes a while."""


def python_files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (path for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts)


# not while modules are imported: every process of a run imports this one
@cache
def modules() -> dict[str, ast.Module]:
    """Return the modules of the product by their paths."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in python_files()}


def files_with_fragments() -> dict[str, ast.Module]:
    """Return the modules of the product and the tests in which some string opens with a fragment, by their paths."""
    texts = {path: path.read_text() for path in (*python_files(), *sorted((ROOT / "tests").rglob("*.py")))}
    return {
        str(path.relative_to(ROOT)): ast.parse(text) for path, text in texts.items() if OPENING_FRAGMENT.search(text)
    }


def definitions(tree: ast.Module) -> Iterator[Definition]:
    return (node for node in ast.walk(tree) if isinstance(node, Definition))


def docstrings(tree: ast.Module) -> Iterator[str]:
    return filter(None, (ast.get_docstring(node) for node in (tree, *definitions(tree))))


def test_docstrings_open_with_a_sentence() -> None:
    fragments = [
        f"{path}: {doc.splitlines()[0]}"
        for path, tree in files_with_fragments().items()
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
        for path, tree in modules().items()
        for name, line in names_bound(tree)
        if name not in ALLOWED_NAMES
        for word in words_of_name(name)
        if word.lower() in REPLACED_WORDS
    ]

    assert advice == []


def test_no_two_public_classes_share_a_name() -> None:
    found = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and "/commands/" not in path:
                found[node.name].append(path)

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_few_functions_share_a_name() -> None:
    found = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name].append(path)

    shared = {name: paths for name, paths in found.items() if len(paths) > 1}
    share = sum(map(len, shared.values())) / sum(map(len, found.values()))

    assert share < SHARED_FUNCTION_NAMES_LIMIT, shared
