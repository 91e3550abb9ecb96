"""Settings: where things are kept, as the environment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrubjay import settings


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
    assert found.ballast_bytes == 4 * 1024 * 1024
    assert found.passphrase is None
