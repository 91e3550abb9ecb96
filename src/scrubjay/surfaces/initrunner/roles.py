"""Role files: an agent, its model and its memory in YAML, as InitRunner writes them.

`spec.memory` and `spec.model` are read in full, and an unknown field in them is an error that names
its line. Every other section is for InitRunner alone: it is listed and left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
import yaml
from msgspec import Meta, Struct
from msgspec.structs import replace

from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.jobs import BATCH
from scrubjay.model.memory import Kind
from scrubjay.model.retention import NUMBER_LIMIT
from scrubjay.model.scope import Scope

TENANT: Final = "agents"
_AGENT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]")
_MEMORIES: Final = 1_000
_FOLDER: Final = "~/.initrunner/memory"
_USED: Final = ("role", "model", "memory")
_NOT_IN_A_SCOPE: Final = re.compile(r"[^A-Za-z0-9._@-]+")
_Cap = Annotated[int, Meta(ge=1, le=NUMBER_LIMIT)]
_Many = Annotated[int, Meta(ge=1, le=10_000)]
Value = TypeVar("Value")


class MemoryType(StrEnum):
    """Type of a memory, as agents call it."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"

    @property
    def kind(self) -> Kind:
        """The kind that a memory of this type is written with."""
        return _KINDS[self]

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that are of this type; what is neither episode nor procedure is semantic."""
        others = {_KINDS[MemoryType.EPISODIC], _KINDS[MemoryType.PROCEDURAL]}
        return frozenset(Kind) - others if self is MemoryType.SEMANTIC else frozenset({self.kind})

    @classmethod
    def of(cls, kind: Kind) -> MemoryType:
        """The type of a kind."""
        return next(one for one in cls if kind in one.kinds)


_KINDS: Final = {
    MemoryType.EPISODIC: Kind.EPISODE,
    MemoryType.SEMANTIC: Kind.FACT,
    MemoryType.PROCEDURAL: Kind.PROCEDURE,
}


class Interval(StrEnum):
    """When episodes are consolidated."""

    AFTER_SESSION = "after_session"
    AFTER_AUTONOMOUS = "after_autonomous"
    MANUAL = "manual"


# -- the sections that are read ------------------------------------------------------------------


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of which every field is known."""


class EmbeddingConfig(_Section, frozen=True):
    """Which model embeds memories; see `embeddings.resolve` for what an empty field means."""

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""


class EpisodicConfig(_Section, frozen=True):
    """Episodes: what happened."""

    enabled: bool = True
    max_episodes: _Cap = 500


class SemanticConfig(_Section, frozen=True):
    """Facts."""

    enabled: bool = True
    max_memories: _Cap = _MEMORIES


class ProceduralConfig(_Section, frozen=True):
    """Procedures: how something is to be done."""

    enabled: bool = True
    max_procedures: _Cap = 100


class ConsolidationConfig(_Section, frozen=True):
    """When and by which model episodes become facts."""

    enabled: bool = True
    interval: Interval = Interval.AFTER_SESSION
    max_episodes_per_run: Annotated[int, Meta(ge=1, le=200)] = BATCH
    model_override: str | None = None


class MemoryConfig(_Section, frozen=True):
    """The section `spec.memory`."""

    max_sessions: _Many = 10
    max_memories: _Cap = _MEMORIES
    """Deprecated; counts for `semantic.max_memories` where that is not set."""
    max_resume_messages: _Many = 20
    store_backend: Literal["sqlite-vec"] = "sqlite-vec"
    store_path: str | None = None
    embeddings: EmbeddingConfig = EmbeddingConfig()
    episodic: EpisodicConfig = EpisodicConfig()
    semantic: SemanticConfig = SemanticConfig()
    procedural: ProceduralConfig = ProceduralConfig()
    consolidation: ConsolidationConfig = ConsolidationConfig()

    def enabled(self, type_: MemoryType) -> bool:
        """Whether memories of a type are written."""
        return {
            MemoryType.EPISODIC: self.episodic.enabled,
            MemoryType.SEMANTIC: self.semantic.enabled,
            MemoryType.PROCEDURAL: self.procedural.enabled,
        }[type_]

    @property
    def caps(self) -> Mapping[MemoryType, int]:
        """How many memories of each type are kept."""
        facts = self.semantic.max_memories
        return {
            MemoryType.EPISODIC: self.episodic.max_episodes,
            MemoryType.SEMANTIC: self.max_memories if facts == _MEMORIES else facts,
            MemoryType.PROCEDURAL: self.procedural.max_procedures,
        }


class ModelConfig(_Section, frozen=True):
    """The section `spec.model`."""

    provider: str
    name: str
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=128_000)] | None = None


class SharedMemory(_Section, frozen=True):
    """A store that several agents use, and its cap."""

    enabled: bool = False
    store_path: str | None = None
    store_backend: Literal["sqlite-vec"] = "sqlite-vec"
    max_memories: _Cap = _MEMORIES


