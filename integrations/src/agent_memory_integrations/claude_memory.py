"""Claude's memory tool (`memory_20250818`) on the service: pass `MemoryTool(client)` to the SDK's tool runner.

Files are items of a persistent context, so every version of a file stays readable, and `recall` finds what is in them.
A command loads the tree, runs, and stores what it changed, in two requests. Where another process has changed the same
file meanwhile, the command runs again on what that stored.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from agent_memory_client import AgentMemoryError, AsyncClient, BadRequestError, Client
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from agent_memory_integrations.contexts import AsyncNamedContext, NamedContext
from agent_memory_integrations.memory_files import Command, FileTree, MemoryCommandError, run_command
from agent_memory_integrations.memory_trees import (
    change_tree,
    clear,
    find_changes,
    list_pages,
    lock_of,
    make_tree,
    name_context,
    retry,
    without_versions,
)

T = TypeVar("T")


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one agent, with a tree for each user of it. `context` names another tree."""

    def __init__(self, client: Client, *, context: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.client = client
        self._context = NamedContext(client, context or name_context(client.settings.user_id))

    def clear_all_memory(self) -> str:
        """Delete all files and directories."""
        with lock_of(self._context):
            retry(lambda: self._change(clear))
        return "All memory cleared"

    def _run(self, command: Command) -> str:
        """Run one of the six commands, which says by its type which it is."""
        try:
            with lock_of(self._context):
                return retry(lambda: self._change(lambda tree: run_command(tree, command)))
        except (AgentMemoryError, MemoryCommandError) as err:
            raise ToolError(str(err)) from err

    view = create = str_replace = insert = delete = rename = _run

    def _change(self, change: Callable[[FileTree], T]) -> T:
        tree = self._load()
        try:
            return change(tree)
        finally:
            # a command that fails may have made directories
            self._store(tree)

    def _load(self) -> FileTree:
        pages, items = list_pages(), []
        while (search := pages.next_search()) and (found := self._context.query(searches=[search])):
            items += pages.read_items(found)
        return make_tree(items)

    def _store(self, tree: FileTree) -> None:
        if not (changes := find_changes(tree)):
            return
        try:
            self._context.write(**changes)
        except BadRequestError as err:
            self._context.write(**without_versions(changes, err))


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for asynchronous code."""

    def __init__(self, client: AsyncClient, *, context: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.client = client
        self._context = AsyncNamedContext(client, context or name_context(client.settings.user_id))

    async def clear_all_memory(self) -> str:
        """Delete all files and directories."""
        await change_tree(self._context, clear)
        return "All memory cleared"

    async def _run(self, command: Command) -> str:
        """Run one of the six commands, which says by its type which it is."""
        try:
            return await change_tree(self._context, lambda tree: run_command(tree, command))
        except (AgentMemoryError, MemoryCommandError) as err:
            raise ToolError(str(err)) from err

    view = create = str_replace = insert = delete = rename = _run
