"""What the figures were measured on. No paths and no names: a machine is its cores, memory, disk and Python."""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import apsw
import psutil

__all__ = ["describe", "spin"]


def describe(folder: Path) -> dict[str, Any]:
    """The machine, for results.json."""
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(folder),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "fsync_ms": round(_fsync(folder) * 1_000, 3),
        "spin_ms": round(spin() * 1_000, 1),
        "load": round(os.getloadavg()[0], 2),
    }


def spin() -> float:
    """Seconds for a fixed loop in Python: shows how much of a core the machine gives us just now."""

    def once() -> float:
        start = time.perf_counter()
        total = 0
        for number in range(1_000_000):
            total += number & 3
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(3))


def _fsync(folder: Path) -> float:
    """Seconds for one 4 KiB write and fsync: what every commit costs at least."""
    path = folder / "fsync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(50):
            start = time.perf_counter()
            file.write(b"x" * 4_096)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(times)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(folder: Path) -> str:
    places = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    return max(places, key=lambda part: len(part.mountpoint)).fstype if places else "unknown"
