"""Who takes part, what each needs, and what is fair to say about the way it was run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One row of the table."""

    name: str
    subject: str
    """`module:Class` below `bench.peers.subjects`."""
    environment: str | None = None
    """The environment it runs in; None for ours."""
    on_disk: bool = True
    note: str = ""


ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    # numpy, because without it InMemoryStore compares vectors number by number.
    "langgraph": ("langgraph~=1.2", "langgraph-checkpoint-sqlite~=3.1", "numpy~=2.3"),
    "mem0": ("mem0ai~=2.2", "faiss-cpu~=1.15"),
    "mcp-memory": ("mcp-memory-service~=12.2",),
    "mempalace": ("mempalace~=3.11",),
}
"""What is installed in each; the report says which versions that came to."""

ENTRANTS = (
    Entrant(
        name="scrubjay",
        subject="ours:Default",
        note="the default: static embedder, every write sealed and synced before it returns",
    ),
    Entrant(
        name="scrubjay, encoder",
        subject="ours:WithEncoder",
        note="the default with the embedder of the extra `encoder`; its times contain embedding",
    ),
    Entrant(
        name="scrubjay, MiniLM",
        subject="ours:WithMiniLM",
        note="the same with the vectors everybody else has",
    ),
    Entrant(
        name="scrubjay, bare lines",
        subject="ours:BareLines",
        note="MiniLM again, and given one line per turn as the peers are, without any field",
    ),
    Entrant(
        name="LangGraph InMemoryStore",
        subject="langgraph:InMemory",
        environment="langgraph",
        on_disk=False,
        note="nothing is kept when the process ends",
    ),
    Entrant(
        name="LangGraph SqliteStore",
        subject="langgraph:Sqlite",
        environment="langgraph",
        note="opened by its `from_conn_string`: a rollback journal, a transaction per put",
    ),
    Entrant(
        name="mem0, Qdrant",
        subject="mem0:Qdrant",
        environment="mem0",
        note="`infer=False`, its default vector store run in the process",
    ),
    Entrant(
        name="mem0, FAISS",
        subject="mem0:Faiss",
        environment="mem0",
        note="`infer=False`; it writes the whole index at every add",
    ),
    Entrant(
        name="mcp-memory-service",
        subject="mcp_memory:Semantic",
        environment="mcp-memory",
        note="`store` and `retrieve` of its SQLite storage, called directly, without MCP",
    ),
    Entrant(
        name="mcp-memory-service, hybrid",
        subject="mcp_memory:Hybrid",
        environment="mcp-memory",
        note="the same with `retrieve_hybrid`: BM25 beside the vectors",
    ),
    Entrant(
        name="MemPalace",
        subject="mempalace:Palace",
        environment="mempalace",
        note="`add_drawer` and `search_memories` (BM25 on top of the vectors), its default backend",
    ),
)