class Delegate(Struct, frozen=True, kw_only=True):
    """An agent that another one may hand a task to, and the memory they share."""

    name: str
    role_file: Path
    description: str = ""
    shared: SharedMemory | None = None
    max_depth: int = 3


class Role(Struct, frozen=True, kw_only=True):
    """An agent, as its file describes it."""

    path: Path
    name: str
    prompt: str = ""
    model: ModelConfig
    memory: MemoryConfig | None = None
    delegates: tuple[Delegate, ...] = ()
    ignored: tuple[str, ...] = ()
    """Sections of the file that only InitRunner knows."""

    @property
    def store_path(self) -> Path | None:
        """The path of the database that InitRunner would use, made absolute; None by default."""
        named = None if self.memory is None else self.memory.store_path
        return None if named is None else _absolute(named)

    @property
    def default_path(self) -> Path:
        """The path of the database that InitRunner uses where none is named."""
        return _absolute(f"{_FOLDER}/{self.name}.db")

    @property
    def scope(self) -> Scope:
        """The scope of its memory: its name, or one for each path of a store."""
        if (path := self.store_path) is None:
            return Scope(TENANT, self.name)
        place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        name = _NOT_IN_A_SCOPE.sub("-", path.stem).strip("._@-")[:100]
        return Scope(TENANT, f"{name or 'store'}-{place}")

    def sharing(self, shared: SharedMemory, default: str) -> Role:
        """The role with its memory in a store that others use, too."""
        own = self.memory or MemoryConfig()
        path = shared.store_path or default
        semantic = replace(own.semantic, max_memories=shared.max_memories)
        most = shared.max_memories
        return replace(
            self, memory=replace(own, store_path=path, max_memories=most, semantic=semantic)
        )


def _absolute(path: str) -> Path:
    if not path.strip():
        raise InvalidRequest("spec.memory.store_path: it is empty.", hint="Leave it out.")
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidRequest(f"spec.memory.store_path: {path!r} is no path: {error}.") from error


def check_name(name: str) -> None:
    """InvalidRequest unless an agent can have this name."""
    if not _AGENT_NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r} is no name of an agent",
            hint="Use two or more of a-z, 0-9 and -, which neither begins nor ends it.",
        )


def check_config(config: MemoryConfig | None) -> MemoryConfig:
    """The config within its limits, which constructing one does not check; InvalidRequest if not.

    None is the default one.
    """
    if config is None:
        return MemoryConfig()
    if not isinstance(config, MemoryConfig):
        raise InvalidRequest("config: it must be a MemoryConfig.")
    try:
        return msgspec.convert(msgspec.to_builtins(config), MemoryConfig)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"config: {error}.") from error


# -- reading -------------------------------------------------------------------------------------


def load(path: Path) -> Role:
    """The role in a file; NotFound or InvalidRequest with the line of what is wrong."""
    document = _Document(path)
    document.expect("kind", "Agent")
    name = document.read(("metadata", "name"), str)
    try:
        check_name(name)
    except InvalidRequest as error:
        raise document.wrong(("metadata", "name"), f"metadata.name: {error.message}") from error
    return Role(
        path=path,
        name=name,
        prompt=document.read(("spec", "role"), str),
        model=document.read(("spec", "model"), ModelConfig),
        memory=document.read(("spec", "memory"), MemoryConfig | None, None),
        delegates=_told_apart(document, list(_delegates(document))),
        ignored=tuple(f"spec.{one}" for one in document.names(("spec",)) if one not in _USED),
    )


def load_service(path: Path, service: str) -> Role:
    """The role of one service of a compose file, with the memory that all services share."""
    document = _Document(path)
    document.expect("kind", "Compose")
    name = document.read(("metadata", "name"), str)
    services = document.names(("spec", "services"))
    if service not in services:
        raise NotFound(
            f"{path} has no service {service}.", hint=f"It has: {', '.join(services) or 'none'}."
        )
    role = load(path.parent / document.read(("spec", "services", service, "role"), str))
    shared = document.read(("spec", "shared_memory"), SharedMemory, SharedMemory())
    default = f"{_FOLDER}/{name}-shared.db"
    return role.sharing(shared, default) if shared.enabled else role


def _told_apart(document: _Document, found: Sequence[Delegate]) -> tuple[Delegate, ...]:
    """The delegates; InvalidRequest if the tools of two would have one name."""
    names = [one.name.replace("-", "_") for one in found]
    if twice := [one.name for one, name in zip(found, names, strict=True) if names.count(name) > 1]:
        raise InvalidRequest(
            f"{document.path}: two delegates would be one tool: {' and '.join(twice)}.",
            hint="Name them differently; - and _ are the same in a tool's name.",
        )
    return tuple(found)


