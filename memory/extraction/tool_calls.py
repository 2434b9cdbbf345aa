"""Calls of tools in words: what a sequence of calls does, and how a call failed, apart from what changes every time."""

import re
from collections.abc import Sequence

from memory.extraction.orders import gives_orders
from memory.extraction.wording import is_text
from memory.invisible_characters import drop_invisible
from memory.redaction import redact

MAX_ERROR_CHARACTERS = 200
"""Characters of a normalized error, after which it is cut."""
MAX_READ_ERROR_CHARACTERS = 4_000
"""Characters at each end of an error message that are read."""

_PHRASES = {
    "bash": "run a shell command",
    "cat": "read the file",
    "curl": "fetch the page",
    "find": "look for files",
    "grep": "search the text of the files",
    "ls": "list the files",
    "make": "run the build",
    "mypy": "check the types",
    "pip": "install the packages",
    "psql": "query the database",
    "pytest": "run the tests",
    "python": "run Python",
    "rg": "search the text of the files",
    "ruff": "check the style",
    "sed": "edit the file",
    "shell": "run a shell command",
    "sh": "run a shell command",
    "sql": "query the database",
    "wget": "fetch the page",
}
"""What well-known commands do."""
_VERBS = frozenset(
    (
        *("add", "analyze", "apply", "approve", "ask", "assign", "book", "browse", "build", "buy", "calculate", "call"),
        *("cancel", "check", "clean", "clear", "click", "clone", "close", "commit", "compare", "compile", "compute"),
        *("configure", "confirm", "connect", "convert", "copy", "count", "create", "delete", "deploy", "describe"),
        *("dig", "disable", "download", "draft", "draw", "edit", "email", "enable", "execute", "export", "extract"),
        *("fetch", "fill", "filter", "find", "fix", "format", "generate", "get", "import", "insert", "inspect"),
        *("install", "invite", "invoke", "launch", "list", "load", "log", "lookup", "measure", "merge", "migrate"),
        *("monitor", "move", "notify", "open", "order", "parse", "patch", "pay", "plan", "plant", "play", "post"),
        *("prepare", "print", "publish", "pull", "push", "put", "query", "read", "rebuild", "receive", "record"),
        *("refresh", "register", "remove", "rename", "render", "repair", "replace", "reply", "report", "request"),
        *("reserve", "reset", "resize", "resolve", "restart", "restore", "retrieve", "review", "rollback", "rotate"),
        *("run", "save", "scan", "schedule", "scrape", "search", "select", "send", "set", "share", "show", "sign"),
        *("sort", "start", "stop", "store", "submit", "subscribe", "summarize", "sync", "tag", "test", "train"),
        *("transfer", "translate", "update", "upgrade", "upload", "validate", "verify", "view", "visit", "watch"),
        *("write",),
    )
)
_ABBREVIATIONS = frozenset({"ai", "api", "aws", "csv", "dns", "git", "html", "http", "id", "json", "pdf", "pr", "sms"})
_ABBREVIATIONS |= {"sql", "ssh", "url", "xml", "yaml"}
_PROGRAMS = frozenset({"docker", "gh", "git", "helm", "kubectl", "npm", "terraform"})
_NO_ARTICLE_BEFORE = frozenset({"a", "all", "an", "by", "for", "from", "in", "into", "of", "on", "the", "to", "with"})
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")

_BLANKS = re.compile(r"\s+")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|^\s+(?:at |File \")", re.MULTILINE)
# numbers that say what went wrong are kept: HTTP statuses, exit statuses, codes of errors
_CODE = (
    r"(?:\b(?:errors?|errno|status|code|http(?:/[\d.]+)?|exit(?:ed)?(?: with)?(?: code| status)?)[\s:=#(\[]{0,3}\d+\b"
    r"|(?<![\d.:])[45]\d\d(?![\d.:]))"
)
_CHANGING = (
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"
    r"|(?:/tmp|/var/folders|/private/tmp)/[^\s\"'`,;)\]]+"
    r"|(?<![A-Za-z_\d])\d[\d.,:/TZ+-]*\d|(?<![A-Za-z_\d])\d"
)
_NUMBERS = re.compile(rf"({_CODE})|(?:{_CHANGING})", re.IGNORECASE)
_PLACEHOLDERS = re.compile(r"…(?:\s*…)+")


def describe_tool(name: str) -> str:
    """Return what a call of the tool does, as its name says it, in the imperative.

    >>> [describe_tool(name) for name in ("search_docs", "readFile", "web.search", "grep", "weather_api")]
    ['search the docs', 'read the file', 'search the web', 'search the text of the files', 'use the weather API']
    """
    words = [word.lower() for word in _NAME_PART.findall(name)]
    if phrase := _PHRASES.get("".join(words)):
        return phrase
    verb, rest = "use", words
    if words and words[0] in _VERBS:
        verb, rest = words[0], words[1:]
    elif words and words[-1] in _VERBS:
        verb, rest = words[-1], words[:-1]
    if not rest:
        return verb if words else f"use {name}"
    if verb != "use" and rest[0] in _PROGRAMS:
        return " ".join([verb, *(["the", *rest[1:]] if rest[1:] else []), "with", rest[0]])
    article = [] if rest[0] in _NO_ARTICLE_BEFORE or rest[0].isdigit() else ["the"]
    return " ".join([verb, *article, *(word.upper() if word in _ABBREVIATIONS else word for word in rest)])


def describe_steps(names: Sequence[str]) -> str:
    """Return what the calls of these tools do, one after the other, in a sentence.

    >>> describe_steps(["search_docs", "read_file", "send_report"])
    'First search the docs, then read the file, and finally send the report.'
    """
    first, *others = map(describe_tool, names)
    match others:
        case []:
            steps = first
        case [last]:
            steps = f"first {first}, then {last}"
        case [*between, last]:
            steps = f"first {first}, then {', then '.join(between)}, and finally {last}"
    return f"{steps[0].upper()}{steps[1:]}."


def normalize_error(message: str) -> str:
    """Return an error on one line without secrets and without what changes from call to call; "" if nothing is left.

    Numbers, ids, times and temporary paths become "…", but statuses and codes of errors stay. Of a traceback only the
    last line counts. Empty also for a text that contains injected instructions, since agents read the result.

    >>> normalize_error("HTTP 503 from 10.0.0.7:5432 after 31.2 s (request 5f1c9a70de)")
    'HTTP 503 from … after … s (request …)'
    """
    ends = message[:MAX_READ_ERROR_CHARACTERS], message[MAX_READ_ERROR_CHARACTERS:][-MAX_READ_ERROR_CHARACTERS:]
    lines = [line for line in drop_invisible("\n".join(ends)).splitlines() if line.strip()]
    if not lines or gives_orders("\n".join(lines)):
        return ""
    line = lines[-1] if _TRACEBACK.search(message[:MAX_READ_ERROR_CHARACTERS]) else lines[0]
    line = redact(line.replace("<", " ").replace(">", " ").replace("“", '"').replace("”", '"'))
    plain = _NUMBERS.sub(lambda found: found[1] or "…", line)
    error = _BLANKS.sub(" ", _PLACEHOLDERS.sub("…", plain)).strip(" .")[:MAX_ERROR_CHARACTERS].rstrip()
    return error if is_text(error, MAX_ERROR_CHARACTERS) and any(map(str.isalnum, error)) else ""
