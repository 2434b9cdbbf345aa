"""The six commands of Claude's memory tool on a tree of texts, with the answers of the SDK's file-system tool.

Nothing here sends or stores anything: a command changes a `FileTree`, and the tree knows what changed.
"""

import errno
import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

MAX_LINES = 999_999
LINE_NUMBER_WIDTH = len(str(MAX_LINES))
ROOT = "/base/memories"
"""Path of the root of the tree. The parent is there since paths may leave the root and come back."""
DIRECTORY_SIZE = "4K"
PREFIX = "/memories"


class MemoryCommandError(Exception):
    """A refusal, as the model reads it."""


class Command(Protocol):
    """A command with the attributes that its name asks for."""

    command: Any


class FileTree:
    """Directories and texts by path, and what changed since they were loaded. `versions` are those that were loaded."""

    def __init__(self, files: Mapping[str, str], directories: set[str], versions: Mapping[str, int]) -> None:
        self.files = dict(files)
        self.versions = dict(versions)
        self.directories = {ROOT, *directories}
        self._stored_files = dict(files)
        self._stored_directories = set(self.directories)

    def changed_files(self) -> dict[str, str | None]:
        """Return the files that differ from those that were loaded. None: the file is gone."""
        gone = {path: None for path in self._stored_files if path not in self.files}
        return gone | {path: text for path, text in self.files.items() if self._stored_files.get(path) != text}

    def changed_directories(self) -> dict[str, bool]:
        """Return the directories that are new (True) or gone (False)."""
        return {path: path in self.directories for path in self.directories ^ self._stored_directories}

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def make_directories(self, path: str) -> None:
        """Make a directory and the ones above it. Raises NotADirectoryError where one of them is a file."""
        missing = []
        while not self.exists(path):
            missing.append(path)
            path = posixpath.dirname(path)
        if missing:
            self.refuse_file(path)
        self.directories.update(missing)

    def refuse_file(self, path: str) -> None:
        if path in self.files:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def below(self, path: str) -> list[str]:
        """Return the paths of all files and directories below a directory."""
        return [each for each in (*self.files, *self.directories) if each.startswith(path + "/")]

    def children(self, path: str) -> list[str]:
        """Return the names in a directory that are not hidden, in order."""
        names = {each[len(path) + 1 :].partition("/")[0] for each in self.below(path)}
        return sorted(name for name in names if not name.startswith("."))


def run_command(tree: FileTree, command: Command) -> str:
    """Run a command and return its answer. Raises MemoryCommandError, and OSError where the file system would."""
    return COMMANDS[command.command](tree, command)


def resolve(path: str) -> str:
    """Return the path in the tree. Raises MemoryCommandError for one outside of it."""
    if not path.startswith(PREFIX):
        raise MemoryCommandError(f"Path must start with {PREFIX}, got: {path}")
    full = posixpath.normpath(posixpath.join(ROOT, path[len(PREFIX) :].lstrip("/")))
    if full != ROOT and not full.startswith(ROOT + "/"):
        raise MemoryCommandError(f"Path {path} would escape {PREFIX} directory")
    return full


def view(tree: FileTree, command: Any) -> str:
    path = resolve(command.path)
    if path in tree.directories:
        header = f"Here're the files and directories up to 2 levels deep in {command.path}, excluding hidden items:"
        lines = [f"{DIRECTORY_SIZE}\t{command.path}"]
        lines += [f"{size}\t{command.path}/{name}" for size, name in list_directory(tree, path, "", 1)]
        return f"{header}\n" + "\n".join(lines)
    if path not in tree.files:
        raise missing(command.path)
    lines, first = tree.files[path].split("\n"), 1
    if len(lines) > MAX_LINES:
        raise MemoryCommandError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    if command.view_range and len(command.view_range) == 2:
        start, end = command.view_range
        first = max(1, start)
        lines = lines[first - 1 : len(lines) if end == -1 else end]
    shown = [number_line(number, line) for number, line in enumerate(lines, first)]
    return f"Here's the content of {command.path} with line numbers:\n" + "\n".join(shown)


