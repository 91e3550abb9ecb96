"""RoleAgent: the agent of a role file with its model, memory and sessions, until it is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace
from pydantic_ai import Agent, RunContext
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool

from scrubjay import bootstrap
from scrubjay.conversation.taint import SessionTaint
from scrubjay.engine import Kernel
from scrubjay.handle import Jay
from scrubjay.model.errors import ExtractorError, InvalidRequest, ScrubjayError
from scrubjay.model.jobs import ModelAnswer, Worked
from scrubjay.model.origin import Actor
from scrubjay.settings import EmbedderName, Settings
from scrubjay.surfaces.initrunner import embeddings
from scrubjay.surfaces.initrunner.capability import AgentMemory, session_of
from scrubjay.surfaces.initrunner.embeddings import EmbeddingKeyMissing, EmbeddingRecord
from scrubjay.surfaces.initrunner.memory import LongTermMemory
from scrubjay.surfaces.initrunner.roles import (
    Delegate,
    Interval,
    MemoryConfig,
    ModelConfig,
    Role,
    load,
)
from scrubjay.surfaces.initrunner.sessions import Sessions, new_id

# -- model calls ----------------------------------------------------------------------------------


Variable = Callable[[str], str | None]
"""The value of an environment variable; None if it is not set."""
_OLLAMA: Final = "http://localhost:11434/v1"
_NO_KEY: Final = "none"
"""The key for an endpoint that asks for none: the client library wants some text."""


def build_model(config: ModelConfig, variable: Variable) -> Model:
    """The model of a role; InvalidRequest names the package, key or name that is missing."""
    key = variable(config.api_key_env) if config.api_key_env else None
    if config.api_key_env and key is None:
        raise InvalidRequest(
            f"The API key of the model is not set: set the {config.api_key_env} environment "
            "variable.",
            hint="Or name another one in spec.model.api_key_env.",
        )

    try:
        if config.base_url or config.provider == "ollama":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider

            own = OpenAIProvider(base_url=config.base_url or _OLLAMA, api_key=key or _NO_KEY)
            return OpenAIChatModel(config.name, provider=own)
        name = f"{config.provider}:{config.name}"
        if key is None:
            return infer_model(name)
        # Every provider that takes a key calls it so; the base class only does not say it.
        made: Callable[..., Provider[Any]] = infer_provider_class(config.provider)
        return infer_model(name, lambda _: made(api_key=key))
    except ImportError as error:
        raise InvalidRequest(
            f"The provider {config.provider} needs a package that is not installed.",
            hint=f"pip install 'pydantic-ai-slim[{config.provider}]' brings it.",
        ) from error
    except (UserError, ValueError) as error:
        raise InvalidRequest(
            f"spec.model: {error}",
            hint="Set the key it needs, or name the variable of another one in "
            "spec.model.api_key_env, or in spec.model.base_url an endpoint that needs none.",
        ) from error


def model_settings(config: ModelConfig) -> ModelSettings:
    """What the role says about how the model answers; without a word, the model's own ways."""
    chosen = {"temperature": config.temperature, "max_tokens": config.max_tokens}
    return cast(ModelSettings, {name: one for name, one in chosen.items() if one is not None})


def overriding(config: ModelConfig, name: str | None) -> ModelConfig:
    """The model that consolidates: the role's, or another one as `provider:name` or a name."""
    if name is None:
        return config
    provider, colon, rest = name.partition(":")
    if not colon or provider == config.provider or config.base_url:
        return replace(config, name=rest if provider == config.provider else name)
    return ModelConfig(provider=provider, name=rest)


