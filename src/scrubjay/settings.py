"""Settings: the only reader of the environment and of the configuration file.

A value comes from the first place that says something: an argument, the environment, the file,
the default. Which one it was is kept beside it, for `scrubjay config show`.
"""

# No annotations from __future__: they would be strings, and to read the keys out of strings costs
# every command three milliseconds.

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from scrubjay.model.endpoints import ModelDialect
from scrubjay.model.errors import InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.scope import Scope
from scrubjay.model.text import Days, doc

MEGABYTE: Final = 1024 * 1024
PREFIX: Final = "SCRUBJAY_"
FILE: Final = "config.toml"
_APART: Final = (
    *("HOME", "CONFIG", "PASSPHRASE", "USER_PASSPHRASE", "PKCS11_PIN", "EXTRACTION_API_KEY"),
    *("PLANE_TOKEN", "PLANE_PODS", "CARAPACE_SOCKET", "CARAPACE_CONFIG", "COMMAND", "URL", "KEY"),
)
"""Variables that are no keys of the file, those of programs beside us among them."""
_SECRETS: Final = {
    "passphrase": f"{PREFIX}PASSPHRASE",
    "user_passphrase": f"{PREFIX}USER_PASSPHRASE",
    "pkcs11_pin": f"{PREFIX}PKCS11_PIN",
    "extraction.api_key": f"{PREFIX}EXTRACTION_API_KEY",
}
"""Variables of what is never in a file, and never shown."""
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

    url: Annotated[
        str, doc("Base URL of the endpoint with its version: https://api.example.com/v1.")
    ] = ""
    model: Annotated[str, doc("Name of the embedding model.")] = ""
    dimensions: Annotated[
        int, doc("Dimensions of a vector; 0 for the model's own.", ge=0, le=65_536)
    ] = 0
    shorten: Annotated[bool, doc("Ask the endpoint for vectors of that many dimensions.")] = False
    api_key_variable: Annotated[str, doc("Environment variable that holds the API key.")] = ""
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r}, model={self.model!r})"


class ExtractionSettings(Struct, frozen=True, kw_only=True):
    """The model that reads turns, if one is named; its key is never in a file."""

    url: Annotated[str, doc("Base URL of the language model that reads turns; empty for none.")] = (
        ""
    )
    model: Annotated[str, doc("Name of the language model.")] = ""
    dialect: Annotated[ModelDialect, doc("API the endpoint speaks.")] = ModelDialect.OPENAI
    daily_tokens: Annotated[
        int, doc("Token budget of a scope and day; 0 for no limit.", ge=0, le=10**12)
    ] = 0
    seconds: Annotated[float, doc("Timeout of one turn, in seconds.", ge=1, le=600)] = 30.0
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r}, model={self.model!r})"


class PostgresSettings(Struct, frozen=True, kw_only=True):
    """How a store in PostgreSQL is used."""

    connections: Annotated[
        int, doc("Connection pool: maximum number per process.", ge=2, le=1_000)
    ] = 20
    pooler: Annotated[
        bool, doc("Whether a pooler in transaction mode, such as PgBouncer, is in between.")
    ] = False
    keep_seconds: Annotated[
        float,
        doc("Retention of replaced key slots while no standby is synchronous.", ge=0, le=10**7),
    ] = 0.0


class Value(Struct, frozen=True, kw_only=True):
    """One value, as `config show` prints it."""

    key: str
    value: Plain
    source: GivenBy
    where: str = ""
    """The file, the variable or the argument; nothing for a default."""


