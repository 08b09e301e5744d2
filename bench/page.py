"""``python -m bench report``: what the documents say of the results, from the results.

A document keeps a place for each: ``<!-- bench:begin NAME -->``, what stands there, ``<!-- bench:end -->``. The names are those
of `blocks`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from .contenders import NAMES, contender
from .measure import ROOT
from .report import accuracy, accuracy_table, markdown, not_measured, number, quantity, shapes_of, speed_table, sweep_table

RESULTS = Path(__file__).resolve().parent / "results"
COMMANDS = {"comparison": "compare", "goals": "goals", "sweeps": "sweeps"}
DOCUMENTS = ("README.md", "docs/benchmark.md")
FIGURES = "docs/figures"
PLACE = re.compile(r"(<!-- bench:begin (\w+) -->\n).*?(<!-- bench:end -->)", re.DOTALL)

#: The contenders of README's table, and the position at which it says how they err.
FEW = (
    *("posenc_table", "numpy_float64", "numpy_float32", "torch_float32", "numexpr_float64", "numba_float32", "jax_float32"),
    *("positional_encodings_1d", "transformers_whisper", "python_loop"),
)
FAR = 1_000_000


def write() -> int:
    """Write figures and documents; the exit code."""
    if not (ROOT / "pyproject.toml").exists():
        print(f"{ROOT} is no checkout; the report is written into one", file=sys.stderr)
        return 2
    try:
        results = stored()
        from .figures import write as draw

        for path in draw(results["sweeps"], titles(), ROOT / FIGURES):
            print(path.relative_to(ROOT))
    except (FileNotFoundError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    made = blocks(results)
    for name in DOCUMENTS:
        path = ROOT / name
        if path.exists() and PLACE.search(path.read_text(encoding="utf-8")):
            path.write_text(replaced(path.read_text(encoding="utf-8"), made), encoding="utf-8")
            print(name)
        else:
            print(f"{name} has no place for a block of the bench", file=sys.stderr)
    return 0


def stored() -> dict[str, Any]:
    """The results that are kept, by name."""
    results = {}
    for name, command in COMMANDS.items():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            raise FileNotFoundError(f"there is no {path.name}; python -m bench {command} --json {path} makes it")
        results[name] = json.loads(path.read_text(encoding="utf-8"))
    return results


def titles() -> dict[str, str]:
    """What the contenders are called."""
    return {name: contender(name).title for name in NAMES}


def replaced(text: str, made: dict[str, str]) -> str:
    """A document with each block in its place; a place for another is a KeyError."""
    return PLACE.sub(lambda place: f"{place[1]}{made[place[2]]}\n{place[3]}", text)


def blocks(results: dict[str, Any]) -> dict[str, str]:
    """Every block, in Markdown."""
    entries = results["comparison"]["contenders"]
    made = {
        "readme": readme(results["comparison"]),
        "machine": machines({f"{name}.json": result["machine"] for name, result in results.items()}),
        "speed": "\n\n".join(
            f"A new table of {rows} rows of {dim}:\n\n{speed_table(entries, (rows, dim))}" for rows, dim in shapes_of(entries)
        ),
        "accuracy": accuracy_table(entries),
        "missing": "\n".join(f"- {words}" for words in not_measured(entries)) or "Nothing is missing.",
        "goals": goals(results["goals"]["rows"]),
    }
    for sweep in results["sweeps"]["sweeps"]:
        if sweep["mode"] == "error":  # a figure shows it
            continue
        stopped = [f"\n\n{titles()[name]} stopped: {reason}" for name, reason in sweep["stopped"].items()]
        made[f"sweep_{sweep['name']}"] = sweep_table(sweep, titles()) + "".join(stopped)
    return made


def readme(comparison: dict[str, Any]) -> str:
    """README's table of a few contenders at the first shape, and its figure."""
    entries = {entry["name"]: entry for entry in comparison["contenders"]}
    rows, dim = shapes_of(entries.values())[0]
    lines = []
    for name in FEW:
        speed = next((one for one in entries.get(name, {}).get("speed", []) if tuple(one["shape"]) == (rows, dim)), None)
        if speed is None:
            continue
        far = next((one for one in entries[name]["accuracy"] if one["position"] == FAR), None)
        error, _, misrounded = accuracy(far)
        lines.append(
            (
                entries[name]["title"],
                quantity(speed["seconds"], False),
                number(speed["to fill"]),
                number(speed["to posenc"]),
                error,
                misrounded,
            )
        )
    headings = (f"a new table, {rows} x {dim}", "time", "time / fill", "time / posenc", f"error at {FAR:,}", "misrounded there")
    about = comparison["machine"]
    return (
        f"{markdown(headings, lines)}\n\n"
        f"![GB/s against the size of the table, with the speed of memory as the roof]({FIGURES}/bench_speed.svg)\n\n"
        f"{about['cpu']}, {about['cores usable']} cores, kernel {about['posenc']['kernel']}, Python "
        f"{about['python'].split()[-1]}, {about['date'][:10]}."
    )


def machines(abouts: dict[str, dict[str, Any]]) -> str:
    """Where the numbers of each file come from; those of one machine and day together."""
    files: dict[str, list[str]] = {}
    for name, about in abouts.items():
        files.setdefault(machine(about), []).append(f"`{name}`")
    return "\n\n".join(f"{', '.join(names)}: {where}" for where, names in files.items())


def machine(about: dict[str, Any]) -> str:
    """Where a run's numbers come from."""
    posenc = about["posenc"]
    versions = ", ".join(f"{package} {version}" for package, version in about["packages"].items())
    return (
        f"{about['date'][:10]}, {about['cpu']}, {about['cores usable']} cores usable; {about['os']}; "
        f"{about['python']}; posenc {posenc['version']}, kernel {posenc['kernel']}, {posenc['threads']} threads; {versions}."
    )


def goals(rows: list[dict[str, Any]]) -> str:
    """The table of goals."""
    lines = []
    for row in rows:
        unit = f" {row['unit']}" if row["unit"] not in ("", "x") else row["unit"]
        goal = "-" if row["goal"] is None else f"{row['sense']} {row['goal']:g}{unit}"
        known = row["value"] is not None
        verdict = row["verdict"].splitlines()[-1]
        between = f"{number(row['low'])} to {number(row['high'])}" if known else "-"
        lines.append((row["name"], row["against"], goal, f"{number(row['value'])}{unit}" if known else "-", between, verdict))
    return markdown(("what", "against", "goal", "result", "quartiles", ""), lines)