class ModelCaller:
    """A call of a PydanticAI model from a thread, done by the event loop of the agent."""

    def __init__(self, model: Callable[[], Model], loop: asyncio.AbstractEventLoop) -> None:
        self._model = model
        self._loop = loop

    def __call__(
        self, instructions: str, material: str, *, deadline: float | None = None
    ) -> ModelAnswer:
        """What the model answers; ExtractorError if it does not, or not in time."""
        left = None if deadline is None else deadline - bootstrap.clock().monotonic()
        question = ModelRequest.user_text_prompt(material, instructions=instructions)

        async def ask() -> ModelAnswer:
            async with asyncio.timeout(left):
                answer = await model_request(self._model(), [question])
            return ModelAnswer(
                text=answer.text or "",
                tokens_in=answer.usage.input_tokens or None,
                tokens_out=answer.usage.output_tokens or None,
            )

        try:
            return asyncio.run_coroutine_threadsafe(ask(), self._loop).result()
        except Exception as error:  # seam: whatever a provider raises, the model did not answer
            raise ExtractorError(f"The model did not answer ({type(error).__name__}).") from error


# -- the agent of a role --------------------------------------------------------------------------


_FAILED: Final = "[DELEGATION ERROR]"
R = TypeVar("R")

log = logging.getLogger(__name__)


class MissingEmbeddings(EmbeddingRecord):
    """Stands where memories cannot be embedded: reading and sessions work, the rest says why."""

    def __init__(self, why: EmbeddingKeyMissing) -> None:
        self._why = why

    def check(self) -> None:
        """EmbeddingKeyMissing."""
        raise self._why

    def note(self) -> None:
        """Nothing was embedded."""

    def renew(self) -> int:
        """EmbeddingKeyMissing."""
        raise self._why


