"""What is printed and written: the machine, a line for each row of the goals, tables of the comparison and of sweeps."""

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .measure import Result
from .rows import ROWS, Row

#: What contenders need, as far as it is installed.
PACKAGES = ("numpy", "torch", "numexpr", "numba", "jax", "positional-encodings", "transformers", "diffusers", "timm")

HEADINGS = ("what", "against", "goal", "result", "quartiles", "contender", "reference", "rounds", "")


# ---- the machine -----------------------------------------------------------------------------------------------------


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
        "packages": {name: known for name in PACKAGES if (known := version(name)) is not None},
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


# ---- goals -----------------------------------------------------------------------------------------------------------


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


# ---- the comparison --------------------------------------------------------------------------------------------------

Entry = dict[str, Any]  # of `comparison.compared`


def shapes_of(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """The shapes that were measured."""
    return list(dict.fromkeys((one["shape"][0], one["shape"][1]) for entry in entries for one in entry.get("speed", [])))


def speed_table(entries: Iterable[Entry], shape: Sequence[int]) -> str:
    """Those that were measured at a shape, in Markdown."""
    lines = [
        (
            entry["title"],
            entry["convention"],
            quantity(speed["seconds"], False),
            number(speed["bytes"] / speed["seconds"] / 1e9),
            number(speed["to fill"]),
            number(speed["to posenc"]),
        )
        for entry in entries
        for speed in entry.get("speed", [])
        if list(speed["shape"]) == list(shape)
    ]
    return markdown(("contender", "convention", "time", "GB/s", "time / fill", "time / posenc"), lines)


def accuracy_table(entries: Iterable[Entry]) -> str:
    """Those that were judged, in Markdown: at each position the largest error, the same in ulps, the share misrounded."""
    judged = [entry for entry in entries if entry.get("accuracy")]
    positions = sorted({verdict["position"] for entry in judged for verdict in entry["accuracy"]})
    headings = [f"{what} at {position:,}" for position in positions for what in ("error", "ulp", "misrounded")]
    lines = []
    for entry in judged:
        known = {verdict["position"]: verdict for verdict in entry["accuracy"]}
        texts = [text for position in positions for text in accuracy(known.get(position))]
        lines.append((entry["title"], *texts))
    return markdown(("contender", *headings), lines)


def accuracy(verdict: dict[str, Any] | None) -> tuple[str, str, str]:
    """The cells of a verdict."""
    if verdict is None:
        return "-", "-", "-"
    return f"{verdict['error']:.1e}", f"{verdict['ulp']:.3g}", share(verdict["misrounded"] / verdict["entries"])


def share(value: float) -> str:
    """Percent; nothing but 0 is 0."""
    return "0" if value == 0 else f"{number(100 * value)} %"


def not_measured(entries: Iterable[Entry]) -> list[str]:
    """A line for each that is skipped or failed."""
    return [
        f"{entry['title']}: {kind}: {entry[kind].splitlines()[-1]}"
        for entry in entries
        for kind in ("skipped", "error", "not judged")
        if kind in entry
    ]


# ---- sweeps ----------------------------------------------------------------------------------------------------------


def sweep_table(sweep: dict[str, Any], titles: dict[str, str]) -> str:
    """A line for each x, in Markdown: errors, or times, with their ratio to fill where it was measured."""
    points = {(point["contender"], point["x"]): point for point in sweep["points"]}
    names = list(dict.fromkeys(name for name, _ in points))
    values = list(dict.fromkeys(point["x"] for point in sweep["points"]))
    lines = [
        (f"{x:,}" if isinstance(x, int) else str(x), *(sweep_cell(points.get((name, x))) for name in names)) for x in values
    ]
    return markdown((sweep["x"], *(titles.get(name, name) for name in names)), lines)


def sweep_cell(point: dict[str, Any] | None) -> str:
    """What was measured at a point."""
    if point is None:
        return "-"
    if "error" in point:
        return f"{point['error']:.1e}"
    ratio = f" ({number(point['seconds'] / point['fill'])})" if "fill" in point else ""
    return quantity(point["seconds"], False) + ratio


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table whose columns are set under each other, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(
        "| "
        + " | ".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(texts, widths, strict=True)))
        + " |"
        for texts in (headings, rules, *lines)
    )
