"""Role files: every field of the configuration, its default, and the line of what is wrong."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay import InvalidRequest, NotFound
from scrubjay.surfaces.initrunner import roles
from scrubjay.surfaces.initrunner.roles import Interval, MemoryType, Role, SharedMemory

BARE = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: assistant
spec:
  role: You help.
  model:
    provider: openai
    name: gpt-5-mini
"""
FULL = f"""{BARE}\
  memory:
    max_sessions: 3
    max_resume_messages: 6
    store_backend: sqlite-vec
    store_path: shared/team.db
    embeddings:
      provider: ollama
      model: nomic
      base_url: http://127.0.0.1:1/v1
      api_key_env: KEY
    episodic:
      enabled: false
      max_episodes: 5
    semantic:
      enabled: true
      max_memories: 7
    procedural:
      enabled: false
      max_procedures: 9
    consolidation:
      enabled: false
      interval: manual
      max_episodes_per_run: 4
      model_override: openai:gpt-5
"""


def load(folder: Path, text: str) -> Role:
    path = folder / "role.yaml"
    path.write_text(text)
    return roles.load(path)


def memory(folder: Path, text: str = "  memory: {}\n") -> roles.MemoryConfig:
    found = load(folder, BARE + text).memory
    assert found is not None
    return found


def test_an_empty_section_has_every_default(tmp_path: Path) -> None:
    found = memory(tmp_path)
    assert (found.max_sessions, found.max_memories, found.max_resume_messages) == (10, 1_000, 20)
    assert (found.store_backend, found.store_path) == ("sqlite-vec", None)
    assert found.embeddings == roles.EmbeddingConfig(
        provider="", model="", base_url="", api_key_env=""
    )
    assert found.caps == {
        MemoryType.EPISODIC: 500,
        MemoryType.SEMANTIC: 1_000,
        MemoryType.PROCEDURAL: 100,
    }
    assert all(map(found.enabled, MemoryType))
    assert found.consolidation == roles.ConsolidationConfig(
        enabled=True,
        interval=Interval.AFTER_SESSION,
        max_episodes_per_run=20,
        model_override=None,
    )


def test_every_field_is_read(tmp_path: Path) -> None:
    found = load(tmp_path, FULL).memory
    assert found is not None
    assert (found.max_sessions, found.max_resume_messages) == (3, 6)
    assert found.caps == {
        MemoryType.EPISODIC: 5,
        MemoryType.SEMANTIC: 7,
        MemoryType.PROCEDURAL: 9,
    }
    assert [found.enabled(one) for one in MemoryType] == [False, True, False]
    assert (found.embeddings.provider, found.embeddings.model) == ("ollama", "nomic")
    assert found.consolidation.interval is Interval.MANUAL
    assert found.consolidation.max_episodes_per_run == 4
    assert found.consolidation.model_override == "openai:gpt-5"


def test_without_the_section_there_is_no_memory(tmp_path: Path) -> None:
    assert load(tmp_path, BARE).memory is None


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("  memory:\n    max_memories: 50\n", 50),
        ("  memory:\n    max_memories: 1000\n", 1_000),
        ("  memory:\n    max_memories: 50\n    semantic: {max_memories: 7}\n", 7),
        ("  memory:\n    semantic: {max_memories: 7}\n", 7),
        ("  memory:\n    max_memories: 50\n    semantic: {max_memories: 1000}\n", 50),
    ],
)
def test_the_bare_form_counts_where_the_section_says_nothing(
    tmp_path: Path, text: str, most: int
) -> None:
    assert memory(tmp_path, text).caps[MemoryType.SEMANTIC] == most


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("  memory:\n    max_session: 3\n", 11, "there is no field `max_session`"),
        ("  memory:\n    semantic:\n      max: 3\n", 12, "there is no field `max`"),
        ("  memory:\n    max_sessions: many\n", 11, "Expected `int`"),
        ("  memory:\n    max_sessions: 0\n", 11, ">= 1"),
        ("  memory:\n    semantic:\n      max_memories: 20000\n", 12, "<= 10000"),
        ("  memory:\n    store_backend: lancedb\n", 11, "Invalid enum value 'lancedb'"),
        ("  memory:\n    consolidation:\n      interval: hourly\n", 12, "Invalid enum value"),
        ("  memory: [1]\n", 10, "Expected `object"),
    ],
)
def test_a_wrong_field_of_the_memory_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, why: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        memory(tmp_path, text)
    assert re.search(rf"role\.yaml:{line}: spec\.memory", caught.value.message)
    assert why in caught.value.message