class RoleAgent:
    """The agent of a role: built on first use, so that looking at its memory needs no model."""

    def __init__(
        self,
        role: Role,
        *,
        jay: Jay | None,
        embedded: EmbeddingRecord | None,
        runner: asyncio.Runner,
        variable: Variable,
        delegate: Callable[[Delegate, SessionTaint], Tool[Any]],
    ) -> None:
        self.role = role
        self.embedded = embedded
        self._runner = runner
        self._variable = variable
        self._delegate = delegate
        config = role.memory or MemoryConfig()
        self._memory = None if jay is None else LongTermMemory(jay, config, embedded)
        self.taint = SessionTaint() if self._memory is None else self._memory.taint
        self.sessions = None
        if jay is not None:
            most, resumed = config.max_sessions, config.max_resume_messages
            self.sessions = Sessions(jay, role.name, most=most, resumed=resumed)

    @property
    def memory(self) -> LongTermMemory:
        """Its long-term memory; InvalidRequest if the role has none."""
        if self._memory is None:
            raise InvalidRequest("No memory config in role definition.")
        return self._memory

    @property
    def remembers(self) -> bool:
        """Whether the role has a memory."""
        return self._memory is not None

    def build(self, *tools: Tool[Any]) -> Agent[None, str]:
        """The PydanticAI agent, with tools of its run besides those of its memory."""
        capabilities = [] if self._memory is None else [AgentMemory(self._memory)]
        delegates = [self._delegate(one, self.taint) for one in self.role.delegates]
        return Agent(
            self.model(),
            name=self.role.name,
            instructions=self.role.prompt,
            model_settings=model_settings(self.role.model),
            tools=[*tools, *delegates],
            capabilities=capabilities,
        )

    def model(self) -> Model:
        """The language model of the role."""
        return build_model(self.role.model, self._variable)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Do something on the event loop of the agent."""
        return self._runner.run(work)

    def answered(self, work: Coroutine[Any, Any, R]) -> R:
        """Do something with the model; ExtractorError, whatever the provider raises."""
        try:
            return self.run(work)
        except Exception as error:  # seam: providers raise errors of their own libraries
            raise ExtractorError(
                f"The model did not answer: {error}",
                hint="Check spec.model and its key, or try again later.",
            ) from error

    def consolidate(self) -> Worked:
        """Make facts of episodes; ScrubjayError if that is not possible now."""
        return self.run(asyncio.to_thread(self.memory.consolidate))

    def tidy(self, *intervals: Interval) -> Worked | None:
        """What is due at the end of a session: old sessions are erased, and episodes consolidated.

        They are at these intervals. Never raises; None if nothing was consolidated.
        """
        if self.sessions is None:
            return None
        self.sessions.prune()
        config = self.memory.config.consolidation
        due = config.enabled and config.interval in intervals
        try:
            return self.consolidate() if due and self.memory.exists() else None
        except ScrubjayError as error:
            log.warning("Memory consolidation failed", extra={"code": error.code})
            return None


@contextmanager
def opened(
    role: Role,
    settings: Settings,
    variable: Variable,
    *,
    actor: Actor = Actor.AGENT,
    importing: bool = False,
    depth: int = 0,
) -> Iterator[RoleAgent]:
    """The agent of a role on the home of these settings.

    Where InitRunner keeps a database for it, it is refused until that was imported.
    """
    with asyncio.Runner() as runner:
        kernel, jay, embedded = None, None, None
        try:
            if role.memory is not None:
                kernel, embedded, jay = _memory_of(role, settings, variable, runner, actor)
                if not importing:
                    _check_imported(role, kernel)
            delegate = _delegating(settings, variable, depth + 1)
            yield RoleAgent(
                role,
                jay=jay,
                embedded=embedded,
                runner=runner,
                variable=variable,
                delegate=delegate,
            )
        finally:
            if kernel is not None:
                kernel.close()


def _memory_of(
    role: Role, settings: Settings, variable: Variable, runner: asyncio.Runner, actor: Actor
) -> tuple[Kernel, EmbeddingRecord, Jay]:
    """The engine with the embedder and the consolidating model of the role."""
    config = role.memory or MemoryConfig()
    chosen = embeddings.resolve(config.embeddings, role.model.provider)
    missing = None
    try:
        settings = chosen.settings(settings, variable)
    except EmbeddingKeyMissing as error:
        missing = error
        settings = replace(settings, embedder=EmbedderName.NONE)
    asked = overriding(role.model, config.consolidation.model_override)
    caller = ModelCaller(lambda: build_model(asked, variable), runner.get_loop())
    extractor = bootstrap.called_extractor(caller, f"{asked.provider}:{asked.name}")
    embedder = bootstrap.make_embedder(settings, bootstrap.clock())
    kernel = bootstrap.build(settings, embedder=embedder, extractor=extractor)
    jay = Jay(kernel, role.scope, actor=actor, shared=True)
    record = EmbeddingRecord(jay, chosen, embedder)
    return kernel, MissingEmbeddings(missing) if missing else record, jay


def _check_imported(role: Role, kernel: Kernel) -> None:
    path = role.store_path or role.default_path
    if path.is_file() and role.scope not in kernel.scopes():
        raise InvalidRequest(
            f"There is a database of InitRunner at {path}, which scrubjay does not write to.",
            hint=f"Take it over, `scrubjay memory import {role.path} {path}`, or move it away.",
        )


def _delegating(
    settings: Settings, variable: Variable, depth: int
) -> Callable[[Delegate, SessionTaint], Tool[Any]]:
    """Tools that hand a task to another role, each run on a memory it may share.

    What one of the two has read may stand in what it tells the other: taint goes both ways.
    """

    def tool(delegate: Delegate, taint: SessionTaint) -> Tool[Any]:
        def hand_over(ctx: RunContext[Any], prompt: str) -> str:
            if depth > delegate.max_depth:
                return f"{_FAILED} Maximum delegation depth ({delegate.max_depth}) exceeded."
            try:
                role = load(delegate.role_file)
                if delegate.shared is not None:
                    role = role.sharing(delegate.shared, "")
                with opened(role, settings, variable, depth=depth) as agent:
                    here, there = session_of(ctx), new_id()
                    agent.taint.note(there, taint.of(here))
                    try:
                        return agent.run(agent.build().run(prompt, conversation_id=there)).output
                    finally:
                        taint.note(here, agent.taint.of(there))
            except Exception as error:  # seam: the agent is told, and its run goes on
                log.warning("delegation.failed", extra={"code": type(error).__name__})
                return f"{_FAILED} Agent '{delegate.name}' failed: {error}"

        about = delegate.description or f"the agent {delegate.name}"
        name = f"delegate_to_{delegate.name.replace('-', '_')}"
        return Tool(hand_over, name=name, description=f"Hand a task to {about}.")

    return tool
