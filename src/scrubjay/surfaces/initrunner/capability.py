"""AgentMemory: long-term memory as a capability of a PydanticAI agent, in one line.

agent = Agent("openai:gpt-5-mini", capabilities=[AgentMemory("alice")])
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, ParamSpec, Self

from pydantic_ai import AgentRunResult, ModelRetry, RunContext, ToolFailed
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    BinaryContent,
    FileUrl,
    ModelMessage,
    ModelResponse,
    ToolCallPart,
    UploadedFile,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.conversation.capture import sound
from scrubjay.conversation.taint import reads_web
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope
from scrubjay.surfaces.initrunner.memory import GENERAL, LongTermMemory, WrongType
from scrubjay.surfaces.initrunner.roles import MemoryConfig, MemoryType, check_config

TOOLS: Final = ("remember", "recall", "list_memories", "learn_procedure", "record_episode")
P = ParamSpec("P")

log = logging.getLogger(__name__)


class AgentMemory(AbstractCapability[Any]):
    """The memory tools, the procedures in the system prompt, and the trust of what a run read.

    `scope` is the name of a scope, made by the first write, or an open handle. A tool that reads
    the web taints the session: what the agent stores from then on is trusted no more than the web,
    and a procedure it learns waits for a person. With `record` every run is recorded as a turn.

    InvalidRequest for wrong arguments.
    """

    def __init__(
        self,
        scope: str | Jay | LongTermMemory = "default",
        *,
        home: str | os.PathLike[str] | None = None,
        config: MemoryConfig | None = None,
        reads_web: Callable[[str], bool] = reads_web,
        record: bool = False,
    ) -> None:
        self._own: Jay | None = None
        if not callable(reads_web):
            raise InvalidRequest("reads_web: it must be a function of a tool's name.")
        if home is not None and isinstance(scope, Jay | LongTermMemory):
            raise InvalidRequest("home: it is for the name of a scope; this one is open already.")
        match scope:
            case LongTermMemory():
                if config is not None:
                    raise InvalidRequest("config: a LongTermMemory has one already.")
                self.memory = scope
            case Jay():
                self.memory = LongTermMemory(scope, config)
            case _:
                name, config = Scope.parse(scope), check_config(config)
                kernel = bootstrap.build(reading.read(home=home))
                self._own = Jay(kernel, name, actor=Actor.AGENT)
                self.memory = LongTermMemory(self._own, config)
        self._reads_web = reads_web
        self._record = record
        self._shown: list[str] = []
        """What the run was shown of the memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files it opened itself; idempotent."""
        if self._own is not None:
            self._own.close()

    # -- what the agent is given -----------------------------------------------------------

    async def for_run(self, ctx: RunContext[Any]) -> Self:
        """A capability of its own for each run: what one was shown is no concern of another."""
        own = object.__new__(type(self))
        own.__dict__.update(self.__dict__, _shown=[])
        return own

    def get_instructions(self) -> Any:
        """The newest procedures, read before each request."""

        async def procedures(_: RunContext[Any]) -> str | None:
            return await asyncio.to_thread(self.memory.procedures) or None

        return procedures

    def get_toolset(self) -> FunctionToolset[Any]:
        """The tools of the types that are enabled; recall and list_memories always."""
        memory, toolset = self.memory, FunctionToolset[Any](id="scrubjay")

        def remember(ctx: RunContext[Any], content: str, category: str = GENERAL) -> str:
            """Store a piece of information in long-term memory, to be recalled later."""
            return _answered(memory.remember, content, category, session=session_of(ctx))

        def recall(
            ctx: RunContext[Any],
            query: str,
            top_k: int = 5,
            memory_types: list[str] | None = None,
        ) -> str:
            """Search long-term memory for what has to do with the query.

            Args:
                query: What to search for.
                top_k: Maximum number of results.
                memory_types: Only memories of these types: episodic, semantic, procedural.
            """
            found = _answered(memory.recall, query, top_k, memory_types, session=session_of(ctx))
            self._shown.append(found)
            return found

        def list_memories(
            ctx: RunContext[Any],
            category: str | None = None,
            limit: int = 20,
            memory_type: str | None = None,
        ) -> str:
            """List the newest memories.

            Args:
                category: Only memories of this category.
                limit: Maximum number of results.
                memory_type: Only memories of this type: episodic, semantic or procedural.
            """
            found = _answered(
                memory.list_memories, category, limit, memory_type, session=session_of(ctx)
            )
            self._shown.append(found)
            return found

        def learn_procedure(ctx: RunContext[Any], content: str, category: str = GENERAL) -> str:
            """Store a procedure, policy or pattern to follow from now on."""
            return _answered(memory.learn_procedure, content, category, session=session_of(ctx))

        def record_episode(ctx: RunContext[Any], content: str, category: str = GENERAL) -> str:
            """Record what happened in a task: its outcome, decisions, errors."""
            return _answered(memory.record_episode, content, category, session=session_of(ctx))

        if memory.config.enabled(MemoryType.SEMANTIC):
            toolset.add_function(remember)
        toolset.add_function(recall)
        toolset.add_function(list_memories)
        if memory.config.enabled(MemoryType.PROCEDURAL):
            toolset.add_function(learn_procedure)
        if memory.config.enabled(MemoryType.EPISODIC):
            toolset.add_function(record_episode)
        return toolset

    # -- what the run did ------------------------------------------------------------------

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Take over the taint of what the run goes on with: its history, and who spoke there."""
        if ctx.messages:
            await asyncio.to_thread(self._go_on, session_of(ctx), tuple(ctx.messages))

    def _go_on(self, session: str | None, history: Sequence[ModelMessage]) -> None:
        self._note_parts(session, history)
        named = {one.conversation_id or one.run_id for one in history} - {session, None}
        if named and self.memory.exists():
            for other in named:
                self.memory.taint.note(session, self.memory.taint.of(other))

    def _note_parts(self, session: str | None, messages: Sequence[ModelMessage]) -> None:
        """Taint the session by what these messages show: calls of tools that read the web, files.

        A file has the words of whoever made it, and that is not known.
        """
        for part in (part for message in messages for part in message.parts):
            tool = getattr(part, "tool_name", None) or ""
            if tool not in TOOLS and self._reads_web(tool):
                self.memory.taint.note(session, Origin.WEB)
            content = getattr(part, "content", None)
            for one in content if isinstance(content, list | tuple) else (content,):
                if isinstance(one, FileUrl):
                    self.memory.taint.note(session, Origin.WEB)
                elif isinstance(one, BinaryContent | UploadedFile):
                    self.memory.taint.note(session, Origin.QUOTED)

    async def before_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """Taint the session if the server of an MCP tool says that it reaches beyond itself."""
        hints = (tool_def.metadata or {}).get("annotations")
        if isinstance(hints, Mapping) and hints.get("openWorldHint") is True:
            await asyncio.to_thread(self.memory.taint.note, session_of(ctx), Origin.WEB)
        return args

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Taint the session by what the model is given: the prompt, or the results of tools."""
        await asyncio.to_thread(self._note_parts, session_of(ctx), request_context.messages[-1:])
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Taint the session if the model calls a tool that reads the web, or the provider's.

        Before it runs: its failure may quote the page.
        """
        await asyncio.to_thread(self._note_parts, session_of(ctx), (response,))
        return response

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Record the turn, if that was asked for, with what memory had shown; never raises."""
        if self._record and isinstance(ctx.prompt, str):
            shown = (*self._shown, self.memory.procedures())
            write = partial(
                self.memory.jay.record,
                user=sound(ctx.prompt),
                assistant=sound(str(result.output)),
                id=f"run-{ctx.run_id}",
                session=session_of(ctx),
                shown=tuple(text for text in shown if text),
            )
            try:
                await asyncio.to_thread(self.memory.taint.settle, session_of(ctx))
                await asyncio.to_thread(write)
            except ScrubjayError as error:
                log.warning("Failed to record the turn", extra={"code": error.code})
        return result


def session_of(ctx: RunContext[Any]) -> str | None:
    """The session that a run belongs to."""
    return ctx.conversation_id or ctx.run_id


def _answered(tool: Callable[P, str], *args: P.args, **named: P.kwargs) -> str:
    """The answer of a tool; an error is told to the model and does not end the run."""
    try:
        return tool(*args, **named)
    except WrongType as error:
        raise ModelRetry(error.message) from error
    except ScrubjayError as error:
        log.warning("memory.tool_failed", extra={"code": error.code})
        raise ToolFailed(f"{error.message} {error.hint}".strip()) from error