def list_directory(tree: FileTree, path: str, relative: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the sizes and relative paths in a directory, and in those in it."""
    for name in tree.children(path):
        full, shown = f"{path}/{name}", f"{relative}/{name}" if relative else name
        if full in tree.files:
            yield format_size(len(tree.files[full].encode())), shown
            continue
        yield DIRECTORY_SIZE, f"{shown}/"
        if depth < 2:
            yield from list_directory(tree, full, shown, depth + 1)


def create(tree: FileTree, command: Any) -> str:
    path = resolve(command.path)
    if path != ROOT:
        tree.make_directories(posixpath.dirname(path))
        tree.refuse_file(posixpath.dirname(path))
    if tree.exists(path):
        raise MemoryCommandError(f"File {command.path} already exists")
    tree.files[path] = command.file_text
    return f"File created successfully at: {command.path}"


def str_replace(tree: FileTree, command: Any) -> str:
    path = find_file(tree, command.path)
    content = tree.files[path]
    count = content.count(command.old_str)
    if count == 0:
        raise MemoryCommandError(
            f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
        )
    if count > 1:
        lines = ", ".join(str(content[:at].count("\n") + 1) for at in find_all(content, command.old_str))
        raise MemoryCommandError(
            f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    changed = content[: content.find(command.old_str)].count("\n")
    tree.files[path] = content.replace(command.old_str, command.new_str)
    lines_now = tree.files[path].split("\n")
    first = max(0, changed - 2)
    shown = [number_line(number, line) for number, line in enumerate(lines_now[first : changed + 3], first + 1)]
    return "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + "\n".join(
        shown
    )


def insert(tree: FileTree, command: Any) -> str:
    path = find_file(tree, command.path)
    lines = tree.files[path].split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise MemoryCommandError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    text = "\n".join(lines)
    tree.files[path] = text if text.endswith("\n") else text + "\n"
    return f"The file {command.path} has been edited."


def delete(tree: FileTree, command: Any) -> str:
    path = resolve(command.path)
    if path == ROOT:
        raise MemoryCommandError(f"Cannot delete the {PREFIX} directory itself")
    if not tree.exists(path):
        raise MemoryCommandError(f"The path {command.path} does not exist")
    for each in (path, *tree.below(path)):
        tree.files.pop(each, None)
        tree.directories.discard(each)
    return f"Successfully deleted {command.path}"


def rename(tree: FileTree, command: Any) -> str:
    old, new = resolve(command.old_path), resolve(command.new_path)
    if old == ROOT:
        raise MemoryCommandError(f"Cannot rename the {PREFIX} directory itself")
    if tree.exists(new):
        raise MemoryCommandError(f"The destination {command.new_path} already exists")
    tree.make_directories(posixpath.dirname(new))
    tree.refuse_file(posixpath.dirname(new))
    if not tree.exists(old):
        refuse_files_above(tree, old)
        raise MemoryCommandError(f"The path {command.old_path} does not exist")
    if new.startswith(old + "/"):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), command.old_path)
    for each in [old, *tree.below(old)]:
        moved = new + each[len(old) :]
        if each in tree.files:
            tree.files[moved] = tree.files.pop(each)
        else:
            tree.directories.remove(each)
            tree.directories.add(moved)
    return f"Successfully renamed {command.old_path} to {command.new_path}"


def refuse_files_above(tree: FileTree, path: str) -> None:
    while path != ROOT:
        path = posixpath.dirname(path)
        tree.refuse_file(path)


def find_file(tree: FileTree, path: str) -> str:
    full = resolve(path)
    if not tree.exists(full):
        raise missing(path)
    if full not in tree.files:
        raise MemoryCommandError(f"The path {path} is not a file.")
    return full


def missing(path: str) -> MemoryCommandError:
    return MemoryCommandError(f"The path {path} does not exist. Please provide a valid path.")


def find_all(text: str, wanted: str) -> Iterator[int]:
    """Yield where a text occurs in another, overlapping ones too."""
    at = text.find(wanted)
    while at != -1:
        yield at
        at = text.find(wanted, at + 1)


def number_line(number: int, line: str) -> str:
    return f"{str(number).rjust(LINE_NUMBER_WIDTH)}\t{line}"


def format_size(size: int) -> str:
    """Return a number of bytes as the SDK does: 0B, 12B, 1.5K."""
    if size == 0:
        return "0B"
    unit = min((size.bit_length() - 1) // 10, 3)
    amount = size / 1024**unit
    return f"{int(amount) if amount == int(amount) else format(amount, '.1f')}{'BKMG'[unit]}"


COMMANDS = {
    "view": view,
    "create": create,
    "str_replace": str_replace,
    "insert": insert,
    "delete": delete,
    "rename": rename,
}
