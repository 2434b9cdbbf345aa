"""Claude's memory tool (`memory_20250818`) on the service: pass `MemoryTool(client)` to the SDK's tool runner.

Files are items of a persistent context, so every version of a file stays readable, and `recall` finds what is in them.
A command loads the tree, runs, and stores what it changed, in two requests. Where another process has changed the same
file meanwhile, the command runs again on what that stored.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from agent_memory_client import AgentMemoryError, AsyncClient, BadRequestError, Client
from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from agent_memory_integrations.contexts import AsyncNamedContext, NamedContext
from agent_memory_integrations.memory_files import Command, FileTree, MemoryCommandError, run_command
from agent_memory_integrations.memory_trees import (
    async_lock_of,
    async_retry,
    clear,
    find_changes,
    list_pages,
    load_tree,
    lock_of,
    make_tree,
    name_context,
    retry,
    store_changes,
    without_versions,
)

T = TypeVar("T")


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one agent, with a tree for each user of it. `context` names another tree."""

    def __init__(self, client: Client, *, context: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.client = client
        self._context = NamedContext(client, context or name_context(client.settings.user_id))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or a directory."""
        return self._run(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file, and the directories above it."""
        return self._run(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return self._run(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a file."""
        return self._run(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return self._run(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        return self._run(command)

    def clear_all_memory(self) -> str:
        """Delete all files and directories."""
        with lock_of(self._context):
            retry(lambda: self._change(clear))
        return "All memory cleared"

    def _run(self, command: Command) -> str:
        try:
            with lock_of(self._context):
                return retry(lambda: self._change(lambda tree: run_command(tree, command)))
        except (AgentMemoryError, MemoryCommandError) as err:
            raise ToolError(str(err)) from err

    def _change(self, change: Callable[[FileTree], T]) -> T:
        tree = self._load()
        try:
            return change(tree)
        finally:
            # a command that fails may have made directories
            self._store(tree)

    def _load(self) -> FileTree:
        context_id, pages, items = self._context.find_id(), list_pages(), []
        while context_id and (search := pages.next_search()):
            items += pages.read_items(self.client.query_items(context_id, searches=[search]).to_dict())
        return make_tree(items)

    def _store(self, tree: FileTree) -> None:
        if not (changes := find_changes(tree)):
            return
        context_id = self._context.ensure_id()
        try:
            self.client.write_items(context_id, **changes)
        except BadRequestError as err:
            self.client.write_items(context_id, **without_versions(changes, err))


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for asynchronous code."""

    def __init__(self, client: AsyncClient, *, context: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.client = client
        self._context = AsyncNamedContext(client, context or name_context(client.settings.user_id))

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or a directory."""
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file, and the directories above it."""
        return await self._run(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a file."""
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all that is in it."""
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename or move a file or a directory."""
        return await self._run(command)

    async def clear_all_memory(self) -> str:
        """Delete all files and directories."""
        async with async_lock_of(self._context):
            await async_retry(lambda: self._change(clear))
        return "All memory cleared"

    async def _run(self, command: Command) -> str:
        try:
            async with async_lock_of(self._context):
                return await async_retry(lambda: self._change(lambda tree: run_command(tree, command)))
        except (AgentMemoryError, MemoryCommandError) as err:
            raise ToolError(str(err)) from err

    async def _change(self, change: Callable[[FileTree], T]) -> T:
        tree = await load_tree(self.client, self._context)
        try:
            return change(tree)
        finally:
            await store_changes(self.client, self._context, tree)
