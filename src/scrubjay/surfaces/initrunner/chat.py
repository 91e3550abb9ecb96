"""Chat: a conversation on a terminal that is stored turn by turn and can be resumed."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, Final, Protocol

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from scrubjay.model.errors import ScrubjayError
from scrubjay.model.jobs import Worked
from scrubjay.model.memory import Memory
from scrubjay.model.results import Stopped
from scrubjay.surfaces.initrunner.memory import category_of, created_at
from scrubjay.surfaces.initrunner.role_agent import RoleAgent
from scrubjay.surfaces.initrunner.roles import Interval, MemoryType
from scrubjay.surfaces.initrunner.sessions import new_id, trimmed, whole

_LEAVING: Final = ("exit", "quit")
_PREVIEW: Final = 100
_HELP: Final = "/memories [WORDS] · /forget NUMBER · /brief · exit"


class Terminal(Protocol):
    """The person at the terminal: escape sequences in what is shown are taken out."""

    def ask(self) -> str | None:
        """The next line that is typed; None at the end."""

    def show(self, text: str) -> None:
        """Print a line."""

    def stream(self, text: str) -> None:
        """Print a piece of a line at once."""

    def say(self, text: str) -> None:
        """Print a line on stderr."""


class Chat:
    """One conversation: its session, its history, and the commands within it."""

    def __init__(self, agent: RoleAgent, terminal: Terminal) -> None:
        self._agent = agent
        self._terminal = terminal
        self._session = new_id()
        self._after: str | None = None
        """The session whose history this one goes on with."""
        self._history: list[ModelMessage] = []
        memory = agent.role.memory
        self._most = 2 * memory.max_resume_messages if memory is not None else 40

    def resume(self, session: str | None = None) -> None:
        """Go on with the latest session in a new one, or with a session under its own id."""
        sessions, terminal = self._agent.sessions, self._terminal
        latest = sessions.latest() if sessions is not None and session is None else None
        name = latest.name if latest is not None else session
        if sessions is not None and name is not None:
            self._history = sessions.load(name)
        if session is not None:
            self._session = session
        elif self._history:
            self._after = name
        if self._history:
            terminal.show(f"Resumed session with {len(self._history)} messages.")
        else:
            terminal.show("No previous session found.")

    def run(self) -> None:
        """Talk until the person leaves, then do what is due."""
        role, terminal = self._agent.role, self._terminal
        built = self._agent.build()
        terminal.show(f"{role.name} is here. {_HELP}")
        while (line := terminal.ask()) is not None:
            said = line.strip()
            if said.lower() in _LEAVING:
                break
            if said.startswith("/"):
                self._command(*said[1:].split(maxsplit=1))
            elif said:
                self._turn(built, said)
        report(self._agent.tidy(Interval.AFTER_SESSION), terminal)
        terminal.show("Goodbye!")

    def _turn(self, built: Agent[None, str], said: str) -> None:
        if self._after is not None and self._agent.sessions is not None:
            # Before the run: what it writes is trusted no more than what the other session read.
            self._agent.sessions.go_on(self._session, self._after)
            self._after = None
        try:
            work = built.run(
                said,
                message_history=self._history,
                conversation_id=self._session,
                event_stream_handler=self._stream,
            )
            result = self._agent.answered(work)
        except KeyboardInterrupt:
            self._terminal.say("Interrupted: this turn is not kept.")
            return
        except ScrubjayError as error:
            self._terminal.say(error.message)
            return
        self._terminal.show("")
        self._history = trimmed(whole(result.all_messages()), self._most)
        keep(self._agent, self._session, result.new_messages(), self._terminal)

    async def _stream(self, _: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Print the answer while it comes."""
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    self._terminal.stream(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    self._terminal.stream(text)
                case _:
                    pass

    # -- commands within the conversation --------------------------------------------------

    def _command(self, name: str = "", words: str = "") -> None:
        known: dict[str, Callable[[str], None]] = {
            "memories": self._memories,
            "forget": self._forget,
            "brief": self._brief,
        }
        try:
            if (command := known.get(name)) is None:
                self._terminal.show(_HELP)
            else:
                command(words.strip())
        except ScrubjayError as error:
            self._terminal.say(f"{error.message} {error.hint}")

    def _memories(self, words: str) -> None:
        memory = self._agent.memory
        for told in [memory.recall(words)] if words else map(listed, memory.newest(limit=20)):
            self._terminal.show(told)

    def _forget(self, number: str) -> None:
        memory = self._agent.memory
        wanted = number.removeprefix("#")
        found = next((one for one in memory.present() if str(one.number) == wanted), None)
        if found is None:
            self._terminal.show(f"There is no memory {number or '(give its number)'}.")
            return
        shown = memory.jay.preview([found.id], copies=True)
        if shown.asks:
            self._terminal.show(f"This erases for good: {shown.in_words()}. yes or no?")
            if (self._terminal.ask() or "").strip().lower() not in ("y", "yes"):
                self._terminal.show("Nothing was erased.")
                return
        memory.jay.forget([found.id], copies=True, confirm=shown.token)
        if self._agent.sessions is not None:  # the model is told the history of messages
            self._history = self._agent.sessions.load(self._after or self._session)
        self._terminal.show(f"Forgotten (id={found.number}): {shown.in_words()}.")

    def _brief(self, _: str) -> None:
        self._terminal.show(self._agent.memory.jay.brief().markdown or "Nothing is remembered yet.")


def listed(one: Memory) -> str:
    """A memory as a line of a list."""
    label = f"[{MemoryType.of(one.kind)}:{category_of(one)}]"
    return f"#{one.number} {label} ({created_at(one)}) {one.content[:_PREVIEW]}"


def keep(
    agent: RoleAgent,
    session: str,
    messages: Sequence[ModelMessage],
    terminal: Terminal,
) -> None:
    """Store the messages of a turn; one line on stderr where that fails."""
    sessions = agent.sessions
    if sessions is not None and not sessions.save(session, messages):
        terminal.say("Warning: the session could not be saved; it will not be resumable.")


def report(done: Worked | None, terminal: Terminal) -> None:
    """Say what a consolidation did and cost."""
    if done is None or not (done.done or done.failed):
        return
    if done.stopped is Stopped.UNAVAILABLE:
        terminal.say("Not consolidated: the model is not available. The episodes wait.")
        return
    by = "rules" if not done.tokens_in else f"{done.tokens_in:,} + {done.tokens_out:,} tokens"
    terminal.say(f"Consolidated: {done.memories} new memories ({by}).")