def test_a_wrong_field_of_the_model_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"role\.yaml:10: spec\.model\.top_p: there is no"):
        load(tmp_path, f"{BARE}    top_p: 1\n")
    with pytest.raises(InvalidRequest, match=r"role\.yaml:7: spec\.model.*missing required field"):
        load(tmp_path, BARE.replace("    name: gpt-5-mini\n", ""))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("name: assistant", "name: Bad Name", r":4: metadata\.name"),
        ("kind: Agent", "kind: Team", r":2: `kind` must be Agent"),
        ("  role: You help.\n", "", r":5: spec\.role: it is missing"),
        ("metadata:", "metadata: [", r":\d+: "),
    ],
)
def test_what_else_is_wrong_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    with pytest.raises(InvalidRequest, match=r"role\.yaml" + why):
        load(tmp_path, BARE.replace(old, new))


def test_a_file_that_is_not_there_or_no_mapping_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        roles.load(tmp_path / "none.yaml")
    with pytest.raises(InvalidRequest, match="is not a role file"):
        load(tmp_path, "- a\n")


def test_other_sections_are_listed_and_left_out(tmp_path: Path) -> None:
    found = load(tmp_path, f"{BARE}  guardrails: {{x: 1}}\n  triggers: []\n  ingest: {{}}\n")
    assert found.ignored == ("spec.guardrails", "spec.triggers", "spec.ingest")


# -- scopes ----------------------------------------------------------------------------------------


def test_the_scope_is_named_after_the_agent(tmp_path: Path) -> None:
    assert str(load(tmp_path, BARE).scope) == "agents/assistant"


def test_a_store_path_names_a_scope_of_its_own_whatever_way_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = memory(tmp_path, "  memory:\n    store_path: ./a/../team.db\n").store_path
    role = load(tmp_path, f"{BARE}  memory:\n    store_path: {here}\n")
    whole = load(tmp_path, f"{BARE}  memory:\n    store_path: {tmp_path.resolve()}/team.db\n")
    other = load(tmp_path, f"{BARE}  memory:\n    store_path: /elsewhere/team.db\n")
    assert role.scope == whole.scope
    assert other.scope != whole.scope
    assert re.fullmatch(r"agents/team-[0-9a-f]{8}", str(role.scope))


@pytest.mark.parametrize("path", ["/", "/ä ö/….db", "~/x", "/" + "y" * 200])
def test_any_store_path_names_a_scope(tmp_path: Path, path: str) -> None:
    text = yaml.safe_dump({"store_path": path})
    assert load(tmp_path, f"{BARE}  memory:\n    {text}").scope.tenant == "agents"


# -- shared memory ---------------------------------------------------------------------------------


