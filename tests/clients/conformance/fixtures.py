"""What the conformance suite expects of a server by fixed names, on the server of the product."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY as MISSING
from mcp_types import (
    AudioContent,
    ClientCapabilities,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

from scrubjay.surfaces.mcp.server import MemoryServer

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
Text = Annotated[str, Field(description="A text.")]


def register(server: MemoryServer) -> None:
    """Register every fixture."""
    _contents(server)
    _talk(server)
    _rounds(server)
    _resources_and_prompts(server)
    _methods(server)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _embedded(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


IMAGE = ImageContent(type="image", data=PNG, mime_type="image/png")


def _contents(server: MemoryServer) -> None:
    """Tools with every sort of content."""

    @server.tool(description="Returns a text.")
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool(description="Returns an image.", structured_output=False)
    def test_image_content() -> Any:
        return [IMAGE]

    @server.tool(description="Returns a sound.", structured_output=False)
    def test_audio_content() -> Any:
        return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]

    @server.tool(description="Returns a resource.", structured_output=False)
    def test_embedded_resource() -> Any:
        return [_embedded("test://embedded-resource", "This is an embedded resource content.")]

    @server.tool(description="Returns a text, an image and a resource.", structured_output=False)
    def test_multiple_content_types() -> Any:
        text = '{"test":"data","value":123}'
        mixed = _embedded("test://mixed-content-resource", text, "application/json")
        return [_text("Multiple content types test:"), IMAGE, mixed]

    @server.tool(description="Fails.")
    def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")


class User(BaseModel):
    """A person."""

    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    """A default of every primitive type."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [
            {"const": f"value{number}", "title": f"{name} Option"}
            for number, name in enumerate(("First", "Second", "Third"), 1)
        ],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [
                {"const": f"value{number}", "title": f"{name} Choice"}
                for number, name in enumerate(("First", "Second", "Third"), 1)
            ]
        },
    },
}


def _talk(server: MemoryServer) -> None:
    """Tools that send something to the client while they run."""

    @server.tool(description="Logs while it runs.")
    async def test_tool_with_logging(context: Context[Any, Any]) -> str:
        for said in ("started", "processing data", "completed"):
            await context.info(f"Tool {said}" if " " in said else f"Tool execution {said}")
            await asyncio.sleep(0.05)
        return "Logged."

    @server.tool(description="Logs where the client asked for it.")
    async def test_logging_tool(context: Context[Any, Any]) -> str:
        await context.info("Tool execution")
        return "Logged."

    @server.tool(description="Reports progress.")
    async def test_tool_with_progress(context: Context[Any, Any]) -> str:
        for progress in (0, 50, 100):
            await context.report_progress(progress, 100, f"{progress} of 100")
            await asyncio.sleep(0.05)
        return "Done."

    @server.tool(description="Asks the model of the client.")
    async def test_sampling(
        prompt: Annotated[str, Field(description="The prompt.")], context: Context[Any, Any]
    ) -> str:
        params = _sampling(prompt).params
        # On the stream of the call, as the service has no other.
        asked = ServerMessageMetadata(related_request_id=context.request_id)
        result = await context.session.send_request(
            CreateMessageRequest(params=params), CreateMessageResult, metadata=asked
        )
        return f"LLM response: {getattr(result.content, 'text', '')}"

    @server.tool(description="Asks the user.")
    async def test_elicitation(
        message: Annotated[str, Field(description="The question.")], context: Context[Any, Any]
    ) -> str:
        answer = await context.elicit(message, User)
        return f"User response: {answer.model_dump_json()}"

    @server.tool(description="Asks the user, with defaults.")
    async def test_elicitation_sep1034_defaults(context: Context[Any, Any]) -> str:
        answer = await context.elicit("Please check the defaults", Defaults)
        return f"Elicitation completed: {answer.model_dump_json()}"

    @server.tool(description="Asks the user to choose.")
    async def test_elicitation_sep1330_enums(context: Context[Any, Any]) -> str:
        schema = {"type": "object", "properties": ENUMS}
        answer = await context.session.elicit_form("Please choose", schema, context.request_id)
        return f"Elicitation completed: {answer.model_dump_json()}"

    @server.tool(description="Needs the model of the client.", structured_output=False)
    def test_missing_capability(context: Context[Any, Any]) -> str:
        declared = context.client_capabilities or ClientCapabilities()
        if declared.sampling is None:
            data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(code=MISSING, message="The client cannot sample.", data=data)
        return "It can sample."


def _elicit(message: str, **properties: dict[str, str]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampling(text: str, tokens: int = 100) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=_text(text))
    params = CreateMessageRequestParams(messages=[message], max_tokens=tokens)
    return CreateMessageRequest(params=params)


NAME = _elicit("What is your name?", name={"type": "string"})
OK = _elicit("Please confirm", ok={"type": "boolean"})


def _needs(
    context: Context[Any, Any], state: str | None = None, **wanted: Any
) -> InputRequiredResult | None:
    """What is still to be asked; None once every answer is there."""
    given = context.input_responses or {}
    kinds: dict[Any, Any] = {ElicitRequest: ElicitResult, ListRootsRequest: ListRootsResult}
    asked = {
        name: one
        for name, one in wanted.items()
        if not isinstance(given.get(name), kinds.get(type(one), object)) or name not in given
    }
    if not asked and (state is None or context.request_state == state):
        return None
    return InputRequiredResult(input_requests=asked or wanted, request_state=state)