class Settings(Struct, frozen=True, kw_only=True):
    """Settings: folders, scope, timeouts and limits.

    A field with help is a key of the file and a variable of the environment, within its limits.
    """

    data: Path
    keys: Path
    scope: Annotated[
        str, doc("Default scope of commands: tenant/owner or owner.", extra={"type": Scope})
    ] = "local/default"
    store: Annotated[
        str, doc("Database URL: postgres://user@host/name; empty for SQLite files in the home.")
    ] = ""
    shards: Annotated[
        str,
        doc("Shards: further databases, as name=postgres://… with blanks between."),
    ] = ""
    blobs: Annotated[
        str,
        doc("Object store URL: s3://bucket/prefix; empty for files."),
    ] = ""
    root_key: Annotated[
        str,
        doc("Key service URL: kms://name or pkcs11:token=…;object=…; empty for the keys folder."),
    ] = ""
    region: Annotated[
        str, doc("Region label that rows, blobs and keys must have, such as eu; empty for any.")
    ] = ""
    pkcs11_pin: str | None = None
    """PIN of the token of a PKCS#11 key service."""
    postgres: PostgresSettings = PostgresSettings()
    embedder: Annotated[EmbedderName, doc("Embedder: what makes the vectors of memories.")] = (
        EmbedderName.STATIC
    )
    on_embedder_change: Annotated[
        OnEmbedderChange,
        doc("Policy for vectors of another embedder: search without them, or refuse."),
    ] = OnEmbedderChange.DEGRADE
    recipients: Annotated[
        str,
        doc("Webhooks: https URLs, with blanks between, told of corrections and erasures."),
    ] = ""
    consent: Annotated[
        bool,
        doc("Opt-in: nothing but facts is derived or sent before the person's consent."),
    ] = False
    min_similarity: Annotated[
        float,
        doc("Similarity threshold of personal memory; -1 for the embedder's own.", ge=-1, le=1),
    ] = -1.0
    openai: OpenAISettings = OpenAISettings()
    extraction: ExtractionSettings = ExtractionSettings()
    scope_memories: Annotated[
        int, doc("Quota: memories of a scope; 0 for no limit.", ge=0, le=10**9)
    ] = 0
    scope_megabytes: Annotated[
        int, doc("Quota: megabytes of a scope on the disk; 0 for no limit.", ge=0, le=10**6)
    ] = 0
    tenant_scopes: Annotated[
        int, doc("Quota: scopes of a tenant; 0 for no limit.", ge=0, le=10**9)
    ] = 0
    shelf_megabytes: Annotated[
        int, doc("Cache size: megabytes of memory for open indexes.", ge=1, le=1024**2)
    ] = 256
    idle_seconds: Annotated[
        float, doc("Idle timeout after which an open scope is closed.", ge=1, le=10**9)
    ] = 3600.0
    lock_seconds: Annotated[
        float, doc("Lock timeout of a verb, after which it fails as busy.", ge=0, le=3_600)
    ] = 30.0
    ballast_megabytes: Annotated[
        int, doc("Reserved megabytes, so that erasure works on a full disk.", ge=0, le=1024)
    ] = 4
    drop_days: Annotated[
        Days, doc("Retention: days until the empty row of an erased memory is dropped.")
    ] = 30
    superseded_days: Annotated[
        Days, doc("Retention: days until purge deletes superseded memories.")
    ] = 30
    root_days: Annotated[
        Days, doc("Key rotation: days until the root key is replaced; 0 for only on demand.")
    ] = 0
    root_keep_days: Annotated[
        Days, doc("Key rotation: days until a replaced root key is destroyed.")
    ] = 0
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
    type: Any
    default: Plain
    metas: tuple[Meta, ...]

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return PREFIX + self.name.replace(".", "_").upper()

    @property
    def means(self) -> str:
        """The help of the field."""
        return next(meta.description for meta in self.metas if meta.description)

    @property
    def wants(self) -> str:
        """Description of a valid value, as the end of a sentence."""
        for meta in self.metas:
            if meta.ge is not None:
                kind = "a whole number" if self.type is int else "a number"
                return f"{kind} from {meta.ge:,} to {meta.le:,}"
        named = {str: "a text", bool: "true or false", Scope: "owner or tenant/owner"}
        return named.get(self.type) or f"one of {', '.join(self.type)}"

    def check(self, value: Any, *, strict: bool = True) -> Plain:
        """The value if it is a good one, else ValueError; not strict takes the text of one."""
        if self.type is Scope:
            return str(Scope.parse(value))
        try:
            found = msgspec.convert(value, Annotated[(self.type, *self.metas)], strict=strict)
        except msgspec.ValidationError as error:
            raise ValueError(value) from error
        return found.value if isinstance(found, StrEnum) else cast(Plain, found)


def _keys(kind: type[Struct], table: str = "") -> Iterator[SettingField]:
    """A key for each field with help, and for those of its tables."""
    for field in structs.fields(kind):
        if isinstance(field.default, Struct):
            yield from _keys(type(field.default), f"{field.name}.")
        if get_origin(field.type) is Annotated:
            held, *metas = get_args(field.type)
            named = next((meta.extra["type"] for meta in metas if meta.extra), held)
            default = None if field.default == "" else field.default
            yield SettingField(f"{table}{field.name}", named, default, tuple(metas))


KEYS: Final = tuple(_keys(Settings))


# -- reading -------------------------------------------------------------------------------


def read(
    environment: Mapping[str, str] | None = None, *, home: str | os.PathLike[str] | None = None
) -> Settings:
    """The settings of the file and the environment; `home` goes before `$SCRUBJAY_HOME`.

    `$SCRUBJAY_HOME` holds the data and, in a folder of its own, the keys. Without it the data is
    in the XDG data folder and the keys are apart from it, in the XDG configuration folder.
    """
    env = os.environ if environment is None else environment
    found, wrong = survey(env, home=home)
    for error in wrong.values():
        raise error
    values: dict[str, Any] = {key.name: found[key.name].value for key in KEYS}
    variable = values["openai.api_key_variable"]
    tree: dict[str, Any] = {
        "data": Path(str(found["data"].value)),
        "keys": Path(str(found["keys"].value)),
        "openai": {"api_key": env.get(variable) if variable else None},
        "postgres": {},
        "extraction": {},
        "values": tuple(found.values()),
    }
    values |= {name: env.get(one) for name, one in _SECRETS.items()}
    for name, value in values.items():
        table, _, key = name.rpartition(".")
        if value is not None:
            (tree[table] if table else tree)[key] = value
    return msgspec.convert(tree, Settings)


