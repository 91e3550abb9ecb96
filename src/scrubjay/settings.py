"""Settings: the only reader of the environment and of the configuration file.

A value comes from the first place that says something: an argument, the environment, the file,
the default. Which one it was is kept beside it, for `scrubjay config show`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

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
    """Where a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    ARGUMENT = "argument"


class EmbedderName(StrEnum):
    """Which embedder gives memories their vectors."""

    STATIC = "static"
    NONE = "none"
    OPENAI = "openai"


class OnEmbedderChange(StrEnum):
    """What becomes of vectors another embedder made."""

    DEGRADE = "degrade"
    """They are left out of the ranking until reindex."""
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


class Value(Struct, frozen=True, kw_only=True):
    """One value as `config show` tells it."""

    key: str
    value: Plain
    source: GivenBy
    where: str = ""
    """The file, the variable or the argument; nothing for a default."""


class Settings(Struct, frozen=True, kw_only=True):
    """Where things are kept, and how patient and how careful the store is."""

    data: Path
    keys: Path
    scope: str = "local/default"
    """The scope a command means when it names none."""
    lock_seconds: float = 30.0
    """How long a writer waits for another before it gives up as Busy."""
    ballast_bytes: int = 4 * MEGABYTE
    """Space held in reserve, so that erasure works on a full disk."""
    shelf_bytes: int = 256 * MEGABYTE
    """How much memory the open indexes may take together."""
    drop_days: int = 30
    """How long the row of an erased memory is kept, without content."""
    superseded_days: int = 30
    """How long purge leaves what was superseded."""
    embedder: EmbedderName = EmbedderName.STATIC
    on_embedder_change: OnEmbedderChange = OnEmbedderChange.DEGRADE
    openai: OpenAISettings = OpenAISettings()
    extraction: ExtractionSettings = ExtractionSettings()
    passphrase: str | None = None
    values: tuple[Value, ...] = ()
    """Every value with where it comes from."""

    def __repr__(self) -> str:
        return f"Settings(data={str(self.data)!r}, keys={str(self.keys)!r})"


# -- the keys of the file ------------------------------------------------------------------


class SettingField(Struct, frozen=True, kw_only=True):
    """One key of the file, and the variable of the environment that goes before it."""

    name: str
    """As in the file; with a dot, within a table."""
    default: Plain
    means: str
    wants: str
    """What a good value is, as the end of a sentence."""
    check: Callable[[Any], Plain]
    """The value, or a ValueError or TypeError if it is not one."""
    parse: Callable[[str], object] = str
    """The value of the text in a variable; a ValueError if there is none."""

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return PREFIX + self.name.replace(".", "_").upper()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _scope(value: object) -> str:
    return str(Scope.parse(_text(value)))


def _number(least: float, most: float, *kinds: type[int] | type[float]) -> Callable[[Any], Plain]:
    def check(value: Any) -> Plain:
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise ValueError(value)
        return value

    return check


