"""Settings: the only reader of the environment and of the configuration file.

A value comes from the first place that says something: an argument, the environment, the file,
the default. Which one it was is kept beside it, for `scrubjay config show`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrubjay.model.endpoints import ModelDialect
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.scope import Scope

MEGABYTE: Final = 1024 * 1024
PREFIX: Final = "SCRUBJAY_"
FILE: Final = "config.toml"
Plain = str | int | float | bool | None


class GivenBy(StrEnum):
    """Source of a value."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    ARGUMENT = "argument"


class EmbedderName(StrEnum):
    """Embedder that makes the vectors."""

    STATIC = "static"
    NONE = "none"
    OPENAI = "openai"
    ENCODER = "encoder"


class OnEmbedderChange(StrEnum):
    """Policy for vectors that another embedder made."""

    DEGRADE = "degrade"
    """They are ignored by the ranking until reindex."""
    RAISE = "raise"


class OpenAISettings(Struct, frozen=True, kw_only=True):
    """The endpoint of the embedder `openai`; the key itself is never in a file."""

    url: str = ""
    model: str = ""
    dimensions: int = 0
    shorten: bool = False
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r}, model={self.model!r})"


class ExtractionSettings(Struct, frozen=True, kw_only=True):
    """The model that reads turns, if one is named; its key is never in a file."""

    url: str = ""
    model: str = ""
    dialect: ModelDialect = ModelDialect.OPENAI
    daily_tokens: int = 0
    seconds: float = 30.0
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r}, model={self.model!r})"


class PostgresSettings(Struct, frozen=True, kw_only=True):
    """How a store in PostgreSQL is used."""

    connections: int = 20
    """Most connections of a process."""
    pooler: bool = False
    """Whether a pooler in transaction mode stands before it: statements are not prepared."""
    keep_seconds: float = 0.0
    """How long old key slots are kept where no standby is synchronous."""


class Value(Struct, frozen=True, kw_only=True):
    """One value, as `config show` prints it."""

    key: str
    value: Plain
    source: GivenBy
    where: str = ""
    """The file, the variable or the argument; nothing for a default."""


class Settings(Struct, frozen=True, kw_only=True):
    """Settings: folders, scope, timeouts and limits."""

    data: Path
    keys: Path
    scope: str = "local/default"
    """Default scope of commands."""
    store: str = ""
    """URL of the database that keeps the rows; nothing for files in the data folder."""
    shards: str = ""
    """More databases as name=URL, with blanks between them; `store` has the catalog of all."""
    blobs: str = ""
    """URL of the object store for index segments and long texts; nothing for the data folder."""
    root_key: str = ""
    """URL of the key service that keeps the root keys; nothing for a file in the keys folder."""
    region: str = ""
    """Label of the region that rows, blobs and keys must have; nothing for any."""
    pkcs11_pin: str | None = None
    """PIN of the token of a PKCS#11 key service."""
    postgres: PostgresSettings = PostgresSettings()
    lock_seconds: float = 30.0
    """Lock timeout of a writer, after which it raises Busy."""
    ballast_bytes: int = 4 * MEGABYTE
    """Disk space reserved so that erasure works on a full disk."""
    scope_memories: int = 0
    """Most memories of a scope; 0 for any number."""
    scope_megabytes: int = 0
    """Most megabytes of a scope on the disk; 0 for any number."""
    tenant_scopes: int = 0
    """Most scopes of a tenant; 0 for any number."""
    shelf_bytes: int = 256 * MEGABYTE
    """Memory budget of the open indexes."""
    idle_seconds: float = 3600.0
    """How long an unused scope stays open."""
    drop_days: int = 30
    """Days until the empty row of an erased memory is dropped."""
    superseded_days: int = 30
    """Days until purge deletes superseded memories."""
    root_days: int = 0
    """Days after which a root key is replaced; 0 for only when asked."""
    root_keep_days: int = 0
    """Days for which a past root key is kept."""
    recipients: str = ""
    """Endpoints that are told of each rectification, erasure and restriction."""
    consent: bool = False
    """Whether patterns, and what is sent to a model or an embedder, wait for the person's yes."""
    min_similarity: float = -1.0
    """Least similarity of personal memory by default; below 0 for that of the embedder."""
    embedder: EmbedderName = EmbedderName.STATIC
    on_embedder_change: OnEmbedderChange = OnEmbedderChange.DEGRADE
    openai: OpenAISettings = OpenAISettings()
    extraction: ExtractionSettings = ExtractionSettings()
    passphrase: str | None = None
    user_passphrase: str | None = None
    """What opens the scopes of the user of this process."""
    values: tuple[Value, ...] = ()
    """Every value with its source."""

    @property
    def unused(self) -> bool:
        """Whether nothing was ever stored: there is no data folder, and no database is named."""
        return not self.store and not self.data.exists()

    def __repr__(self) -> str:
        return f"Settings(data={str(self.data)!r}, keys={str(self.keys)!r})"


