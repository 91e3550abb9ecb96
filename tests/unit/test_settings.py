"""Settings: where things are kept, as the environment and the configuration file say."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrubjay import bootstrap, settings
from scrubjay.engine import Policy
from scrubjay.model.errors import InvalidRequest, NotFound


def test_one_folder_may_hold_everything_with_the_keys_apart() -> None:
    found = settings.read({"SCRUBJAY_HOME": "/srv/jay", "HOME": "/home/a"})
    assert found.data == Path("/srv/jay/data")
    assert found.keys == Path("/srv/jay/keys")


def test_without_it_the_folders_of_the_desktop_are_used() -> None:
    found = settings.read({"HOME": "/home/a"})
    assert found.data == Path("/home/a/.local/share/scrubjay")
    assert found.keys == Path("/home/a/.config/scrubjay/keys")


def test_the_folders_of_the_desktop_may_be_elsewhere() -> None:
    found = settings.read({"HOME": "/home/a", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"})
    assert found.data == Path("/d/scrubjay")
    assert found.keys == Path("/c/scrubjay/keys")


def test_a_variable_set_to_nothing_counts_as_not_set() -> None:
    env = {"HOME": "/home/a", "SCRUBJAY_HOME": "", "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    assert settings.read(env) == settings.read({"HOME": "/home/a"})


def test_keys_are_never_inside_the_data() -> None:
    for env in ({"SCRUBJAY_HOME": "/srv/jay"}, {"HOME": "/home/a"}):
        found = settings.read(env)
        assert not found.keys.is_relative_to(found.data)
        assert not found.data.is_relative_to(found.keys)


def test_the_process_environment_is_read_when_none_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "open sesame")
    found = settings.read()
    assert found.data == tmp_path / "data"
    assert found.passphrase == "open sesame"


@pytest.mark.parametrize("env", [{"SCRUBJAY_HOME": "/srv/jay"}, {"HOME": "/home/a"}])
def test_a_passphrase_is_taken_over_and_never_shown(env: dict[str, str]) -> None:
    found = settings.read({**env, "SCRUBJAY_PASSPHRASE": "open sesame"})
    assert found.passphrase == "open sesame"
    assert "sesame" not in repr(found) + str(found)


def test_defaults_are_patient_and_hold_space_in_reserve() -> None:
    found = settings.at_home(Path("/srv/jay"))
    assert found.lock_seconds == 30
    assert found.ballast_megabytes == 4
    assert found.passphrase is None


# -- the configuration file ---------------------------------------------------------------------


def configured(folder: Path, text: str, **more: str) -> settings.Settings:
    """The settings of a home with this configuration file."""
    (folder / "config.toml").write_text(text)
    return settings.read({"SCRUBJAY_HOME": str(folder), "HOME": "/home/a", **more})


def told(found: settings.Settings) -> dict[str, settings.Value]:
    """Every value by its key."""
    return {value.key: value for value in found.values}


FULL = """
scope = "acme/alice"
embedder = "openai"
on_embedder_change = "raise"
shelf_megabytes = 64
lock_seconds = 5
ballast_megabytes = 0
drop_days = 1
superseded_days = 2

