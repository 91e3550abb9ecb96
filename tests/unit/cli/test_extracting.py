"""extract: what a model finds, how far it has come, and whether it may go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrubjay import bootstrap, settings
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from tests.support.model_server import TOKENS_IN, TOKENS_OUT, ModelServer, note, serve_model
from tests.unit.cli.conftest import CommandLine

NAXOS = "The trip goes to Naxos."


@pytest.fixture
def model(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with serve_model(note(NAXOS)) as running:
        monkeypatch.setenv("SCRUBJAY_EXTRACTION_URL", running.openai_url)
        monkeypatch.setenv("SCRUBJAY_EXTRACTION_MODEL", "small")
        monkeypatch.setenv("SCRUBJAY_EXTRACTION_API_KEY", "sk-hidden")
        engine = bootstrap.build(settings.read(home=cli.home))
        said = "We take the boat to Naxos in June."
        engine.record(Scope("local", "default"), Record(id="turn-1", user=said, assistant="Nice."))
        engine.close()
        yield running


def test_extract_says_what_it_read_found_and_spent(cli: CommandLine, model: ModelServer) -> None:
    told = cli.good("extract", "--json").json
    assert (told["turns"], told["memories"], told["left"], told["stopped"]) == (1, 1, 0, None)
    assert (told["tokens_in"], told["tokens_out"]) == (TOKENS_IN, TOKENS_OUT)
    assert NAXOS in cli.good("list").out
    assert model.headers[0]["authorization"] == "Bearer sk-hidden"


def test_turns_are_read_again_only_when_asked(cli: CommandLine, model: ModelServer) -> None:
    for options, number in (((), 1), ((), 1), (("--again", "--limit", 5), 2)):
        cli.good("extract", *options)
        assert len(model.turns) == number


def test_a_pause_is_shown_and_holds(cli: CommandLine, model: ModelServer) -> None:
    assert cli.good("extract", "--pause", "--json").json["paused"]
    assert "paused" in cli.good("extract").err
    assert model.turns == []
    status = cli.good("extract", "--status").out
    assert "waiting" in status
    assert not cli.good("extract", "--resume", "--json").json["paused"]
    assert cli.good("extract", "--json").json["turns"] == 1


def test_a_model_that_is_down_has_its_exit_code(cli: CommandLine, model: ModelServer) -> None:
    model.down = True
    done = cli("extract", "--json")
    assert (done.code, done.json["stopped"], done.json["left"]) == (7, "unavailable", 1)


def test_options_that_contradict_each_other_are_refused(cli: CommandLine) -> None:
    assert cli("extract", "--pause", "--resume").code == 2


def test_without_a_model_it_says_what_to_set(cli: CommandLine) -> None:
    cli.remember("tea")
    done = cli("extract")
    assert (done.code, "extraction.url" in done.err) == (2, True)


def test_no_setting_shown_has_the_key(cli: CommandLine, model: ModelServer) -> None:
    shown = cli.good("config", "show").out
    assert "extraction.model" in shown
    assert "sk-hidden" not in shown