def compose(folder: Path, **shared: Any) -> Path:
    load(folder, FULL)
    path = folder / "compose.yaml"
    document = {
        "apiVersion": "initrunner/v1",
        "kind": "Compose",
        "metadata": {"name": "team"},
        "spec": {
            "services": {"writer": {"role": "role.yaml"}, "reader": {"role": "role.yaml"}},
            **({"shared_memory": shared} if shared else {}),
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_services_of_a_compose_file_share_a_scope_and_its_cap(tmp_path: Path) -> None:
    path = compose(tmp_path, enabled=True, max_memories=40)
    writer, reader = (roles.load_service(path, name) for name in ("writer", "reader"))
    assert writer.scope == reader.scope
    assert str(writer.scope).startswith("agents/team-shared-")
    assert writer.memory is not None
    assert writer.memory.caps[MemoryType.SEMANTIC] == 40
    assert writer.memory.caps[MemoryType.EPISODIC] == 5


def test_a_compose_file_may_name_the_store(tmp_path: Path) -> None:
    path = compose(tmp_path, enabled=True, store_path="/data/all.db")
    assert str(roles.load_service(path, "writer").scope).startswith("agents/all-")


def test_without_sharing_a_service_is_its_role(tmp_path: Path) -> None:
    found = roles.load_service(compose(tmp_path), "writer")
    assert found == roles.load(tmp_path / "role.yaml")
    with pytest.raises(NotFound, match="no service cook"):
        roles.load_service(tmp_path / "compose.yaml", "cook")


def test_a_role_without_memory_gets_the_shared_one(tmp_path: Path) -> None:
    found = load(tmp_path, BARE).sharing(SharedMemory(max_memories=9), "/x/y.db")
    assert found.memory is not None
    assert found.memory.caps[MemoryType.SEMANTIC] == 9
    assert str(found.scope).startswith("agents/y-")


def test_agents_of_a_delegate_tool_share_what_it_says(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        f"""{BARE}\
  tools:
    - type: datetime
    - type: delegate
      mode: inline
      shared_memory: {{store_path: /data/all.db, max_memories: 12}}
      agents:
        - {{name: cook, role_file: cook.yaml, description: who cooks}}
    - type: delegate
      mode: mcp
      agents: [{{name: far, url: "http://127.0.0.1:1"}}]
""",
    )
    (delegate,) = found.delegates
    assert (delegate.name, delegate.role_file) == ("cook", tmp_path / "cook.yaml")
    assert delegate.shared == SharedMemory(store_path="/data/all.db", max_memories=12)


def test_a_delegate_that_shares_a_memory_says_which(tmp_path: Path) -> None:
    agents = "agents: [{name: cook, role_file: cook.yaml}]"
    shared = "shared_memory: {max_memories: 5}"
    with pytest.raises(InvalidRequest, match=r"shared_memory\.store_path: it is missing"):
        load(tmp_path, f"{BARE}  tools: [{{type: delegate, {agents}, {shared}}}]\n")


# -- files that are no role files ------------------------------------------------------------------


@pytest.mark.parametrize("path", ["~nosuchuser/x.db", "a\0b", ""], ids=["user", "nul", "empty"])
def test_a_store_path_that_is_none_is_said(tmp_path: Path, path: str) -> None:
    text = yaml.safe_dump({"store_path": path})
    with pytest.raises(InvalidRequest, match="store_path"):
        str(load(tmp_path, f"{BARE}  memory:\n    {text}").scope)


@pytest.mark.parametrize(
    "value",
    [
        *("2026-13-45", "2026-01-01", "!!binary x", "[" * 5_000, "&a [*a]", "{? [1] : 2}"),
        *("{1: 2}", "9" * 5_000, "!!python/object:os.system {}", "{2026-01-01: 1}", "<<"),
        *("{<<: 3}", ".nan"),
    ],
)
@pytest.mark.parametrize("place", ["  memory: ", "  role: ", "  extra: ", "  tools: "])
def test_any_value_is_read_or_refused_with_a_sentence(
    tmp_path: Path, place: str, value: str
) -> None:
    with suppress(InvalidRequest):
        load(tmp_path, f"{BARE.replace('  role: You help.', '  role: You')}{place}{value}\n")


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.sampled_from("ab:-[]{}\"'|>&*!#%@?,.0 \n\t~\0é"), max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    for path in ("role.yaml", "compose.yaml"):
        (tmp_path / path).write_text(f"kind: {'Agent' if path[0] == 'r' else 'Compose'}\n{text}")
    with suppress(InvalidRequest, NotFound):
        roles.load(tmp_path / "role.yaml")
    with suppress(InvalidRequest, NotFound):
        roles.load_service(tmp_path / "compose.yaml", "x")


@pytest.mark.parametrize(
    "text",
    [
        "kind: Agent\nmetadata: {name: aa}\nspec: [a]\n",
        "kind: Agent\nmetadata: [a]\nspec: {role: x}\n",
        "kind: Agent\nmetadata: {name: aa}\nspec:\n  role: x\n"
        "  model: {provider: openai, name: m}\n  tools: [{type: delegate, agents: [[x]]}]\n",
    ],
    ids=["spec", "metadata", "agents"],
)
def test_a_list_where_a_section_should_be_is_refused_with_a_sentence(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "role.yaml").write_text(text)
    with pytest.raises(InvalidRequest):
        roles.load(tmp_path / "role.yaml")


def test_two_delegates_whose_tools_would_have_one_name_are_refused(tmp_path: Path) -> None:
    text = (
        "kind: Agent\nmetadata: {name: aa}\nspec:\n  role: x\n"
        "  model: {provider: openai, name: m}\n  tools:\n  - type: delegate\n    agents:\n"
        "    - {name: a-b, role_file: b}\n    - {name: a_b, role_file: c}\n"
    )
    (tmp_path / "role.yaml").write_text(text)
    with pytest.raises(InvalidRequest, match="a-b and a_b"):
        roles.load(tmp_path / "role.yaml")
