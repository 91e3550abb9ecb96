"""Whatever is sent to the plane, the answer is one of its own and never a failure of the server."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scrubjay.engine import Kernel
from tests.dialects.clawdapus.conftest import Serve
from tests.dialects.clawdapus.pod import send

TEXT = st.text(st.characters(), max_size=30)  # halves of characters, too: JSON may carry them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def odd(sound: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, now and then anything."""
    return st.one_of(sound, sound, sound, JSON)


def record(
    needed: dict[str, st.SearchStrategy[Any]] | None = None, **fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """An object of which every field but what is needed may be missing or odd."""
    others = {name: odd(value) for name, value in fields.items()}
    loose = {name: odd(value) for name, value in (needed or {}).items()}
    whole = st.fixed_dictionaries(needed or {}, optional=others)
    return st.one_of(whole, whole, st.fixed_dictionaries({}, optional={**loose, **others}))


PARTS = st.lists(record(type=st.sampled_from(["text", "image_url", "tool_result"]), text=TEXT))
MESSAGES = st.lists(
    odd(
        record(role=st.sampled_from(["user", "assistant", "system", "tool"]), content=TEXT | PARTS)
    ),
    max_size=4,
)
REQUEST = record(messages=MESSAGES, system=TEXT | PARTS, model=TEXT)
CHOICES = st.lists(record(index=st.integers(), message=record(content=TEXT | PARTS)), max_size=2)
RESPONSE = record(
    format=st.sampled_from(["json", "sse"]),
    json=record(choices=CHOICES, content=PARTS | TEXT),
    text=TEXT.map(lambda text: f"data: {text}\n\n") | TEXT,
)
TIMES = st.datetimes().map(lambda at: f"{at.isoformat()}Z") | TEXT
IDS = st.sampled_from(["a", "b", "mem-1"]) | TEXT.map(lambda text: f"hist1_{text}")
ENTRY = record(
    {"id": IDS}, version=st.integers(), status=TEXT, ts=TIMES,
    status_code=st.integers(), request_original=REQUEST, request_effective=REQUEST,
    response=RESPONSE, effective_model=TEXT,
)  # fmt: skip
METADATA = record(policy_removed=st.integers(), path=TEXT, timezone=TEXT, requested_model=TEXT)
AGENT = {"agent_id": st.sampled_from(["analyst", "ä/ö"])}
COMMON = {"pod": TEXT, "metadata": METADATA}
BODIES = {
    "recall": record(AGENT, **COMMON, messages=MESSAGES, system=TEXT | PARTS),
    "retain": record({**AGENT, "entry": ENTRY}, **COMMON),
    "forget": record({**AGENT, "entry_ids": st.lists(odd(IDS))}, **COMMON, reason=TEXT),
}
CALLS = st.sampled_from([*BODIES]).flatmap(lambda op: st.tuples(st.just(op), odd(BODIES[op])))
ENCODED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, "gzip": gzip.compress, "GZIP": gzip.compress, "br": bytes,
}  # fmt: skip


def test_nothing_that_is_sent_is_a_failure_of_the_server(
    serve: Serve, engine: Kernel, more: bool, record_property: Callable[..., None]
) -> None:
    url, seen = serve(engine), Counter[int]()

    @settings(
        max_examples=3_000 if more else 600,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        call=CALLS,
        encoding=st.sampled_from([*ENCODED]),
        method=st.sampled_from(["POST", "POST", "POST", "POST", "GET", "PUT"]),
        damage=st.integers(0, 20),
    )
    def ask(call: tuple[str, Any], encoding: str, method: str, damage: int) -> None:
        raw = ENCODED[encoding](json.dumps(call[1]).encode())
        raw = raw[:-damage] if damage > 17 else raw
        headers = {"Content-Encoding": encoding} if encoding else {}
        answer = send(url, method, f"/{call[0]}", raw, headers, seconds=60)
        assert answer.status in {200, 202, 204, 400, 405}, answer
        seen[answer.status] += 1

    ask()
    record_property("requests", sum(seen.values()))
    record_property("statuses", json.dumps(dict(sorted(seen.items()))))
    assert min(seen[status] for status in (200, 202, 204, 400, 405)) > 3
