"""The workers of a service share metrics."""

from __future__ import annotations

import re

from scrubjay.service.telemetry import Metrics
from scrubjay.service.workers import Boards, Lock


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
