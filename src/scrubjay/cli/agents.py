"""Commands for agents on PydanticAI: init, chat, run, and memory with its own commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from scrubjay import files
from scrubjay import settings as reading
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import confirm_replace, interactive, settings
from scrubjay.cli.parser import YES, Option, command
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor

if TYPE_CHECKING:
    from io import TextIOWrapper

    from scrubjay.surfaces.initrunner.role_agent import RoleAgent
    from scrubjay.surfaces.initrunner.roles import MemoryType, Role

_NO_STORE: Final = "No memory store found."
_ROLE: Final = Option("ROLE", "Role file of the agent.", Path)
_NEEDED: Final = Option("ROLE", "Role file of the agent.", Path, required=True)
_TYPE: Final = Option("--type", "Only this type: episodic, semantic or procedural.", str)
_COMPOSE: Final = (
    Option("--compose", "Compose file, whose service is used in place of a role file.", Path),
    Option("--service", "Service of the compose file.", str, metavar="NAME"),
)


class _Terminal:
    """The terminal a person sits at; without one, the lines of stdin."""

    def ask(self) -> str | None:
        """The next line that is typed; None at its end and at an interrupt."""
        try:
            return input("> ")
        except (EOFError, KeyboardInterrupt):
            render.line("")
            return None

    def show(self, text: str) -> None:
        """Print lines, without escape sequences."""
        for line in text.split("\n"):
            render.line(render.plain(line))
        sys.stdout.flush()

    def stream(self, text: str) -> None:
        """Print a piece of a line at once."""
        sys.stdout.write("\n".join(map(render.plain, text.split("\n"))))
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Print a line on stderr."""
        render.say(text)


# -- what the commands work on ---------------------------------------------------------------------


def _role(path: Path | None, compose: Path | None = None, service: str | None = None) -> Role:
    """The role of a file or of a service; what only InitRunner reads of it is said once."""
    _check_installed()
    from scrubjay.surfaces.initrunner import roles

    if compose is not None and service is not None and path is None:
        found = roles.load_service(compose, service)
    elif path is not None and compose is None and service is None:
        found = roles.load(path)
    else:
        raise InvalidRequest(
            "Name a role file, or a compose file and its service.",
            hint="As in `scrubjay chat role.yaml`, or `… --compose FILE --service NAME`.",
        )
    if found.ignored:
        render.say(f"{found.path}: not used by scrubjay: {', '.join(found.ignored)}.")
    return found


def _check_installed() -> None:
    try:
        # Its banner on the first run of a process would stand in the middle of an answer.
        vars(import_module("pydantic_ai"))["BANNER_ENABLED"] = False
        import_module("yaml")
    except ImportError as error:
        raise InvalidRequest(
            "What runs agents is not installed.", hint="pip install 'scrubjay[agents]' brings it."
        ) from error


@contextmanager
def _opened(role: Role, **how: Any) -> Iterator[RoleAgent]:
    from scrubjay.surfaces.initrunner import role_agent

    with role_agent.opened(role, settings(), reading.variable, **how) as agent:
        yield agent


def _checked(agent: RoleAgent) -> None:
    """Offer to embed the memories anew if another model did; the error where nobody can be asked.

    A missing key is no hindrance: only what has to embed needs it.
    """
    from scrubjay.model.errors import Changed
    from scrubjay.surfaces.initrunner.embeddings import EmbeddingKeyMissing

    if agent.embedded is None:
        return
    try:
        agent.embedded.check()
    except EmbeddingKeyMissing as error:
        render.say(f"{error.message} {error.hint}")
    except Changed as error:
        if not interactive():
            raise
        render.say(error.message)
        if not _asked("Embed them anew with the present model? [y/N]: "):
            raise
        _reembed(agent)