def _said(context: Context[Any, Any], name: str) -> Any:
    answer = (context.input_responses or {}).get(name)
    return answer.content if isinstance(answer, ElicitResult) else answer


def _rounds(server: MemoryServer) -> None:
    """Tools that ask by the results of the revision without sessions."""

    @server.tool(description="Asks for a name.", structured_output=False)
    def test_input_required_result_elicitation(context: Context[Any, Any]) -> Any:
        asked = _needs(context, user_name=NAME)
        return asked or f"Hello, {(_said(context, 'user_name') or {}).get('name')}!"

    @server.tool(description="Asks the model of the client.", structured_output=False)
    def test_input_required_result_sampling(context: Context[Any, Any]) -> Any:
        asked = _needs(context, capital_question=_sampling("What is the capital of France?"))
        return asked or str(_said(context, "capital_question"))

    @server.tool(description="Asks for roots.", structured_output=False)
    def test_input_required_result_list_roots(context: Context[Any, Any]) -> Any:
        return _needs(context, client_roots=ListRootsRequest()) or str(
            _said(context, "client_roots")
        )

    @server.tool(description="Carries a state.", structured_output=False)
    def test_input_required_result_request_state(context: Context[Any, Any]) -> Any:
        return _needs(context, "one", confirm=OK) or "state-ok"

    @server.tool(description="Asks three things at once.", structured_output=False)
    def test_input_required_result_multiple_inputs(context: Context[Any, Any]) -> Any:
        wanted = {"user_name": NAME, "greeting": _sampling("Generate a greeting", 50)}
        return _needs(context, "many", **wanted, client_roots=ListRootsRequest()) or "Done."

    @server.tool(description="Asks twice.", structured_output=False)
    def test_input_required_result_multi_round(context: Context[Any, Any]) -> Any:
        color = _elicit("Step 2: What is your favorite color?", color={"type": "string"})
        name = _elicit("Step 1: What is your name?", name={"type": "string"})
        if context.request_state == "second":
            return _needs(context, "second", step2=color) or "Done."
        asked = _needs(context, "first", step1=name)
        return asked or InputRequiredResult(input_requests={"step2": color}, request_state="second")

    @server.tool(description="Carries a state that is sealed.", structured_output=False)
    def test_input_required_result_tampered_state(context: Context[Any, Any]) -> Any:
        return _needs(context, "sealed", confirm=OK) or "state-ok"

    @server.tool(description="Asks what the client can answer.", structured_output=False)
    def test_input_required_result_capabilities(context: Context[Any, Any]) -> Any:
        able = context.client_capabilities or ClientCapabilities()
        wanted: dict[str, Any] = {}
        if able.elicitation is not None:
            wanted["user_name"] = NAME
        if able.sampling is not None:
            wanted["greeting"] = _sampling("Generate a greeting")
        return _needs(context, **wanted) or "Done."

    @server.tool(description="Asks in a stream.", structured_output=False)
    async def test_streaming_elicitation(context: Context[Any, Any]) -> Any:
        await context.report_progress(1, 2, "asking")
        return _needs(context, user_name=NAME) or "Done."

    @server.prompt(description="Asks for a context.")
    def test_input_required_result_prompt(context: Context[Any, Any]) -> Any:
        wanted = _elicit("What context should the prompt use?", context={"type": "string"})
        return _needs(context, user_context=wanted) or f"In {_said(context, 'user_context')}"


def _resources_and_prompts(server: MemoryServer) -> None:
    @server.resource("test://static-text", description="A text.", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="An image.", mime_type="image/png")
    def static_binary() -> bytes:
        import base64

        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", description="A text.", mime_type="text/plain")
    def watched() -> str:
        return "Watched."

    @server.resource(
        "test://template/{id}/data", description="A template.", mime_type="application/json"
    )
    def template(id: str) -> str:
        return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'

    @server.prompt(description="A simple prompt.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A prompt with arguments.")
    def test_prompt_with_arguments(arg1: Text, arg2: Text) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A prompt with a resource.")
    def test_prompt_with_embedded_resource(
        resourceUri: Text,  # noqa: N803 - the suite's own name
    ) -> Any:
        shown = _embedded(resourceUri, "Embedded resource content for testing.")
        return [shown, "Please process the embedded resource above."]

    @server.prompt(description="A prompt with an image.")
    def test_prompt_with_image() -> Any:
        return [IMAGE, "Please analyze the image above."]


def _methods(server: MemoryServer) -> None:
    """Methods that the product does not have: completion, subscriptions by session, log levels."""

    @server.completion()
    async def complete(_ref: Any, argument: Any, _context: Any) -> Completion:
        words = [one for one in ("paris", "park", "party") if one.startswith(argument.value)]
        return Completion(values=words, total=len(words), has_more=False)

    async def done(_context: Any, _params: Any) -> EmptyResult:
        return EmptyResult()

    below = server._lowlevel_server  # the SDK's upper server has no door to these
    below.add_request_handler("resources/subscribe", SubscribeRequestParams, done)
    below.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, done)
    below.add_request_handler("logging/setLevel", SetLevelRequestParams, done)