# -- the keys of the file ------------------------------------------------------------------


class SettingField(Struct, frozen=True):
    """One key of the file, and the environment variable that overrides it."""

    name: str
    """As in the file; with a dot, within a table."""
    default: Plain
    means: str
    type: Any = str
    least: float = 0
    most: float = 0
    """The limits of a number."""

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return PREFIX + self.name.replace(".", "_").upper()

    @property
    def wants(self) -> str:
        """Description of a valid value, as the end of a sentence."""
        if self.type in (int, float):
            kind = "a whole number" if self.type is int else "a number"
            return f"{kind} from {self.least:,} to {self.most:,}"
        named = {str: "a text", bool: "true or false", Scope: "owner or tenant/owner"}
        return named.get(self.type) or f"one of {', '.join(self.type)}"

    def check(self, value: Any, *, strict: bool = True) -> Plain:
        """The value if it is a good one, else ValueError; not strict takes the text of one."""
        if self.type is Scope:
            return str(Scope.parse(value))
        try:
            found = msgspec.convert(value, self.type, strict=strict)
        except msgspec.ValidationError as error:
            raise ValueError(value) from error
        if self.type in (int, float) and not self.least <= found <= self.most:
            raise ValueError(value)
        return found.value if isinstance(found, StrEnum) else found


KEYS: Final = (
    SettingField("scope", "local/default", "the scope of a command that names none", Scope),
    SettingField("store", None, "the database: postgres://user@host/name; files without it"),
    SettingField("shards", None, "more databases: name=postgres://… name=postgres://…"),
    SettingField("blobs", None, "the object store: s3://bucket/prefix; files without it"),
    SettingField(
        "root_key", None,
        "the key service: kms://name or pkcs11:token=…;object=…; the keys folder without it",
    ),
    SettingField("region", None, "the region that rows, blobs and keys are labeled for, as in eu"),
    SettingField("postgres.connections", 20, "most connections of a process", int, 2, 1_000),
    SettingField("postgres.pooler", False, "a pooler in transaction mode is in between", bool),
    SettingField(
        "postgres.keep_seconds", 0.0, "how long old keys are kept without a synchronous standby",
        float, 0, 10**7,
    ),
    SettingField("embedder", "static", "what gives memories their vectors", EmbedderName),
    SettingField(
        "on_embedder_change", "degrade", "what to do with another one's vectors", OnEmbedderChange
    ),
    SettingField(
        "recipients", "", "who is told of erasures and the like: https addresses, by spaces"
    ),
    SettingField("consent", False, "derive patterns and send text only once it is allowed", bool),
    SettingField(
        "min_similarity", -1.0, "least cosine personal memory shows; -1: the embedder's", float,
        -1, 1,
    ),
    SettingField(
        "openai.url", None, "the endpoint with its version, as in https://api.example.com/v1"
    ),
    SettingField("openai.model", None, "the model to ask for"),
    SettingField(
        "openai.dimensions", 0, "numbers of a vector; 0: as many as the model gives", int, 0, 65_536
    ),
    SettingField("openai.shorten", False, "ask the endpoint for that many numbers", bool),
    SettingField(
        "openai.api_key_variable", None, "the environment variable that holds the API key"
    ),
    SettingField(
        "extraction.url", None, "the endpoint of the model that reads turns; none without it"
    ),
    SettingField("extraction.model", None, "the model to ask for"),
    SettingField("extraction.dialect", "openai", "how it is spoken to", ModelDialect),
    SettingField(
        "extraction.daily_tokens", 0, "tokens a scope may use in a day; 0: any number", int,
        0, 10**12,
    ),
    SettingField(
        "extraction.seconds", 30.0, "how long it may take over one turn", float, 1, 600
    ),
    SettingField(
        "scope_memories", 0, "most memories of a scope; 0: any number", int, 0, 10**9
    ),
    SettingField(
        "scope_megabytes", 0, "most megabytes of a scope on the disk; 0: any number", int, 0, 10**6
    ),
    SettingField("tenant_scopes", 0, "most scopes of a tenant; 0: any number", int, 0, 10**9),
    SettingField("shelf_megabytes", 256, "memory for open indexes", int, 1, 1024 * 1024),
    SettingField("idle_seconds", 3600.0, "how long an unused scope stays open", float, 1, 10**9),
    SettingField("lock_seconds", 30.0, "how long a verb waits for others, in all", float, 0, 3_600),
    SettingField(
        "ballast_megabytes", 4, "space in reserve for erasure on a full disk", int, 0, 1024
    ),
    SettingField(
        "drop_days", 30, "how long the empty row of an erased memory stays", int, 0, 36_500
    ),
    SettingField(
        "superseded_days", 30, "how long purge leaves what was superseded", int, 0, 36_500
    ),
    SettingField(
        "root_days", 0, "days until the root key is replaced; 0: only when asked", int, 0, 36_500
    ),
    SettingField(
        "root_keep_days", 0, "how long a past root key is kept after its rotation", int, 0, 36_500
    ),
)  # fmt: skip


