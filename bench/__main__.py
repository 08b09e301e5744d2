"""``python -m bench``: measure, print, and write if asked. A goal that is missed is no error; a row that fails is one."""

import argparse
import json
import sys
from pathlib import Path

from bench.measure import Bench, Failed, Result
from bench.report import HEADINGS, as_json, cells, line, print_machine
from bench.rows import ROWS


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="The speed and memory of posenc against its goals.")
    parser.add_argument("--rows", metavar="SUBSTRING", default="", help="only rows whose name or reference contains it")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results there")
    parser.add_argument("--threads", metavar="N", type=int, help="threads where a row does not say (default: posenc's)")
    return parser.parse_args()


def main() -> int:
    """The exit code."""
    options = arguments()
    chosen = [i for i, row in enumerate(ROWS) if options.rows.lower() in f"{row.name} | {row.against}".lower()]
    if not chosen:
        print(f"no row contains {options.rows!r}", file=sys.stderr)
        return 2
    bench = Bench(options.quick, options.threads)
    try:
        about = bench.ask("machine")
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
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
    if options.json:
        options.json.write_text(json.dumps(as_json(about, results), indent=2) + "\n")
    return 1 if errors else 0


sys.exit(main())