def survey(
    environment: Mapping[str, str] | None = None, *, home: str | os.PathLike[str] | None = None
) -> tuple[dict[str, Value], dict[str, ScrubjayError]]:
    """Every value by its key, secrets only as set or not, and the errors by the keys they are of.

    A wrong value is None.
    """
    env = os.environ if environment is None else environment
    found = {value.key: value for value in _places(env, home)}
    wrong: dict[str, ScrubjayError] = {}
    config = Path(str(found["config"].value))
    given: dict[str, Any] = {}
    try:
        given = _document(config, required=found["config"].where == f"{PREFIX}CONFIG")
    except ScrubjayError as error:
        wrong["config"] = error
    for name in sorted(given.keys() - {key.name for key in KEYS}):
        wrong[name] = _unknown(name, config)
        found[name] = Value(key=name, value=None, source=GivenBy.FILE, where=str(config))
    for key in KEYS:
        found[key.name], refused = _find(key, env, given, config)
        if refused is not None:
            wrong[key.name] = refused
    if not wrong:
        wrong = _wrong_together({name: one.value for name, one in found.items()}, config)
    named = str(found["openai.api_key_variable"].value or "")
    for name, variable in {**_SECRETS, "openai.api_key": named}.items():
        given_by = GivenBy.ENVIRONMENT if env.get(variable) else GivenBy.DEFAULT
        found[name] = Value(
            key=name, value="set" if env.get(variable) else "not set", source=given_by
        )
    return found, wrong


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
    """The values of the file by dotted key, unchecked."""
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
    return given


def _unknown(name: str, file: Path) -> InvalidRequest:
    from difflib import get_close_matches

    known = sorted(key.name for key in KEYS)
    near = get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else "."
    return InvalidRequest(
        f"{file}: there is no key {name}{meant}", hint=f"The keys are: {', '.join(known)}."
    )


def _find(
    key: SettingField, env: Mapping[str, str], given: Mapping[str, Any], file: Path
) -> tuple[Value, InvalidRequest | None]:
    """The value of a key: of its variable, the file or the default; or what is wrong."""
    text = env.get(key.variable)
    if not text and key.name not in given:
        return Value(key=key.name, value=key.default, source=GivenBy.DEFAULT), None
    found = Value(key=key.name, value=None, source=GivenBy.FILE, where=str(file))
    if text:
        found = replace(found, source=GivenBy.ENVIRONMENT, where=key.variable)
    try:
        value = key.check(text, strict=False) if text else key.check(given[key.name])
    except (ValueError, InvalidRequest):
        return found, InvalidRequest(
            f"{key.variable if text else f'{file}: {key.name}'} must be {key.wants}.",
            hint=f"Correct it, or remove it: the default is {key.default or 'empty'}.",
        )
    return replace(found, value=value), None


def _wrong_together(values: Mapping[str, Any], file: Path) -> dict[str, ScrubjayError]:
    """An embedder that lacks its endpoint, and half a model to read turns, by what is missing."""
    wrong: dict[str, ScrubjayError] = {}
    needs = ["openai.url", "openai.model", *["openai.dimensions"] * bool(values["openai.shorten"])]
    missing = [key for key in needs if not values[key]]
    if values["embedder"] == EmbedderName.OPENAI and missing:
        told, hint = f"the embedder openai needs {missing[0]}.", "or choose the embedder static."
        wrong[missing[0]] = InvalidRequest(f"{file}: {told}", hint=f"Add it, {hint}")
    halves = ["extraction.url", "extraction.model"]
    if len(absent := [key for key in halves if not values[key]]) == 1:
        told, hint = "extraction needs both url and model.", "Add the other, or remove both."
        wrong[absent[0]] = InvalidRequest(f"{file}: {told}", hint=hint)
    return wrong


def unknown_variables(found: Settings) -> list[str]:
    """Variables of the environment that begin as ours do, and mean nothing to us."""
    ours = {key.variable for key in KEYS} | {PREFIX + name for name in _APART}
    ours |= {str(one.value) for one in found.values if one.key == "openai.api_key_variable"}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in ours)


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """An environment variable of a foreign convention; None if it is not set or empty."""
    return (os.environ if environment is None else environment).get(name) or None