def _one_of(choices: type[StrEnum]) -> Callable[[Any], Plain]:
    return lambda value: choices(value).value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _parse_flag(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


def _count(name: str, default: int, means: str, most: int, *, least: int = 0) -> SettingField:
    return SettingField(
        name=name, default=default, means=means, wants=f"a whole number from {least} to {most:,}",
        check=_number(least, most, int), parse=int,
    )  # fmt: skip


def _choice(name: str, default: StrEnum, means: str) -> SettingField:
    kind = type(default)
    wants = f"one of {', '.join(kind)}"
    return SettingField(
        name=name, default=default.value, means=means, wants=wants, check=_one_of(kind)
    )


def _word(name: str, default: str | None, means: str) -> SettingField:
    return SettingField(name=name, default=default, means=means, wants="a text", check=_text)


KEYS: Final = (
    SettingField(
        name="scope", default="local/default", means="the scope of a command that names none",
        wants="owner or tenant/owner", check=_scope,
    ),
    _choice("embedder", EmbedderName.STATIC, "what gives memories their vectors"),
    _choice(
        "on_embedder_change", OnEmbedderChange.DEGRADE, "what to do with another one's vectors"
    ),
    _word("openai.url", None, "the endpoint with its version, as in https://api.example.com/v1"),
    _word("openai.model", None, "the model to ask for"),
    _count("openai.dimensions", 0, "how many numbers a vector of the model has", 65_536),
    SettingField(
        name="openai.shorten", default=False, means="ask the endpoint for that many numbers",
        wants="true or false", check=_flag, parse=_parse_flag,
    ),
    _word("openai.api_key_variable", None, "the environment variable that holds the API key"),
    _word("extraction.url", None, "the endpoint of the model that reads turns; none without it"),
    _word("extraction.model", None, "the model to ask for"),
    _choice("extraction.dialect", ModelDialect.OPENAI, "how it is spoken to"),
    _count("extraction.daily_tokens", 0, "tokens a scope may use in a day; 0: any number", 10**12),
    SettingField(
        name="extraction.seconds", default=30.0, means="how long it may take over one turn",
        wants="a number from 1 to 600", check=_number(1, 600, int, float), parse=float,
    ),
    _count("shelf_megabytes", 256, "memory for open indexes", 1024 * 1024, least=1),
    SettingField(
        name="lock_seconds", default=30.0, means="how long a writer waits for another",
        wants="a number from 0 to 3,600", check=_number(0, 3_600, int, float), parse=float,
    ),
    _count("ballast_megabytes", 4, "space in reserve for erasure on a full disk", 1024),
    _count("drop_days", 30, "how long the empty row of an erased memory stays", 36_500),
    _count("superseded_days", 30, "how long purge leaves what was superseded", 36_500),
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
    given = _flat(_document(config, required=places["config"].where == f"{PREFIX}CONFIG"), config)
    found = {key.name: _find(key, env, given, config) for key in KEYS}
    _check_embedder(found, config)
    _check_extraction(found, config)
    return replace(
        _settings(places, {name: one.value for name, one in found.items()}, env),
        values=(*places.values(), *found.values()),
    )


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
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{file}: {error}.", hint="Correct the TOML of the file.") from error


def _flat(document: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The values by dotted key; a key that is not one of ours is refused."""
    given: dict[str, Any] = {}
    for name, value in document.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        given.update({f"{name}.{sub}".rstrip("."): one for sub, one in inner})
    known = {key.name for key in KEYS}
    if unknown := sorted(set(given) - known):
        raise InvalidRequest(
            f"{file}: there is no key {unknown[0]}.", hint=f"The keys are: {', '.join(known)}."
        )
    return given


def _find(key: SettingField, env: Mapping[str, str], given: Mapping[str, Any], file: Path) -> Value:
    if text := env.get(key.variable):
        value = _checked(key, lambda: key.check(key.parse(text)), f"{key.variable}")
        return Value(key=key.name, value=value, source=GivenBy.ENVIRONMENT, where=key.variable)
    if key.name in given:
        value = _checked(key, lambda: key.check(given[key.name]), f"{file}: {key.name}")
        return Value(key=key.name, value=value, source=GivenBy.FILE, where=str(file))
    return Value(key=key.name, value=key.default, source=GivenBy.DEFAULT)


def _checked(key: SettingField, check: Callable[[], Plain], place: str) -> Plain:
    try:
        return check()
    except (ValueError, TypeError, KeyError, InvalidRequest) as error:
        raise InvalidRequest(
            f"{place} must be {key.wants}.", hint="Correct it; `scrubjay config show` lists all."
        ) from error


def _check_embedder(found: Mapping[str, Value], file: Path) -> None:
    """Refuse an embedder that lacks what it cannot do without."""
    needs = {
        EmbedderName.OPENAI: ("openai.url", "openai.model", "openai.dimensions"),
    }
    name = EmbedderName(str(found["embedder"].value))
    if missing := [key for key in needs.get(name, ()) if not found[key].value]:
        raise InvalidRequest(
            f"{file}: the embedder {name} needs {missing[0]}.",
            hint="Add it, or choose the embedder static.",
        )


def _check_extraction(found: Mapping[str, Value], file: Path) -> None:
    """Refuse half a model: nobody means to have turns read by it, or not to."""
    if bool(found["extraction.url"].value) != bool(found["extraction.model"].value):
        raise InvalidRequest(
            f"{file}: extraction needs both url and model.", hint="Add the other, or remove both."
        )


def _settings(
    places: Mapping[str, Value], values: Mapping[str, Any], env: Mapping[str, str]
) -> Settings:
    variable = values["openai.api_key_variable"]
    return Settings(
        data=Path(str(places["data"].value)),
        keys=Path(str(places["keys"].value)),
        scope=values["scope"],
        lock_seconds=float(values["lock_seconds"]),
        ballast_bytes=values["ballast_megabytes"] * MEGABYTE,
        shelf_bytes=values["shelf_megabytes"] * MEGABYTE,
        drop_days=values["drop_days"],
        superseded_days=values["superseded_days"],
        embedder=EmbedderName(values["embedder"]),
        on_embedder_change=OnEmbedderChange(values["on_embedder_change"]),
        openai=OpenAISettings(
            url=values["openai.url"] or "",
            model=values["openai.model"] or "",
            dimensions=values["openai.dimensions"],
            shorten=values["openai.shorten"],
            api_key=env.get(variable) if variable else None,
        ),
        extraction=ExtractionSettings(
            url=values["extraction.url"] or "",
            model=values["extraction.model"] or "",
            dialect=ModelDialect(values["extraction.dialect"]),
            daily_tokens=values["extraction.daily_tokens"],
            seconds=float(values["extraction.seconds"]),
            api_key=env.get(f"{PREFIX}EXTRACTION_API_KEY"),
        ),
        passphrase=env.get(f"{PREFIX}PASSPHRASE"),
    )


def variable(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A variable whose name somebody else's convention gives; None if it is not set or empty."""
    return (os.environ if environment is None else environment).get(name) or None
