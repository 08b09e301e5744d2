"""What is printed and written: the machine, and a line for each row."""

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import Result
from bench.rows import ROWS, Row

HEADINGS = ("what", "against", "goal", "result", "quartiles", "contender", "reference", "rounds", "")


def machine() -> dict[str, Any]:
    """Where the numbers come from. Loads posenc."""
    import posenc

    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "cores usable": affinity or os.cpu_count(),
        "os": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": version("numpy"),
        "torch": version("torch"),
        "posenc": posenc.show_config("dicts"),
    }


def cpu_model() -> str:
    """The processor's name, as far as the system says."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(package: str) -> str | None:
    """A package's version, None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def print_machine(about: dict[str, Any]) -> None:
    """Print a line for each entry."""
    for name, value in about.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {' '.join(entry) if isinstance(entry, list) else entry}" for key, entry in value.items())
        print(f"{name + ':':14}{value}")
    print()


def cells(row: Row, result: Result) -> tuple[str, ...]:
    """A row's line, cell by cell."""
    comparison = row.comparison
    goal = "-" if result.goal is None else f"{comparison.sense} {result.goal:g}{comparison.unit}"
    known = row.name, row.against, goal
    if result.value is None or result.low is None or result.high is None:
        kind, _, reason = result.verdict.partition(": ")
        return *known, "-", "-", "-", "-", "-", f"{kind}: {reason.splitlines()[-1]}"
    return (
        *known,
        f"{number(result.value)}{comparison.unit}",
        f"{number(result.low)} .. {number(result.high)}",
        quantity(result.contender, row.mode == "memory"),
        quantity(result.reference, row.mode == "memory"),
        str(result.rounds),
        result.verdict,
    )


def line(texts: tuple[str, ...]) -> str:
    """Cells set in columns: words to the left, numbers to the right."""
    widths = (max(len(row.name) for row in ROWS), max(len(row.against) for row in ROWS), -9, -9, -16, -9, -9, -6, 0)
    columns = zip(texts, widths, strict=True)
    return "  ".join(text.ljust(width) if width >= 0 else text.rjust(-width) for text, width in columns).rstrip()


def number(value: float) -> str:
    """Three digits, but whole numbers whole."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def quantity(value: float | None, is_memory: bool) -> str:
    """MiB, or seconds in the unit that suits them."""
    if value is None:
        return "-"
    if is_memory:
        return f"{number(value)} MiB"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1.0:
            return f"{number(value * factor)} {unit}"
    return f"{number(value * 1e9)} ns"


def as_json(about: dict[str, Any], results: dict[int, Result]) -> dict[str, Any]:
    """The whole run. Times are seconds, memory is MiB."""
    return {
        "machine": about,
        "rows": [
            {
                "name": ROWS[i].name,
                "against": ROWS[i].against,
                "mode": ROWS[i].mode,
                "sense": ROWS[i].comparison.sense,
                "unit": ROWS[i].comparison.unit.strip(),
                **result._asdict(),
            }
            for i, result in results.items()
        ],
    }
