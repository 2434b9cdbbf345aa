"""Tools, resources and prompts with the names and answers that the conformance suite asks for."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    AudioContent,
    Completion,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

Server = MCPServer[Any]
AnyContext = Context[Any, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
STEP_SECONDS = 0.05


def embed(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def test_simple_text() -> str:
    return "This is a simple text response for testing."


def test_image_content() -> list[ImageContent]:
    return [ImageContent(type="image", data=PIXEL, mime_type="image/png")]


def test_audio_content() -> list[AudioContent]:
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


def test_embedded_resource() -> list[EmbeddedResource]:
    return [embed("test://embedded-resource", "This is an embedded resource content.")]


def test_multiple_content_types() -> list[ContentBlock]:
    return [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        embed("test://mixed-content-resource", json.dumps({"test": "data", "value": 123}), "application/json"),
    ]


async def test_tool_with_logging(ctx: AnyContext) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await asyncio.sleep(STEP_SECONDS)
    return "The tool has logged."


async def test_tool_with_progress(ctx: AnyContext) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_SECONDS)
    return "The tool has reported its progress."


def test_error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


async def test_streaming_elicitation(ctx: AnyContext) -> str:
    await ctx.report_progress(50, 100)
    return "The stream is complete."


async def test_logging_tool(ctx: AnyContext) -> str:
    await ctx.info("This is sent to clients that asked for it.")
    return "The tool has logged."


async def test_trigger_tool_change(ctx: AnyContext) -> str:
    await ctx.notify_tools_changed()
    return "The tools have changed."


async def test_trigger_prompt_change(ctx: AnyContext) -> str:
    await ctx.notify_prompts_changed()
    return "The prompts have changed."


TOOLS: tuple[Callable[..., Any], ...] = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_tool_with_progress,
    test_error_handling,
    test_streaming_elicitation,
    test_logging_tool,
    test_trigger_tool_change,
    test_trigger_prompt_change,
)


def add_tools(server: Server) -> None:
    for tool in TOOLS:
        server.add_tool(tool, description=f"Answer the scenario of the suite that calls {tool.__name__}.")


def add_resources(server: Server) -> None:
    @server.resource("test://static-text", mime_type="text/plain", description="A text.")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png", description="Bytes.")
    def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data", mime_type="application/json", description="A template.")
    def template(id: str) -> str:  # noqa: A002 - as the address names it
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def add_prompts(server: Server) -> None:
    @server.prompt(description="A prompt without arguments.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A prompt with two arguments.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A prompt with a resource.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - as the suite sends it
        return [UserMessage(embed(resourceUri, "Embedded resource content for testing.")), UserMessage("Process it.")]

    @server.prompt(description="A prompt with an image.")
    def test_prompt_with_image() -> list[UserMessage]:
        image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
        return [UserMessage(image), UserMessage("Look at it.")]

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(*_: Any) -> Completion:
        return Completion(values=["paris", "park", "party"], total=3, has_more=False)