# -- reading -------------------------------------------------------------------------------


def read(
    environment: Mapping[str, str] | None = None, *, home: str | os.PathLike[str] | None = None
) -> Settings:
    """The settings of the file and the environment; `home` goes before `$SCRUBJAY_HOME`.

    `$SCRUBJAY_HOME` holds the data and, in a folder of its own, the keys. Without it the data is
    in the XDG data folder and the keys are apart from it, in the XDG configuration folder.
    """
    env = os.environ if environment is None else environment
    places = {value.key: value for value in _places(env, home)}
    config = Path(str(places["config"].value))
    given = _document(config, required=places["config"].where == f"{PREFIX}CONFIG")
    found = {key.name: _find(key, env, given, config) for key in KEYS}
    values: dict[str, Any] = {name: one.value for name, one in found.items()}
    _check_together(values, config)
    variable = values["openai.api_key_variable"]
    tree: dict[str, Any] = {
        "data": Path(str(places["data"].value)),
        "keys": Path(str(places["keys"].value)),
        "ballast_bytes": values["ballast_megabytes"] * MEGABYTE,
        "shelf_bytes": values["shelf_megabytes"] * MEGABYTE,
        "openai": {"api_key": env.get(variable) if variable else None},
        "postgres": {},
        "extraction": {"api_key": env.get(f"{PREFIX}EXTRACTION_API_KEY")},
        "passphrase": env.get(f"{PREFIX}PASSPHRASE"),
        "pkcs11_pin": env.get(f"{PREFIX}PKCS11_PIN"),
        "user_passphrase": env.get(f"{PREFIX}USER_PASSPHRASE"),
        "values": (*places.values(), *found.values()),
    }
    for name, value in values.items():
        table, _, key = name.rpartition(".")
        if value is not None:
            (tree[table] if table else tree)[key] = value
    return msgspec.convert(tree, Settings)


def at_home(home: Path, *, passphrase: str | None = None) -> Settings:
    """The settings for one folder that holds everything; no file is read."""
    return Settings(data=home / "data", keys=home / "keys", passphrase=passphrase)


