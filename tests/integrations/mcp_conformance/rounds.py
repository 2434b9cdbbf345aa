"""The suite's tools and prompt that ask the client for input before they answer, at most over three rounds.

Up to revision 2025-11-25 a server asked while a call was running, for which it needs a session. Ours has none, so the
suite's tools of that kind are not here.
"""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    MissingRequiredClientCapabilityErrorData,
    SamplingCapability,
    SamplingMessage,
    TextContent,
)

from tests.integrations.mcp_conformance.contents import Server

AnyContext = Context[Any, Any]
Answer = str | InputRequiredResult


def ask(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def given(ctx: AnyContext, *keys: str) -> list[Any]:
    """Return the client's answers to these requests, or nothing unless all are there."""
    answers = [(ctx.input_responses or {}).get(key) for key in keys]
    return [] if None in answers else answers


def require(requests: dict[str, InputRequest], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


NAME = {"user_name": ask("What is your name?", "name")}


def test_input_required_result_elicitation(ctx: AnyContext) -> Answer:
    for answer in given(ctx, "user_name"):
        name = (getattr(answer, "content", None) or {}).get("name")
        if name:
            return f"Hello, {name}!"
    return require(dict(NAME))


def test_input_required_result_sampling(ctx: AnyContext) -> Answer:
    for answer in given(ctx, "capital_question"):
        return f"The model says: {answer.content.text}"
    return require({"capital_question": sample("What is the capital of France?")})


def test_input_required_result_list_roots(ctx: AnyContext) -> Answer:
    for answer in given(ctx, "client_roots"):
        return f"The roots are: {', '.join(str(root.uri) for root in answer.roots)}"
    return require({"client_roots": ListRootsRequest()})


def test_input_required_result_request_state(ctx: AnyContext) -> Answer:
    if given(ctx, "confirm") and ctx.request_state == "asked":
        return "state-ok"
    return require({"confirm": ask("Please confirm", "ok", "boolean")}, "asked")


def test_input_required_result_tampered_state(ctx: AnyContext) -> Answer:
    return test_input_required_result_request_state(ctx)


def test_input_required_result_multiple_inputs(ctx: AnyContext) -> Answer:
    if given(ctx, "user_name", "greeting", "client_roots"):
        return "All inputs are there."
    requests: dict[str, InputRequest] = {
        **NAME,
        "greeting": sample("Generate a greeting"),
        "client_roots": ListRootsRequest(),
    }
    return require(requests, "asked")


def test_input_required_result_multi_round(ctx: AnyContext) -> Answer:
    if ctx.request_state == "second" and given(ctx, "step2"):
        return "All rounds are done."
    if ctx.request_state == "first" and given(ctx, "step1"):
        return require({"step2": ask("Step 2: What is your favorite color?", "color")}, "second")
    return require({"step1": ask("Step 1: What is your name?", "name")}, "first")


def test_input_required_result_capabilities(ctx: AnyContext) -> Answer:
    able = ctx.client_capabilities or ClientCapabilities()
    requests: dict[str, InputRequest] = {}
    if able.elicitation is not None:
        requests |= NAME
    if able.sampling is not None:
        requests["capital_question"] = sample("What is the capital of France?")
    return require(requests) if requests and not ctx.input_responses else "Nothing is asked."


def test_missing_capability(ctx: AnyContext) -> str:
    if ctx.client_capabilities is not None and ctx.client_capabilities.sampling is not None:
        return "The client can be asked for samples."
    needed = ClientCapabilities(sampling=SamplingCapability())
    data = MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
    raise MCPError(
        code=MISSING_REQUIRED_CLIENT_CAPABILITY,
        message="The tool needs a client that can be asked for samples.",
        data=data.model_dump(by_alias=True, mode="json", exclude_none=True),
    )


TOOLS: tuple[Callable[..., Any], ...] = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_missing_capability,
)


def add_rounds(server: Server) -> None:
    for tool in TOOLS:
        server.add_tool(tool, description=f"Answer the scenario of the suite that calls {tool.__name__}.")

    @server.prompt(description="A prompt that asks what it is for.")
    def test_input_required_result_prompt(ctx: AnyContext) -> list[UserMessage] | InputRequiredResult:
        for answer in given(ctx, "user_context"):
            return [UserMessage(f"The context is: {answer.content}")]
        return require({"user_context": ask("What context should the prompt use?", "context")})