def _asked(question: str) -> bool:
    """Whether the person answers a question on stderr with yes."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _reembed(agent: RoleAgent) -> None:
    assert agent.embedded is not None
    render.line(f"Embedded {agent.embedded.renew()} memories.")


def _wrong(message: str) -> int:
    """An error in the words of InitRunner."""
    sys.stderr.write(f"Error: {render.plain(message)}\n")
    return Exit.FAILURE


def _memory_command(
    name: str, *options: Option, importing: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a command on the memory of a role: the function gets its agent first."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        def perform(role: Path, *, type: str | None = None, **given: Any) -> Any:
            found = _role(role)
            if found.memory is None:
                return _wrong("No memory config in role definition.")
            from scrubjay.surfaces.initrunner.roles import MemoryType

            if type is not None:
                if type not in tuple(MemoryType):
                    return _wrong(f"Invalid type '{type}'. Use: episodic, semantic, procedural")
                given["type_"] = MemoryType(type)
            with _opened(found, importing=importing, actor=Actor.USER) as agent:
                return function(agent, **given)

        perform.__doc__ = function.__doc__
        command(name, _NEEDED, *options)(perform)
        return function

    return declare


# -- agents ----------------------------------------------------------------------------------------


@command(
    "init",
    Option("--name", "Name of the agent: a-z, 0-9 and -.", str, required=True),
    Option("--template", "Template: memory.", str, default="memory"),
    Option("--provider", "Provider of its model.", str, default="openai"),
    Option("--output -o", "File to write.", Path, default="role.yaml"),
    YES,
)
def init(
    *,
    name: str,
    template: str = "memory",
    provider: str = "openai",
    output: Path = Path("role.yaml"),
    yes: bool = False,
) -> None:
    """Write a role file: an agent with a memory.

    Example: scrubjay init --name assistant --template memory
    """
    _check_installed()
    from scrubjay.surfaces.initrunner.roles import PROVIDERS, TEMPLATES, role_file

    if template not in TEMPLATES or provider not in PROVIDERS:
        raise InvalidRequest(
            f"There is no template {template} for {provider}.",
            hint=f"Templates: {', '.join(TEMPLATES)}. Providers: {', '.join(PROVIDERS)}.",
        )
    text = role_file(name, template=template, provider=provider)
    confirm_replace(output, yes=yes)
    files.write(output, text.encode())
    _role(output)
    render.line(f"Created {output}.")
    render.say(f"Talk to it: scrubjay chat {output}")


@command(
    "chat",
    _ROLE,
    Option("--resume", "Go on where the latest session ended."),
    Option("--session", "Id of the session to continue; unknown, it is begun.", str),
    *_COMPOSE,
)
def chat(
    role: Path | None = None,
    *,
    resume: bool = False,
    session: str | None = None,
    compose: Path | None = None,
    service: str | None = None,
) -> None:
    """Talk to an agent: its session is stored after every turn. /memories, /forget and /brief work.

    Example: scrubjay chat role.yaml --resume
    """
    found = _role(role, compose, service)
    from scrubjay.surfaces.initrunner.chat import Chat

    # A byte that is no text would end the conversation, or the request to the model.
    cast("TextIOWrapper", sys.stdin).reconfigure(errors="replace")
    if interactive():
        with suppress(ImportError):
            import_module("readline")  # lines can be edited and repeated; they are kept nowhere
    with _opened(found) as agent:
        _checked(agent)
        conversation = Chat(agent, _Terminal())
        if resume or session is not None:
            conversation.resume(session)
        conversation.run()


@command(
    "run",
    _ROLE,
    Option("--task", "What the agent is to do.", str, required=True),
    Option(
        "--max-turns", "Turns after which it is stopped.", int, default="10", least=1, most=1000
    ),
    Option("--trigger", "Run once for a trigger of this type, such as cron.", str, metavar="TYPE"),
    *_COMPOSE,
)
def run(
    role: Path | None = None,
    *,
    task: str,
    max_turns: int = 10,
    trigger: str | None = None,
    compose: Path | None = None,
    service: str | None = None,
) -> int:
    """Let an agent work on a task by itself; what it did is kept as an episode.

    Example: scrubjay run role.yaml --task "Check the backups and say what is missing"
    """
    if not task.strip():
        raise InvalidRequest("The task is empty.", hint="Say what the agent is to do.")
    found = _role(role, compose, service)
    from scrubjay.surfaces.initrunner import unattended

    with _opened(found) as agent:
        _checked(agent)
        if trigger is not None:
            unattended.triggered(agent, task, trigger, _Terminal())
            return Exit.OK
        status = unattended.work_on(agent, task, _Terminal(), most=max_turns)
    return Exit.OK if status == "completed" else Exit.FAILURE


# -- memory ----------------------------------------------------------------------------------------


@_memory_command(
    "memory list",
    _TYPE,
    Option("--category", "Only this category.", str),
    Option("--limit -n", "Maximum number of memories.", int, default="20", least=1),
)
def list_(
    agent: RoleAgent,
    *,
    type_: MemoryType | None = None,
    category: str | None = None,
    limit: int = 20,
) -> None:
    """List the memories of an agent, newest first.

    Example: scrubjay memory list role.yaml --type procedural
    """
    from scrubjay.surfaces.initrunner.chat import listed

    if not (found := agent.memory.newest(limit=limit, category=category, type_=type_)):
        render.line("No memories found.")
        return
    for one in found:
        render.line(render.plain(listed(one)).replace("\n", " "))
    render.line(f"\n{len(found)} memories shown.")


@_memory_command(
    "memory clear",
    Option("--sessions-only", "Erase only sessions."),
    Option("--memories-only", "Erase only memories."),
    _TYPE,
    Option("--force", "Erase without asking."),
)
def clear(
    agent: RoleAgent,
    *,
    sessions_only: bool = False,
    memories_only: bool = False,
    type_: MemoryType | None = None,
    force: bool = False,
) -> int:
    """Erase the memory of an agent for good: sessions, memories, or one type of them.

    What was derived from an erased memory goes with it.

    Example: scrubjay memory clear role.yaml --type episodic
    """
    if sum((sessions_only, memories_only or type_ is not None)) > 1:
        raise InvalidRequest("Name what to erase once: sessions, memories, or a type of them.")
    what = "sessions" if sessions_only else "memories" if memories_only else "all memory data"
    what = f"{type_} memories" if type_ is not None else what
    name = agent.role.name
    if not force and not _asked(f"Clear {what} for {name}? [y/N]: "):
        render.line("Aborted.")
        return Exit.OK
    memory, sessions = agent.memory, agent.sessions
    assert sessions is not None
    if not memory.exists():
        render.line(_NO_STORE)
        return Exit.OK
    if not memories_only and type_ is None:
        sessions.clear()
    if not sessions_only:
        cleared = memory.clear(type_)
        if cleared.derived:
            render.say(f"Also {render.plural(cleared.derived, 'memory')} derived from them.")
    render.line(f"Cleared memory for {name}.")
    return Exit.OK


@_memory_command(
    "memory export",
    Option("--output -o", "File to write.", Path, default="memories.json"),
)
def export(agent: RoleAgent, *, output: Path = Path("memories.json")) -> None:
    """Export all memories of an agent as JSON, in the form of InitRunner.

    Example: scrubjay memory export role.yaml -o memories.json
    """
    from scrubjay.surfaces.initrunner import exports

    if not agent.memory.exists():
        render.line(_NO_STORE)
        return
    found = exports.export(agent.memory.present())
    files.write(output, json.dumps(found, indent=2).encode())
    render.line(f"Exported {len(found)} memories to {output}.")


@_memory_command(
    "memory import",
    Option("FILE", "Export as JSON, or a database of InitRunner 1.x.", Path, required=True),
    importing=True,
)
def load(agent: RoleAgent, *, file: Path) -> None:
    """Import memories: an export as JSON, or a database of InitRunner 1.x with its sessions.

    Example: scrubjay memory import role.yaml ~/.initrunner/memory/assistant.db
    """
    from scrubjay.surfaces.imports import initrunner
    from scrubjay.surfaces.initrunner import exports

    raw = files.read(file)
    _checked(agent)
    if not initrunner.is_database(raw):
        told, restored = exports.load(agent.memory, exports.read(raw)), 0
    else:
        found = initrunner.read(file)
        told = exports.load(agent.memory, found.records)
        sessions = agent.sessions
        assert sessions is not None
        restored = 0
        for one in sorted(found.sessions, key=lambda one: one.at):
            try:
                restored += sessions.restore(one.id, one.messages, one.at, agent=one.agent)
            except InvalidRequest as error:
                render.say(f"Left out: The session {one.id[:40]!r}: {error.message}")
        render.say(
            f"It had {found.dimensions:,} dimensions of {found.model or 'a model it does not name'}"
            "; its memories were embedded again."
        )
        for sentence in found.skipped:
            render.say(f"Left out: {sentence}")
    for sentence in told.skipped:
        render.say(f"Left out: {sentence}")
    if told.known:
        render.say(f"{render.plural(told.known, 'memory')} had been imported before.")
    if told.forgotten:
        number = render.plural(told.forgotten, "memory")
        render.say(f"{number} had been imported before and were forgotten: they stay so.")
    besides = f" and {render.plural(restored, 'session')}" if restored else ""
    render.line(f"Imported {told.memories} memories{besides} from {file}.")


@_memory_command("memory consolidate")
def consolidate(agent: RoleAgent) -> int:
    """Consolidate now: derive facts from episodes, whatever the schedule of the role file.

    Example: scrubjay memory consolidate role.yaml
    """
    from scrubjay.surfaces.initrunner.chat import report

    if not agent.memory.exists():
        render.line(_NO_STORE)
        return Exit.OK
    done = agent.consolidate()
    report(done, _Terminal())
    if done.stopped is not None or done.failed:
        return _wrong(
            "The model gave no usable answer; the episodes wait for another try. Check spec.model, "
            "its key and its endpoint."
        )
    if done.memories:
        render.line(f"Created {done.memories} semantic memories from episodic data.")
    else:
        render.line("No episodic memories to consolidate.")
    return Exit.OK


@_memory_command("memory reembed", importing=True)
def reembed(agent: RoleAgent) -> None:
    """Embed all memories of an agent again, with the model that its role file names now.

    Example: scrubjay memory reembed role.yaml
    """
    if not agent.memory.exists():
        render.line(_NO_STORE)
        return
    _reembed(agent)
