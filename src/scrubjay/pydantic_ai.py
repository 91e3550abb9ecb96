"""Long-term memory for PydanticAI agents; needs the extra `agents`.

from scrubjay.pydantic_ai import AgentMemory

agent = Agent("openai:gpt-5-mini", capabilities=[AgentMemory("alice")])
"""

try:
    from scrubjay.conversation.taint import reads_web
    from scrubjay.surfaces.initrunner.capability import AgentMemory
    from scrubjay.surfaces.initrunner.conversation_store import ScrubjayConversations
    from scrubjay.surfaces.initrunner.memory import LongTermMemory
    from scrubjay.surfaces.initrunner.roles import MemoryConfig, MemoryType
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "scrubjay.pydantic_ai needs more: pip install 'scrubjay[agents]'.", name=error.name
    ) from error

__all__ = [
    "AgentMemory",
    "LongTermMemory",
    "MemoryConfig",
    "MemoryType",
    "ScrubjayConversations",
    "reads_web",
]
