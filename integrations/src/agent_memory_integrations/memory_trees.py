"""The file trees of Claude's memory tool as items of a persistent context: how they are named, read and written."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from agent_memory_client import AsyncClient, BadRequestError, Client, PreconditionFailedError

from agent_memory_integrations.contexts import AsyncNamedContext, NamedContext
from agent_memory_integrations.item_pages import ItemPages
from agent_memory_integrations.memory_files import ROOT, FileTree, MemoryCommandError

CONTEXT = "claude-memory"
FILES, DIRECTORIES = ["files"], ["directories"]
MAX_FILES = 1_000
"""Files and directories that a tree has together. The tool refuses to store more, instead of overlooking some."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Longest pauses in seconds before a command is tried again because another process changed the same file."""

T = TypeVar("T")
Key = tuple[Any, ...]
GUARD = threading.Lock()
"""Held while a lock of a tree is looked up."""
LOCKS: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()
ASYNC_LOCKS: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()


def lock_of(context: NamedContext) -> threading.Lock:
    """Return the lock that commands on a tree hold in this process, so that they need not be tried again."""
    with GUARD:
        return LOCKS.setdefault(key_of(context.client, context.name), threading.Lock())


def async_lock_of(context: AsyncNamedContext) -> asyncio.Lock:
    """Return the lock that commands on a tree hold in this event loop."""
    key = (id(asyncio.get_running_loop()), *key_of(context.client, context.name))
    return ASYNC_LOCKS.setdefault(key, asyncio.Lock())


def retry(attempt: Callable[[], T]) -> T:
    """Return what an attempt returns that loads a tree and stores its changes: another one where others were faster."""
    for pause in PAUSES:
        try:
            return attempt()
        except PreconditionFailedError:
            time.sleep(shorten(pause))
    return attempt()


async def async_retry(attempt: Callable[[], Awaitable[T]]) -> T:
    """Do as `retry`, for asynchronous code."""
    for pause in PAUSES:
        try:
            return await attempt()
        except PreconditionFailedError:
            await asyncio.sleep(shorten(pause))
    return await attempt()


def shorten(pause: float) -> float:
    """Return a part of a pause, so that those who were refused together do not try again together."""
    return random.uniform(0, pause)  # noqa: S311  no secret


def key_of(client: Client | AsyncClient, name: str) -> Key:
    settings = client.settings
    return settings.base_url, settings.api_key, settings.agent_id, settings.user_id, name


def name_context(user_id: str) -> str:
    """Return the name of the tree of a user, whose files are erased with the user."""
    return f"{CONTEXT}:{user_id}" if user_id else CONTEXT


def list_pages() -> ItemPages:
    """Return the requests that read the items of a tree."""
    return ItemPages({}, wanted=MAX_FILES)


def make_tree(items: Iterable[dict[str, Any]]) -> FileTree:
    """Return the tree of these items. What other programs stored without a text is no file."""
    listed = list(items)
    files = {path_of(each): text for each in listed if isinstance(text := read_text(each), str)}
    # web servers of version 0.2 tell none
    versions = {path_of(each): each["version"] for each in listed if each["namespace"] == FILES and "version" in each}
    return FileTree(files, {path_of(each) for each in listed if each["namespace"] == DIRECTORIES}, versions)


def read_text(item: dict[str, Any]) -> Any:
    """Return the text of a file, or None for an item that is none."""
    value = item["value"]
    return value.get("text") if item["namespace"] == FILES and isinstance(value, dict) else None


def path_of(item: dict[str, Any]) -> str:
    return f"{ROOT}/{item['key']}"


async def change_tree(context: AsyncNamedContext, change: Callable[[FileTree], T]) -> T:
    """Change the tree that a context keeps, again where others were faster, and return what `change` returns."""

    async def attempt() -> T:
        tree = await load_tree(context)
        try:
            return change(tree)
        finally:
            # a command that fails may have made directories
            await store_changes(context, tree)

    async with async_lock_of(context):
        return await async_retry(attempt)


async def load_tree(context: AsyncNamedContext) -> FileTree:
    """Return the tree that a context keeps, an empty one if there is no context yet."""
    pages, items = list_pages(), []
    while (search := pages.next_search()) and (found := await context.query(searches=[search])):
        items += pages.read_items(found)
    return make_tree(items)


async def store_changes(context: AsyncNamedContext, tree: FileTree) -> None:
    """Store what a command changed in a tree, if anything."""
    if not (changes := find_changes(tree)):
        return
    try:
        await context.write(**changes)
    except BadRequestError as err:
        await context.write(**without_versions(changes, err))


def find_changes(tree: FileTree) -> dict[str, Any]:
    """Return what to store and what to delete after a command; nothing if nothing changed.

    The service refuses it (PreconditionFailedError) if somebody else has changed one of the files since.
    Raises MemoryCommandError for a tree with more than MAX_FILES files and directories.
    """
    changes: dict[str, Any] = {"items": [], "deleted": []}
    for path, text in tree.changed_files().items():
        item = {**item_path(FILES, path), "expected_version": tree.versions.get(path, 0)}
        if text is None:
            changes["deleted"].append(item)
        else:
            changes["items"].append({**item, "value": {"text": text}, "texts": [text] if text.strip() else []})
    for path, is_there in tree.changed_directories().items():
        if is_there:
            changes["items"].append({**item_path(DIRECTORIES, path), "value": {}})
        else:
            changes["deleted"].append(item_path(DIRECTORIES, path))
    # the root is there anyway
    if changes["items"] and len(tree.files) + len(tree.directories) - 1 > MAX_FILES:
        raise MemoryCommandError(f"At most {MAX_FILES} files and directories are kept. Delete some first.")
    return changes if any(changes.values()) else {}


def without_versions(changes: dict[str, Any], refusal: BadRequestError) -> dict[str, Any]:
    """Return changes for a web server of version 0.2, which knows no expected versions and refused them.

    Raises any other refusal.
    """
    if "expected_version" not in str(refusal):
        raise refusal
    return {
        name: [{field: value for field, value in item.items() if field != "expected_version"} for item in items]
        for name, items in changes.items()
    }


def item_path(namespace: list[str], path: str) -> dict[str, Any]:
    return {"namespace": namespace, "key": path[len(ROOT) + 1 :]}


def clear(tree: FileTree) -> None:
    tree.files.clear()
    tree.directories.intersection_update({ROOT})
