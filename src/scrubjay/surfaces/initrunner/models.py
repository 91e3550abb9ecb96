"""Language models of roles, and a model as the one that consolidates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from scrubjay import bootstrap
from scrubjay.model.errors import ExtractorError, InvalidRequest
from scrubjay.model.jobs import ModelAnswer
from scrubjay.surfaces.initrunner.roles import ModelConfig

Variable = Callable[[str], str | None]
"""The value of an environment variable; None if it is not set."""
_OLLAMA: Final = "http://localhost:11434/v1"
_NO_KEY: Final = "none"
"""The key for an endpoint that asks for none: the client library wants some text."""


def build(config: ModelConfig, variable: Variable) -> Model:
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
        raise InvalidRequest(f"spec.model: {error}") from error


def settings(config: ModelConfig) -> ModelSettings:
    """What the role says about how the model answers; without a word, the model's own ways."""
    chosen = ModelSettings()
    if config.temperature is not None:
        chosen["temperature"] = config.temperature
    if config.max_tokens is not None:
        chosen["max_tokens"] = config.max_tokens
    return chosen


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
