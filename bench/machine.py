"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from statistics import quantiles
from time import perf_counter

_CPU_MODEL = Path("/proc/cpuinfo")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> str:
    """The load averages of this moment."""
    return " / ".join(f"{average:.2f}" for average in os.getloadavg())


def is_busy() -> bool:
    """Whether others have had the cores in the last minute."""
    return os.getloadavg()[0] > cores() / 2


def versions() -> str:
    """The versions of everything a figure depends on."""
    import apsw
    import cryptography

    return (
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()} "
        f"(apsw {apsw.apsw_version()}), cryptography {cryptography.__version__}"
    )


def processor() -> str:
    """The processor and how many of its cores there are to use."""
    model = platform.machine()
    if _CPU_MODEL.exists():
        lines = _CPU_MODEL.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{cores()} cores, {model}, {platform.system()} {kernel}"


def sync_seconds(folder: Path, times: int = 300) -> tuple[float, float]:
    """The median and the 90th percentile of a sync after a page was appended."""
    page, taken = os.urandom(4096), []
    path = folder / "sync"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(times):
            os.write(fd, page)
            begun = perf_counter()
            os.fdatasync(fd)
            taken.append(perf_counter() - begun)
    finally:
        os.close(fd)
        path.unlink()
    tenths = quantiles(taken, n=10)
    return tenths[4], tenths[8]
