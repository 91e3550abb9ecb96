"""An agent with a memory, in two sessions. It runs without a key: its model is a function.

    python examples/agent.py

With a real model: Agent("openai:gpt-5-mini", capabilities=[AgentMemory("alice")]).
"""

from __future__ import annotations

import tempfile

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from scrubjay.pydantic_ai import AgentMemory


def think(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Remember what is told, recall what is asked."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    assert isinstance(last, UserPromptPart)
    said = str(last.content)
    if said.endswith("?"):
        return ModelResponse(parts=[ToolCallPart("recall", {"query": said, "top_k": 1})])
    return ModelResponse(parts=[ToolCallPart("remember", {"content": said, "category": "drinks"})])


def main() -> None:
    with tempfile.TemporaryDirectory() as home, AgentMemory("alice", home=home) as memory:
        agent = Agent(FunctionModel(think), capabilities=[memory])
        print(agent.run_sync("Alice drinks oolong in the morning", conversation_id="one").output)
        print(agent.run_sync("What does Alice drink?", conversation_id="two").output)


if __name__ == "__main__":
    main()
