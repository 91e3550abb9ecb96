"""The public library: one engine for many scopes, the async twin, results, and their types."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import re
import resource
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec import Struct

import scrubjay
from scrubjay import codec
from scrubjay.engine.open_scopes import OPEN_SCOPES
from scrubjay.verbs import VERBS, Verb, Verbs

MANY = 600
"""More scopes than an engine keeps open, and far more than 256 descriptors hold, at seven each."""


def test_one_engine_serves_many_scopes_which_do_not_mix(tmp_path: Path) -> None:
    with scrubjay.Engine(tmp_path) as engine:
        alice, bob = engine.scope("acme/alice"), engine.scope("acme/bob")
        alice.retain("tea")
        with bob:
            bob.retain("coffee")
        assert [one.content for one in alice.browse()] == ["tea"]
        assert [one.content for one in bob.browse()] == ["coffee"], "closing it closed nothing else"
        assert [str(one) for one in engine.scopes()] == ["acme/alice", "acme/bob"]
    with pytest.raises(scrubjay.StoreError, match="closed"):
        alice.browse()


def test_scopes_in_turns_stay_below_the_limit_of_descriptors(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        with scrubjay.Engine(tmp_path) as engine:
            handles = [engine.scope(f"acme/{number}") for number in range(MANY)]
            for number, jay in enumerate(handles):
                jay.retain(f"tea {number}")
            assert handles[0].browse()[0].content == "tea 0"
            assert handles[7].recall("tea")[0].memory.content == "tea 7"
            assert len(engine._engine._opened) <= OPEN_SCOPES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_async_twin_has_the_same_verbs(tmp_path: Path) -> None:
    async def told() -> list[str]:
        async with scrubjay.AsyncJay(scrubjay.open("alice", home=tmp_path)) as jay:
            receipt = await jay.retain("Alice prefers green tea", kind="preference")
            assert (await jay.get(receipt.id)).kind is scrubjay.Kind.PREFERENCE
            return [hit.memory.content for hit in await jay.recall("green tea")]

    assert asyncio.run(told()) == ["Alice prefers green tea"]


def test_the_async_twin_has_every_method(tmp_path: Path) -> None:
    async def told() -> None:
        async with scrubjay.AsyncJay(scrubjay.open("alice", home=tmp_path / "home")) as jay:
            tea = (await jay.retain("tea")).id
            assert (await jay.pin(tea)).pinned
            assert not (await jay.unpin(tea)).pinned
            assert (await jay.expire(tea, None)).expires_at is None
            await jay.freeze("all")
            assert await jay.unfreeze() is scrubjay.Freeze.ALL
            exported = await jay.export(tmp_path / "export", sealed=True)
            assert (await jay.load(tmp_path / "export", key=exported.key)).known == 1
            assert (await jay.backup(tmp_path / "backup", days=7)).memories == 1
            assert (await jay.restore(tmp_path / "backup")).known == 1
            assert (await jay.reindex()).memories == 1
            assert (await jay.verify(await jay.forget([tea]))).sound
            with pytest.raises(scrubjay.NotFound):
                await jay.load(tmp_path / "nowhere")

    asyncio.run(told())
    mine = {name for name in dir(scrubjay.Jay) if not name.startswith("_")}
    assert mine - {"shared"} <= set(dir(scrubjay.AsyncJay))


def test_every_result_is_exported_picklable_and_says_itself_as_json(tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path) as jay:
        one = jay.retain("Alice prefers green tea", tags=["drinks"])
        jay.record("My name is Alice.", "Hello.", session="s")
        results: list[Any] = [
            one,
            jay.get(one.id),
            jay.recall("tea"),
            jay.brief(),
            jay.timeline(),
            jay.browse(),
            jay.preview([one.id]),
            jay.forget([one.id]),
            jay.verify(),
            jay.extraction(),
            *jay.turns(),
            *jay.sessions(),
            *jay.audit(),
        ]
    for result in results:
        assert type(result).__name__ in scrubjay.__all__, type(result)
        assert pickle.loads(pickle.dumps(result)) == result
        assert json.loads(codec.to_json(result)) == result.to_dict()


def named_in(kind: Any, seen: set[type]) -> set[type]:
    """Our own types that a result is made of, its fields and theirs included."""
    for part in get_args(kind):
        named_in(part, seen)
    ours = isinstance(kind, type) and kind.__module__.startswith("scrubjay.")
    if ours and kind not in seen and issubclass(kind, Struct | Enum):
        seen.add(kind)
        for field in codec.hints(kind).values() if issubclass(kind, Struct) else ():
            named_in(field, seen)
    return seen


def test_the_types_of_all_results_and_of_their_fields_are_exported() -> None:
    found = {one for verb in VERBS.values() for one in named_in(verb.gives, set())}
    assert len(found) > 50
    public = {one.__name__ for one in found if not one.__name__.startswith("_")}
    assert public <= set(scrubjay.__all__)


def test_enums_print_as_words() -> None:
    assert f"{scrubjay.State.KEPT} {scrubjay.Kind.FACT} {scrubjay.Freeze.ALL}" == "kept fact all"


def test_every_verb_of_a_handle_has_help_and_a_signature(tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path) as jay:
        for name, verb in vars(Verbs).items():
            if isinstance(verb, Verb):
                method = getattr(jay, name)
                assert method.__doc__, name
                fields = verb.request.__struct_fields__
                assert tuple(inspect.signature(method).parameters) == fields, name


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path) as jay:
        with pytest.raises(scrubjay.InvalidRequest, match="importanse"):
            jay.retain("tea", importanse=1)  # type: ignore[call-arg]
        assert not jay.browse().data


WRONG = {
    'jay.retain("tea", importanse=1)': "call-arg",
    'jay.retain("tea", kind="fakt")': "arg-type",
    'jay.retain("tea", origin="dream")': "arg-type",
    "jay.remember()": "attr-defined",
}


ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_type_checker_accepts_the_documents_and_rejects_a_typo(tmp_path: Path) -> None:
    """Strict mypy over every block of README and quickstart, and over one typo of each kind."""
    for page in ("README.md", "docs/quickstart.md"):
        blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
        assert blocks, page
        for number, block in enumerate(blocks):
            (tmp_path / f"{Path(page).stem.lower()}_{number}.py").write_text(block, "utf-8")
    wrong = ["import scrubjay", 'with scrubjay.open("alice") as jay:', *(f"    {w}" for w in WRONG)]
    (tmp_path / "wrong.py").write_text("\n".join(wrong) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", *sorted(map(str, tmp_path.glob("*.py")))]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
    errors = [line for line in told.splitlines() if "error:" in line]
    assert len(errors) == len(WRONG), told
    for (typo, code), line in zip(WRONG.items(), errors, strict=True):
        assert "wrong.py" in line, line
        assert f"[{code}]" in line, (typo, line)


def test_the_reference_of_the_api_is_current() -> None:
    tool = Path(__file__).parents[2] / "tools" / "api_reference.py"
    command = [sys.executable, str(tool), "--check"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 0, told.stdout


def test_a_program_without_logging_reads_no_names_of_events(tmp_path: Path) -> None:
    program = (
        "import logging, scrubjay\n"
        f"with scrubjay.open('alice', home={str(tmp_path)!r}) as jay:\n"
        "    jay.retain('tea')\n"
        "logging.getLogger('scrubjay.engine').warning('jobs.left_due')\n"
        "logging.getLogger('another').warning('seen')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == "seen\n"