def _delegates(document: _Document) -> Iterator[Delegate]:
    """The agents of the delegate tools; those on other machines are InitRunner's."""
    tools = document.read(("spec", "tools"), list[Any], [])
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type") != "delegate":
            continue
        place = ("spec", "tools", str(number))
        if document.read((*place, "mode"), str, "inline") != "inline":
            continue
        shared = document.read((*place, "shared_memory"), SharedMemory | None, None)
        if shared is not None:
            document.read((*place, "shared_memory", "store_path"), str)  # nothing says which else
        for at, _ in enumerate(document.read((*place, "agents"), list[Any])):
            agent = (*place, "agents", str(at))
            yield Delegate(
                name=document.read((*agent, "name"), str),
                role_file=document.path.parent / document.read((*agent, "role_file"), str),
                description=document.read((*agent, "description"), str, ""),
                shared=shared,
                max_depth=document.read((*place, "max_depth"), int, 3),
            )


class _Document:
    """A YAML file: its values, and the line of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open(encoding="utf-8") as file:
                loader = yaml.SafeLoader(file)
                try:
                    node = loader.get_single_node()
                    self._root: Any = None if node is None else loader.construct_document(node)
                finally:
                    loader.dispose()
        except FileNotFoundError as error:
            raise NotFound(f"There is no file {path}.", hint="Check the path.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"{path} cannot be read.") from error
        # What is no date or number after all is a ValueError of the constructor.
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            line = "" if mark is None else f":{mark.line + 1}"
            why = getattr(error, "problem", None) or "it is not YAML"
            raise InvalidRequest(f"{path}{line}: {why}.") from error
        self._node = node
        if not isinstance(self._root, dict):
            raise InvalidRequest(f"{path} is not a role file.")

    def names(self, place: Sequence[str]) -> list[str]:
        """The names within a section."""
        found = self._value(place)
        return [str(name) for name in found] if isinstance(found, dict) else []

    def expect(self, name: str, value: str) -> None:
        """InvalidRequest unless the file is of this kind."""
        if self._root.get(name) != value:
            raise self.wrong((name,), f"`{name}` must be {value}")

    def read(self, place: Sequence[str], type_: Any, *default: Value) -> Any:
        """The value at a place, of this type; the default if there is none."""
        found = self._value(place)
        if found is None and default:
            return default[0]
        try:
            return msgspec.convert(found, type_)
        except msgspec.ValidationError as error:
            why, _, inner = str(error).partition(" - at `$")
            names = [one for one in re.split(r"[.\[\]]", inner.rstrip("`")) if one]
            if unknown := re.search(r"unknown field `(.+)`", why):
                names.append(unknown[1])
                why = f"there is no field `{unknown[1]}`"
            elif found is None:
                why = "it is missing"
            whole = [*place, *names]
            raise self.wrong(whole, f"{'.'.join(whole)}: {why}") from error

    def _value(self, place: Sequence[str]) -> Any:
        found = self._root
        for name in place:
            match found:
                case dict():
                    found = found.get(name)
                case list() if name.isdecimal() and int(name) < len(found):
                    found = found[int(name)]
                case _:
                    return None
        return found

    def wrong(self, place: Sequence[str], why: str) -> InvalidRequest:
        """The error that names the line of a place."""
        return InvalidRequest(
            f"{self.path}:{self._line(place)}: {why}.", hint="docs/agents.md lists every field."
        )

    def _line(self, place: Sequence[str]) -> int:
        """The line of a value, or of the innermost section around where it should be."""
        node, line = self._node, 1
        for name in place:
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in node.value if pair[0].value == name), None)
                if pair is None:
                    break
                line, node = pair[0].start_mark.line + 1, pair[1]
            elif isinstance(node, yaml.SequenceNode) and name.isdecimal():
                node = node.value[int(name)]
                line = node.start_mark.line + 1
            else:
                break
        return line


# -- the role file of scrubjay init ---------------------------------------------------------------


_MODELS: Final = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-flash",
    "ollama": "llama3.2",
}
PROVIDERS: Final = tuple(_MODELS)
_MEMORY: Final = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: {name}
  description: Agent with long-term memory
  tags:
    - memory
spec:
  role: |
    You are a helpful assistant with long-term memory.
    Use the remember() tool to save what is worth knowing later.
    Use the recall() tool to search your memories before you answer.
    Use the list_memories() tool to look at the newest ones.
  model:
    provider: {provider}
    name: {model}
  memory:
    max_sessions: 10
    max_resume_messages: 20
    semantic:
      max_memories: 1000
    episodic:
      max_episodes: 500
    procedural:
      max_procedures: 100
    consolidation:
      enabled: true
      interval: after_session
"""
TEMPLATES: Final = {"memory": _MEMORY}


def role_file(name: str, *, template: str = "memory", provider: str = "openai") -> str:
    """A role file by a template; InvalidRequest if no agent can have that name."""
    check_name(name)
    return TEMPLATES[template].format(name=name, provider=provider, model=_MODELS[provider])
