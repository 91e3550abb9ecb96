"""The plane as a process of its own: what it acknowledged is there, however it ended."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from scrubjay import bootstrap, settings
from scrubjay.model.pages import Paged
from scrubjay.surfaces.clawdapus.names import scope_of

SCOPE = scope_of("analyst", "desk")
WRITERS = 4


class Process:
    """`scrubjay plane serve` on a home that outlives it."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scrubjay", "plane", "serve", "--port", "0", "--writes", "0"],
            env={**os.environ, "SCRUBJAY_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]

    def kill(self) -> None:
        """End it without a warning."""
        self._process.send_signal(signal.SIGKILL)
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert self._process.wait() == -signal.SIGKILL


class Load:
    """Proxies that retain and recall, and an operator that forgets, as fast as they can."""

    def __init__(self, url: str, name: str) -> None:
        self.retained: set[str] = set()
        self.forgotten: set[str] = set()
        self.doubtful: set[str] = set()
        """What somebody asked to be forgotten and got no answer."""
        self._where = urlsplit(url)
        self._name = name
        self._counted = threading.Condition()
        parts = [self._retain] * WRITERS + [self._recall, self._forget]
        self._threads = [
            threading.Thread(target=self._run, args=(part, n)) for n, part in enumerate(parts)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, part: Callable[[http.client.HTTPConnection, int, int], None], mine: int) -> None:
        where = self._where
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            for number in itertools.count():
                part(connection, mine, number)
        except (OSError, http.client.HTTPException):
            return  # the service is gone; what was not acknowledged may be lost
        finally:
            connection.close()

    def _retain(self, connection: http.client.HTTPConnection, mine: int, number: int) -> None:
        entry_id = f"{self._name}-{mine}-{number}"
        said = f"What came with lot {number} of ship {mine} on {self._name}?"
        request = {"messages": [{"role": "user", "content": said}]}
        answer = {"choices": [{"message": {"content": f"{number * 7 + mine} boxes."}}]}
        response = {"format": "json", "json": answer}
        entry = {"id": entry_id, "request_original": request, "response": response}
        assert self._send(connection, "retain", {"entry": entry}) == 202
        with self._counted:
            self.retained.add(entry_id)
            self._counted.notify()

    def _recall(self, connection: http.client.HTTPConnection, _mine: int, number: int) -> None:
        messages = [{"role": "user", "content": f"Which ship had lot {number}?"}]
        assert self._send(connection, "recall", {"messages": messages}) in (200, 503)

    def _forget(self, connection: http.client.HTTPConnection, _mine: int, _number: int) -> None:
        with self._counted:
            self._counted.wait_for(lambda: len(self.retained) > 10 * len(self.forgotten), timeout=1)
            chosen = next(iter(self.retained - self.forgotten), None)
        if chosen is not None:
            self.doubtful.add(chosen)
            assert self._send(connection, "forget", {"entry_ids": [chosen]}) == 204
            self.forgotten.add(chosen)

    def _send(
        self, connection: http.client.HTTPConnection, op: str, more: dict[str, object]
    ) -> int:
        body = json.dumps({"agent_id": "analyst", "pod": "desk", **more}).encode()
        connection.request("POST", f"/{op}", body)
        response = connection.getresponse()
        response.read()
        return response.status

    def wait_for(self, count: int) -> None:
        """Return once so many were acknowledged."""
        with self._counted:
            assert self._counted.wait_for(lambda: len(self.retained) >= count, timeout=120)

    def join(self) -> None:
        """Wait for everybody to have noticed."""
        for thread in self._threads:
            thread.join()


def test_killed_under_load_no_acknowledged_turn_is_lost_and_none_forgotten_is_back(
    ram: Path, more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    chance, lost, back = random.Random(seed), set[str](), set[str]()
    retained, forgotten, doubtful = set[str](), set[str](), set[str]()
    for turn in range(20 if more else 3):
        process = Process(ram / "home")
        load = Load(process.url, f"round{turn}")
        load.wait_for(chance.randint(20, 200))
        process.kill()
        load.join()
        retained |= load.retained
        forgotten |= load.forgotten
        doubtful |= load.doubtful
        engine = bootstrap.build(settings.at_home(ram / "home"))
        there = {one.id for one in engine.timeline(SCOPE, Paged(10_000)).moments}
        lost |= retained - doubtful - there
        back |= forgotten & there
        engine.finish_due(SCOPE)
        assert engine.verify(SCOPE).sound
        engine.close()
    for name, found in (("acknowledged", retained), ("forgotten", forgotten)):
        record_property(name, len(found))
    record_property("lost", len(lost))
    record_property("back", len(back))
    assert not lost
    assert not back
