"""``python -m bench``: measure, print, and write if asked. A goal that is missed is no error; what fails to run is one."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import comparison, sweeps
from .contenders import NAMES, contender
from .measure import Bench, Failed, Result
from .report import (
    HEADINGS,
    accuracy_table,
    as_json,
    cells,
    line,
    not_measured,
    print_machine,
    shapes_of,
    speed_table,
    sweep_table,
)
from .rows import ROWS


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m bench", description="The speed and accuracy of posenc and of others.")
    commands = made.add_subparsers(dest="command", metavar="COMMAND")
    compare = commands.add_parser("compare", help="posenc beside other ways to the same table; also without COMMAND")
    goals = commands.add_parser("goals", help="posenc's speed and memory against its goals")
    sweep = commands.add_parser("sweeps", help="speed and accuracy over sizes, dtypes, threads, pauses, positions")
    commands.add_parser("report", help="figures, docs/benchmark.md and README's block from bench/results/*.json")
    for one in (made, compare):
        one.add_argument("--contender", metavar="MODULE:FUNCTION", action="append", default=[], help="a further contender")
        one.add_argument("--shape", metavar="ROWSxDIM", type=shape, action="append", help="instead of 8192x1024 and 512x512")
        one.add_argument("--only", metavar="SUBSTRING", default="", help="only contenders whose name contains it")
    goals.add_argument("--rows", metavar="SUBSTRING", default="", help="only rows whose name or reference contains it")
    sweep.add_argument("--only", metavar="SUBSTRING", default="", help="only sweeps whose name contains it")
    for one in (made, compare, goals, sweep):
        one.add_argument("--quick", action="store_true", help="fewer repetitions")
        one.add_argument("--json", metavar="FILE", type=Path, help="also write the results there")
        one.add_argument("--threads", metavar="N", type=int, help="posenc's threads where nothing else says (default: its own)")
    return made


def shape(text: str) -> tuple[int, int]:
    """ROWSxDIM."""
    rows, dim = map(int, text.split("x"))
    if rows < 1 or dim < 1:
        raise ValueError
    return rows, dim


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = parser().parse_args(arguments)
    if options.command == "report":
        from .page import write

        return write()
    bench = Bench(options.quick, options.threads)
    try:
        about = bench.ask("machine")
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    commands = {"goals": goals, "sweeps": sweep}
    found, code = commands.get(options.command, compare)(options, bench, about)
    if options.json and found is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return code


def compare(options: argparse.Namespace, bench: Bench, about: dict[str, Any]) -> tuple[Any, int]:
    """The comparison."""
    names = [name for name in (*NAMES, *options.contender) if options.only.lower() in name.lower()]
    if not names:
        print(f"no contender contains {options.only!r}", file=sys.stderr)
        return None, 2
    sys.path.insert(0, "")  # a user's module is looked for where its process looks
    entries = comparison.compared(bench, names, options.shape, quick=options.quick, tell=to_stderr)
    print_machine(about)
    for rows, dim in shapes_of(entries):
        print(f"A new table of {rows} rows of {dim}:\n\n{speed_table(entries, (rows, dim))}\n")
    print(f"Rows from a position on, against MPFR:\n\n{accuracy_table(entries)}")
    for words in not_measured(entries):
        print(f"\nnot measured: {words}")
    return {"machine": about, "contenders": entries}, int(any("error" in entry for entry in entries))


def sweep(options: argparse.Namespace, bench: Bench, about: dict[str, Any]) -> tuple[Any, int]:
    """The sweeps."""
    made = sweeps.swept(bench, about["cores usable"], options.only, quick=options.quick, tell=to_stderr)
    if not made:
        print(f"no sweep contains {options.only!r}", file=sys.stderr)
        return None, 2
    print_machine(about)
    titles = {name: contender(name).title for name in NAMES}
    for one in made:
        print(f"{one['name']}: {one['x']} {one['what']}\n\n{sweep_table(one, titles)}\n")
        for name, reason in one["stopped"].items():
            print(f"{titles[name]} stopped: {reason}\n")
    failed = any(not reason.startswith("skipped") for one in made for reason in one["stopped"].values())
    return {"machine": about, "sweeps": made}, int(failed)


def goals(options: argparse.Namespace, bench: Bench, about: dict[str, Any]) -> tuple[Any, int]:
    """The table of goals."""
    chosen = [i for i, row in enumerate(ROWS) if options.rows.lower() in f"{row.name} | {row.against}".lower()]
    if not chosen:
        print(f"no row contains {options.rows!r}", file=sys.stderr)
        return None, 2
    print_machine(about)
    print(line(HEADINGS), flush=True)
    results: dict[int, Result] = {}
    for i in chosen:
        results[i] = bench.result(i, about["posenc"]["kernel"])
        print(line(cells(ROWS[i], results[i])), flush=True)
    verdicts = [result.verdict.partition(":")[0] for result in results.values()]
    print("\n" + ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)))
    errors = [result.verdict for result in results.values() if result.verdict.startswith("error")]
    for error in {words.splitlines()[-1]: words for words in errors}.values():  # once each
        print(f"\n{error}", file=sys.stderr)
    return as_json(about, results), int(bool(errors))


def to_stderr(words: str) -> None:
    """What is being measured, for those who wait."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
