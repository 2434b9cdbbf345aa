"""The file trees of Claude's memory tool as items of a persistent context: how they are named, read and written."""

from typing import Any

from agent_memory_integrations.memory_files import ROOT, FileTree, MemoryCommandError

CONTEXT = "claude-memory"
FILES, DIRECTORIES = ["files"], ["directories"]
MAX_FILES = 1_000
"""Files and directories that a tree has together. The tool refuses to store more, instead of overlooking some."""

LOAD = [{"limit": MAX_FILES}]


def name_context(user_id: str) -> str:
    """Return the name of the tree of a user, whose files are erased with the user."""
    return f"{CONTEXT}:{user_id}" if user_id else CONTEXT


def read_tree(found: dict[str, Any] | None) -> FileTree:
    """Return the tree of an answer to LOAD, or an empty one."""
    if found is None:
        return FileTree({}, set())
    items = found["searches"][0]["items"]
    files = {path_of(each): each["value"]["text"] for each in items if each["namespace"] == FILES}
    return FileTree(files, {path_of(each) for each in items if each["namespace"] == DIRECTORIES})


def path_of(item: dict[str, Any]) -> str:
    return f"{ROOT}/{item['key']}"


def find_changes(tree: FileTree) -> dict[str, Any]:
    """Return what to store and what to delete after a command; nothing if nothing changed.

    Raises MemoryCommandError for a tree with more than MAX_FILES files and directories.
    """
    changes: dict[str, Any] = {"items": [], "deleted": []}
    for path, text in tree.changed_files().items():
        if text is None:
            changes["deleted"].append(item_path(FILES, path))
        else:
            texts = [text] if text.strip() else []
            changes["items"].append({**item_path(FILES, path), "value": {"text": text}, "texts": texts})
    for path, is_there in tree.changed_directories().items():
        if is_there:
            changes["items"].append({**item_path(DIRECTORIES, path), "value": {}})
        else:
            changes["deleted"].append(item_path(DIRECTORIES, path))
    # the root is there anyway
    if changes["items"] and len(tree.files) + len(tree.directories) - 1 > MAX_FILES:
        raise MemoryCommandError(f"At most {MAX_FILES} files and directories are kept. Delete some first.")
    return changes if any(changes.values()) else {}


def item_path(namespace: list[str], path: str) -> dict[str, Any]:
    return {"namespace": namespace, "key": path[len(ROOT) + 1 :]}


def clear(tree: FileTree) -> None:
    tree.files.clear()
    tree.directories.intersection_update({ROOT})