[openai]
url = "https://api.example.com/v1"
model = "small"
dimensions = 384
shorten = true
api_key_variable = "MY_KEY"
"""


def test_a_file_sets_everything(tmp_path: Path) -> None:
    found = configured(tmp_path, FULL, MY_KEY="s3cret")
    assert found.scope == "acme/alice"
    assert found.embedder is settings.EmbedderName.OPENAI
    assert found.on_embedder_change is settings.OnEmbedderChange.RAISE
    assert (found.shelf_megabytes, found.ballast_megabytes) == (64, 0)
    assert (found.lock_seconds, found.drop_days, found.superseded_days) == (5, 1, 2)
    endpoint = found.openai
    assert (endpoint.url, endpoint.model) == ("https://api.example.com/v1", "small")
    assert (endpoint.dimensions, endpoint.shorten, endpoint.api_key) == (384, True, "s3cret")


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    found = configured(tmp_path, FULL, MY_KEY="s3cret")
    assert "s3cret" not in repr(found) + repr(found.openai) + repr(found.values)


def test_every_value_says_where_it_comes_from(tmp_path: Path) -> None:
    found = told(configured(tmp_path, "drop_days = 3\nscope = 'bob'", SCRUBJAY_DROP_DAYS="9"))
    assert (found["drop_days"].value, found["drop_days"].source) == (9, "environment")
    assert found["drop_days"].where == "SCRUBJAY_DROP_DAYS"
    assert (found["scope"].value, found["scope"].source) == ("local/bob", "file")
    assert found["scope"].where == str(tmp_path / "config.toml")
    assert (found["lock_seconds"].value, found["lock_seconds"].source) == (30.0, "default")
    assert found["data"].source == "environment"


def test_an_argument_goes_before_the_environment(tmp_path: Path) -> None:
    found = settings.read({"SCRUBJAY_HOME": "/srv/jay"}, home=tmp_path)
    assert found.data == tmp_path / "data"
    assert told(found)["data"].source == "argument"


def test_the_file_is_in_the_configuration_folder_or_where_the_variable_says(tmp_path: Path) -> None:
    env = {"HOME": "/home/a", "XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "scrubjay").mkdir()
    (tmp_path / "scrubjay" / "config.toml").write_text("drop_days = 1")
    (tmp_path / "other.toml").write_text("drop_days = 2")
    assert settings.read(env).drop_days == 1
    assert settings.read({**env, "SCRUBJAY_CONFIG": str(tmp_path / "other.toml")}).drop_days == 2


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        settings.read({"HOME": "/home/a", "SCRUBJAY_CONFIG": str(tmp_path / "nothing")})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("scoop = 1", "scoop"),
        ("[openai]\nkey = 'x'", "openai.key"),
        ("[cloud]\nurl = 'x'", "cloud.url"),
        ("scope = 1", "scope"),
        ("scope = 'a/b/c'", "scope"),
        ("embedder = 'magic'", "embedder"),
        ("embedder = ['static']", "embedder"),
        ("on_embedder_change = true", "on_embedder_change"),
        ("lock_seconds = 'long'", "lock_seconds"),
        ("lock_seconds = -1", "lock_seconds"),
        ("lock_seconds = nan", "lock_seconds"),
        ("drop_days = 1.5", "drop_days"),
        ("drop_days = true", "drop_days"),
        ("shelf_megabytes = 0", "shelf_megabytes"),
        ("embedder = 'openai'", "openai.url"),
        ("[openai]\nshorten = 1", "openai.shorten"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        configured(tmp_path, text)
    assert caught.value.message.startswith(f"{tmp_path / 'config.toml'}: ")
    assert key in caught.value.message


def test_a_file_that_is_not_toml_is_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"config\.toml: .*line 2"):
        configured(tmp_path, "drop_days = 1\nscope = ?\n")


@pytest.mark.parametrize(
    ("variable", "text"),
    [("DROP_DAYS", "soon"), ("LOCK_SECONDS", "-1"), ("OPENAI_SHORTEN", "maybe"), ("EMBEDDER", "x")],
)
def test_a_wrong_variable_is_named(variable: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=f"SCRUBJAY_{variable} must be"):
        settings.read({"HOME": "/home/a", f"SCRUBJAY_{variable}": text})


def test_every_key_has_a_default_that_is_a_good_value() -> None:
    for key in settings.KEYS:
        assert key.default is None or key.check(key.default) == key.default


# -- from settings to an engine -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("embedder = 'static'", "static:"),
        ("embedder = 'none'", "none"),
        (FULL, "openai:small-384:"),
    ],
)
def test_the_embedder_is_the_one_that_is_named(tmp_path: Path, text: str, identity: str) -> None:
    found = configured(tmp_path, text)
    assert bootstrap.make_embedder(found, bootstrap.clock()).identity.startswith(identity)


def test_the_engine_heeds_the_settings(tmp_path: Path) -> None:
    policy = bootstrap.make_policy(configured(tmp_path, FULL))
    assert (policy.drop_days, policy.shelf_bytes) == (1, 64 * settings.MEGABYTE)
    assert policy.raise_on_embedder_change
    assert bootstrap.make_policy(settings.at_home(tmp_path)) == Policy()


# -- the model that reads turns ---------------------------------------------------------------


def test_without_a_model_no_turn_is_read_by_one(tmp_path: Path) -> None:
    found = settings.read({"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_EXTRACTION_API_KEY": "k"})
    assert bootstrap.make_extractor(found, bootstrap.clock()) is None


def test_a_model_is_read_from_the_file_and_its_key_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[extraction]\nurl = "https://m.example"\nmodel = "small"\ndialect = "anthropic"\n'
        "daily_tokens = 5000\nseconds = 7\n"
    )
    env = {"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_EXTRACTION_API_KEY": "sk-hidden"}
    found = settings.read(env)
    assert found.extraction.api_key == "sk-hidden"
    assert "sk-hidden" not in repr(found.extraction) + repr(found.values)
    policy = bootstrap.make_policy(found)
    assert (policy.daily_tokens, policy.extract_seconds) == (5000, 7.0)
    extractor = bootstrap.make_extractor(found, bootstrap.clock())
    assert extractor is not None
    assert extractor.identity.startswith("chat:small:")


@pytest.mark.parametrize(
    "table",
    ['url = "https://m.example"', 'model = "small"', 'dialect = "esperanto"', 'api_key = "sk-1"'],
)
def test_half_a_model_and_a_key_in_a_file_are_refused(tmp_path: Path, table: str) -> None:
    (tmp_path / "config.toml").write_text(f"[extraction]\n{table}\n")
    with pytest.raises(InvalidRequest):
        settings.read({"SCRUBJAY_HOME": str(tmp_path)})
