"""The workers of a service share rate limits and metrics, start again, and end together."""

from __future__ import annotations

import os
import re

from scrubjay.service.service import Buckets
from scrubjay.service.telemetry import Metrics
from scrubjay.service.workers import Boards, Lock


def test_tokens_that_one_process_spent_are_spent_for_the_other() -> None:
    lock = Lock()
    buckets = Buckets(lambda: lock.held(0))

    def spend() -> bool:
        return buckets.spend("reads key", full=3.0, rate=1.0, now=5.0)[1]

    assert spend()
    pid = os.fork()
    if not pid:
        os._exit(0 if spend() else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert spend()
    assert not spend()
    assert buckets.spend("reads key", full=3.0, rate=1.0, now=6.0) == (0.0, True)
    lock.close()


def test_of_more_keys_than_there_is_room_for_the_one_used_longest_ago_is_given_up() -> None:
    buckets = Buckets()
    for number in range(200_000):
        assert buckets.spend(f"key {number}", full=1.0, rate=0.0, now=float(number))[1]
    assert not buckets.spend("key 199999", full=1.0, rate=0.0, now=200_000.0)[1]
    assert buckets.spend("key 0", full=1.0, rate=0.0, now=200_000.0)[1]


def test_metrics_are_those_of_all_workers_together() -> None:
    lock = Lock()
    boards = Boards(3, lock)
    workers = [Metrics() for _ in range(3)]
    for number, metrics in enumerate(workers):
        metrics.ended("recall", 200, 0.004)
        metrics.recalled(4, 600)
        metrics.add("memory_redacted_total", number)
        metrics.show("memory_extraction_waiting", 7)
        boards.write(number, metrics.dump(depth=number, age=float(number)))
    told = workers[0].render(depth=0, age=0.0, others=boards.others(0))
    values = dict(re.findall(r"^([^#]\S*) (\S+)$", told, re.M))
    assert values['memory_operations_total{op="recall",status="200"}'] == "3"
    assert values['memory_operation_duration_seconds_bucket{op="recall",le="0.005"}'] == "3"
    assert values["memory_recall_bytes_sum"] == "1800"
    assert values["memory_redacted_total"] == "3"
    assert values["memory_queue_depth"] == "3"
    assert values["memory_queue_age_seconds"] == "2.000"
    assert values["memory_extraction_waiting"] == "7"  # each of them counts the same turns
    lock.close()