def _places(env: Mapping[str, str], home: str | os.PathLike[str] | None) -> Iterator[Value]:
    user = Path(env.get("HOME") or Path.home())
    named = home or env.get(f"{PREFIX}HOME")
    if named:
        source = GivenBy.ARGUMENT if home else GivenBy.ENVIRONMENT
        where = "home" if home else f"{PREFIX}HOME"
        base = Path(named)
        for key, folder in (("data", "data"), ("keys", "keys")):
            yield Value(key=key, value=str(base / folder), source=source, where=where)
        config = Value(key="config", value=str(base / FILE), source=source, where=where)
    else:
        data = _xdg(env, "XDG_DATA_HOME", user / ".local" / "share")
        yield replace(data, key="data", value=str(Path(str(data.value)) / "scrubjay"))
        xdg = _xdg(env, "XDG_CONFIG_HOME", user / ".config")
        own = Path(str(xdg.value)) / "scrubjay"
        yield replace(xdg, key="keys", value=str(own / "keys"))
        config = replace(xdg, key="config", value=str(own / FILE))
    if file := env.get(f"{PREFIX}CONFIG"):
        config = replace(config, value=file, source=GivenBy.ENVIRONMENT, where=f"{PREFIX}CONFIG")
    yield config


def _xdg(env: Mapping[str, str], variable: str, default: Path) -> Value:
    if folder := env.get(variable):
        return Value(key="", value=folder, source=GivenBy.ENVIRONMENT, where=variable)
    return Value(key="", value=str(default), source=GivenBy.DEFAULT)


def _document(file: Path, *, required: bool) -> dict[str, Any]:
    """The values of the file by dotted key; a key that is not one of ours is refused."""
    try:
        text = file.read_text()
    except FileNotFoundError as error:
        if not required:
            return {}
        raise NotFound(
            f"There is no configuration file {file}.", hint="Correct SCRUBJAY_CONFIG, or unset it."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The configuration file {file} cannot be read.") from error
    import tomllib  # most installations have no file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{file}: {error}.", hint="Correct the TOML of the file.") from error
    given: dict[str, Any] = {}
    for name, value in document.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        given.update({f"{name}.{sub}".rstrip("."): one for sub, one in inner})
    known = {key.name for key in KEYS}
    if unknown := sorted(set(given) - known):
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], known, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise InvalidRequest(
            f"{file}: there is no key {unknown[0]}{meant}",
            hint=f"The keys are: {', '.join(sorted(known))}.",
        )
    return given


def _find(key: SettingField, env: Mapping[str, str], given: Mapping[str, Any], file: Path) -> Value:
    """The value of a key: of its variable, of the file, or the default."""
    text = env.get(key.variable)
    place = key.variable if text else f"{file}: {key.name}"
    try:
        if text:
            value, source = key.check(text, strict=False), GivenBy.ENVIRONMENT
            return Value(key=key.name, value=value, source=source, where=key.variable)
        if key.name in given:
            value = key.check(given[key.name])
            return Value(key=key.name, value=value, source=GivenBy.FILE, where=str(file))
    except (ValueError, InvalidRequest) as error:
        raise InvalidRequest(
            f"{place} must be {key.wants}.", hint="Correct it; `scrubjay config show` lists all."
        ) from error
    return Value(key=key.name, value=key.default, source=GivenBy.DEFAULT)


def _check_together(values: Mapping[str, Any], file: Path) -> None:
    """Refuse an embedder that lacks its endpoint, and half a model to read turns."""
    needs = ["openai.url", "openai.model", *["openai.dimensions"] * bool(values["openai.shorten"])]
    missing = [key for key in needs if not values[key]]
    if values["embedder"] == EmbedderName.OPENAI and missing:
        raise InvalidRequest(
            f"{file}: the embedder openai needs {missing[0]}.",
            hint="Add it, or choose the embedder static.",
        )
    if bool(values["extraction.url"]) != bool(values["extraction.model"]):
        raise InvalidRequest(
            f"{file}: extraction needs both url and model.", hint="Add the other, or remove both."
        )


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """An environment variable of a foreign convention; None if it is not set or empty."""
    return (os.environ if environment is None else environment).get(name) or None
