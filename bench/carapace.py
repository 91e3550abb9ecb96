"""What a search of Carapace's takes, beside the floor of recall and the time Carapace allows."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final

from bench.conversation import Conversation
from bench.measure import alternate, timed
from bench.recalling import _Floor
from bench.report import Line, Section
from bench.subject import scratch
from scrubjay import bootstrap, settings
from scrubjay.engine.transfer import bundle
from scrubjay.model.memory import Json
from scrubjay.model.requests import Load
from scrubjay.surfaces.carapace.call_audit import AuditRecorder
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.memory import Config, Provider, ScrubjayMemory
from scrubjay.surfaces.carapace.wire import AgentSession, encode, scope_of

SIZES: Final = (1_000, 10_000)
SECONDS: Final = {1_000: 0.050}
"""What the design allows a search at most."""
_GROUP: Final = "bench"
_LIMIT: Final = 20


def run(*, quick: bool) -> Section:
    """memory_search at both sizes: the tool beside the floor, and a whole call on the wire."""
    section = Section("Carapace", reason="mind the machine's load above.")
    section.notes.append(
        "`memory_search` for 20 entries among invented conversations. *The tool* is the plugin's "
        "own part (recall, unsealing the entries, the seven fields), with vectors, beside the "
        "floor of the recall benchmark. *A whole call* goes from the bytes of a message to those "
        "of its reply, sanitized, and recorded in the audit trail with a sync."
    )
    for size in SIZES:
        for provider in (Provider.LOCAL, Provider.NONE):
            with scratch() as folder:
                _measure(section, folder, size, provider, count=20 if quick else 60)
    return section


def _measure(section: Section, folder: Path, size: int, provider: Provider, *, count: int) -> None:
    config = Config(embedding_provider=provider)
    memory = ScrubjayMemory(bootstrap.build(config.settings(settings.at_home(folder))), config)
    try:
        talk = Conversation()
        scope = scope_of(_GROUP)
        memories = tuple(talk.memories(size))
        memory.engine.load(
            scope, Load(bundle.to_json(bundle.Content(scope=scope, made_at="", memories=memories)))
        )
        questions = [talk.question() for _ in range(count)]
        _search(memory, questions[0])
        if provider is Provider.LOCAL:
            _beside_floor(section, memory, size, questions)
        section.lines.append(_whole(memory, size, provider, questions))
    finally:
        memory.shutdown()


def _search(memory: ScrubjayMemory, question: str) -> object:
    arguments: dict[str, Json] = {"query": question, "limit": _LIMIT}
    return memory.invoke("memory_search", arguments, session="s", group=_GROUP)


def _beside_floor(
    section: Section, memory: ScrubjayMemory, size: int, questions: list[str]
) -> None:
    engine, scope = memory.engine, scope_of(_GROUP)
    floor = _Floor(engine._indexed(scope), engine._open(scope).ports.embedder)
    asked, again = iter(questions * 2), iter(questions * 2)
    found = alternate(
        len(questions),
        lambda: timed(lambda: _search(memory, next(asked))),
        lambda: timed(lambda: floor(next(again))),
    )
    section.compare(f"{size:,}: the tool", found.wall, unit="ms")


def _whole(memory: ScrubjayMemory, size: int, provider: Provider, questions: list[str]) -> Line:
    host = Host([memory], bootstrap.clock(), record=AuditRecorder(memory.engine))
    agent = AgentSession(id="s", group=_GROUP)
    times = []
    for question in questions:
        message: Json = {
            "topic": "tool.invoke.memory_search",
            "correlation": "c",
            "arguments": {"query": question, "limit": _LIMIT},
        }
        begun = perf_counter()
        encode(host.answer(encode(message).encode(), agent))
        times.append(perf_counter() - begun)
    p95 = quantiles(times, n=20, method="inclusive")[-1]
    most = SECONDS.get(size)
    return Line(
        what=f"{size:,}: a whole call, {provider}",
        figure=f"{median(times) * 1e3:.1f} ms (p50), {p95 * 1e3:.1f} ms (p95)",
        target="-" if most is None else f"≤ {most * 1e3:.0f} ms",
        reached=None if most is None else median(times) <= most,
    )
