"""The bench: its judge, its contenders, its processes, and that documents say what the results say. Nothing here is timed."""

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import oracle
import pytest
from posenc.bench import comparison, contenders, figures, judge, measure, page, report, sweeps
from posenc.bench.__main__ import main

import posenc

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
POSITIONS = (0, 1, 130_000, 1_000_000)

in_checkout = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="no docs beside the tests")


# ---- the judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", judge.FORMATS)
@pytest.mark.parametrize("position", POSITIONS)
def test_the_judge_rounds_as_the_oracle(position, dtype):
    rows = range(position, position + 8)
    wanted = oracle.entries(rows, range(16), 16, dtype=dtype)
    columns = [judge.interleaved(16, column) for column in range(16)]
    rounded = [[judge.nearest(judge.value(p, x)[is_cosine], dtype)[0] for _, x, is_cosine in columns] for p in rows]
    got = np.array(rounded).astype(dtype)
    assert not oracle.mismatches(got, wanted, rows, range(16), "the judge")
    assert np.array_equal(got.astype(float), rounded)


@pytest.mark.parametrize("dtype", judge.FORMATS)
def test_known_misroundings_are_counted(dtype):
    table = oracle.entries(range(7, 15), range(16), 16, dtype=dtype)
    clean = judge.judged(table, 7, "transformer")
    assert (clean.entries, clean.misrounded) == (128, 0)
    assert 0.4 < clean.ulp <= 0.5
    places = [(0, 0), (3, 1), (7, 0)]  # no powers of two, next to which an ulp is another
    for place in places:
        table[place] = np.nextafter(table[place], table.dtype.type(2.0))
    moved = judge.judged(table, 7, "transformer")
    assert moved.misrounded == len(places)
    assert 0.5 <= moved.ulp <= 1.5
    assert clean.error < moved.error < 1.5 * 2.0 ** -judge.FORMATS[dtype][0]


def test_signs_of_zero_and_what_is_not_finite():
    table = oracle.entries(range(4), range(4), 4, dtype="float32")
    table[0, 0] = -0.0
    assert judge.judged(table, 0, "transformer")._replace(error=0, ulp=0) == (16, 1, 0, 0)
    table[1, 1] = np.nan
    assert judge.judged(table, 0, "transformer") == (16, 2, math.inf, math.inf)
    assert judge.judged(table, 0, "transformer", blank=(0, 1)).misrounded == 0
    assert judge.judged(table, 0, "transformer", blank=(0, 1)).entries == 8


def test_the_distance_is_that_of_the_formula():
    table = np.zeros((1, 2))
    table[0] = 0.0, 1.0
    verdict = judge.judged(table, 1, "transformer")
    assert verdict.misrounded == 2
    assert verdict.error == max(math.sin(1), 1 - math.cos(1))
    assert verdict.ulp == math.sin(1) * 2**53


def test_what_the_judge_does_not_know():
    with pytest.raises(ValueError, match="convention is 'mlx'; the judge knows transformer, "):
        judge.judged(np.zeros((1, 2)), 0, "mlx")
    with pytest.raises(ValueError, match="dtype is int64; the judge knows float64, "):
        judge.judged(np.zeros((1, 2), np.int64), 0, "transformer")


@pytest.mark.parametrize("dtype", judge.FORMATS)
@pytest.mark.parametrize("convention", judge.FORMULAS)
def test_posenc_is_judged_right_in_every_convention(convention, dtype):
    for position in POSITIONS[:3]:
        if convention == "grid: timm":
            table = posenc.grid((2, position + 128), 16, convention="timm", dtype=dtype)[:, position:].reshape(256, 16)
        else:
            table = posenc.convention(convention, 16).table(64, start=position, dtype=dtype)
        assert judge.judged(table, position, convention).misrounded == 0


# ---- contenders ------------------------------------------------------------------------------------------------------


def test_each_contender_is_a_file_that_says_what_it_is():
    folder = Path(contenders.__file__).parent
    assert sorted(contenders.NAMES) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    titles = set()
    for name in contenders.NAMES:
        known = contenders.contender(name)
        assert known.title != name
        assert known.convention in judge.FORMULAS
        titles.add(known.title)
    assert len(titles) == len(contenders.NAMES)
    assert {name for sweep in sweeps.SWEEPS for name in sweep.contenders} | set(page.FEW) <= set(contenders.NAMES)


@pytest.mark.parametrize("name", contenders.NAMES)
def test_a_contender_makes_the_rows_of_its_convention(name):
    known = contenders.contender(name)
    wish = {"name": name, "shapes": [(256, 16)], "positions": [0, 77], "judged": 256, "effort": (0.0, 1)}
    [answer], error = measure.Bench(True, None).asked("compare", json.dumps(wish))  # packages start threads: not in here
    assert not error
    if "skipped" in answer:
        pytest.skip(f"NOT RUN: the contender {name}: {answer['skipped']}")
    for verdict in answer["accuracy"]:
        assert verdict["entries"] == (256 - len(known.blank) * (verdict["position"] == 0)) * (known.judged or 64)
        assert verdict["error"] < 1e-4  # another layout, frequency or position is off by 0.01 and more
        assert name != "posenc_table" or verdict["misrounded"] == 0


@pytest.mark.parametrize("name", contenders.NAMES)
def test_posenc_does_the_task_of_the_contender(name):
    known = contenders.contender(name)
    ours = comparison.ours(known, 256, 16, "float32")().reshape(256, 16)
    assert judge.judged(ours, 0, known.convention).misrounded == 0


MINE = """
import numpy as np

def table(length, dim, start=0):
    angles = np.arange(start, start + length)[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, dim)

def halves(length, dim, start=0):
    rows = table(length, dim, start)
    return np.concatenate([rows[:, 0::2], rows[:, 1::2]], 1).astype(np.float32)

halves.CONVENTION, halves.TITLE, halves.ROWS = "marian", "my halves", 16

def narrow(length, dim, start=0):
    return table(length, dim, start)[:, 1:]

def missing(length, dim, start=0):
    import a_package_that_nobody_has
"""


def test_contenders_of_the_user(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    names = ["mine:table", "mine:halves", "mine:narrow", "mine:missing", "nowhere:table"]
    command = [sys.executable, "-m", "posenc.bench", "--quick", "--only", "e:", "--shape", "32x8", "--json", "out.json"]
    command += [word for name in names for word in ("--contender", name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done.stderr  # two of them fail
    kept = json.loads((tmp_path / "out.json").read_text())
    entries = {entry["name"]: entry for entry in kept["contenders"]}
    assert list(entries) == names
    plain, halves = entries["mine:table"], entries["mine:halves"]
    assert (plain["dtype"], plain["title"], plain["convention"]) == ("float64", "mine:table", "transformer")
    assert (halves["dtype"], halves["title"], halves["convention"]) == ("float32", "my halves", "marian")
    assert [(one["shape"], one["part"], one["bytes"]) for one in plain["speed"]] == [([32, 8], 32, 2048)]
    assert [(one["shape"], one["part"], one["bytes"]) for one in halves["speed"]] == [([32, 8], 16, 1024)]
    for entry in (plain, halves):
        assert [one["position"] for one in entry["accuracy"]] == list(comparison.POSITIONS)
        assert all(one["error"] < 1e-6 for one in entry["accuracy"])
    assert entries["mine:narrow"]["error"] == "ValueError: mine:narrow has shape (8, 7); it should be (8, 8)"
    assert entries["mine:missing"]["skipped"] == "No module named 'a_package_that_nobody_has'"
    assert entries["nowhere:table"]["error"] == "ModuleNotFoundError: No module named 'nowhere'"
    assert "not measured: mine:missing: skipped: No module named 'a_package_that_nobody_has'" in done.stdout
    assert report.speed_table(kept["contenders"], (32, 8)) in done.stdout
    assert report.accuracy_table(kept["contenders"]) in done.stdout


def test_without_mpfr_the_speed_is_still_measured(monkeypatch):
    for name in ("gmpy2", "mpmath"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.endswith("bench.judge")]:
        monkeypatch.delitem(sys.modules, name)
    answer = comparison.measured("python_loop", [(4, 8)], [0], 8, (0.0, 1))
    assert len(answer["speed"]) == 1
    assert answer["accuracy"] == []
    reason = "neither gmpy2 nor mpmath is installed; the judge needs one: pip install gmpy2"
    entry = {"title": "Python loop", "convention": "transformer", **answer}
    assert report.not_measured([entry]) == [f"Python loop: not judged: {reason}"]
    with pytest.raises(Exception, match=reason) as raised:
        next(iter(sweeps.measured("error", "python_loop", [1], (0.0, 1))))
    assert type(raised.value).__name__ == "Skipped"


def test_medians_are_of_ratios_within_a_round():
    made = comparison.summary([[1.0, 2.0, 9.0], [1.0, 4.0, 3.0], [2.0, 2.0, 2.0]], part=5)
    assert (made["seconds"], made["posenc"], made["fill"], made["part"], made["rounds"]) == (2.0, 3.0, 2.0, 5, 3)
    assert (made["to posenc"], made["to fill"]) == (1.0, 1.0)
    assert made["to posenc, quartiles"] == [0.75, 2.0]
    assert comparison.summary([[1.0], [2.0], [4.0]])["to fill, quartiles"] == [0.25, 0.25]


# ---- processes -------------------------------------------------------------------------------------------------------


def test_a_process_that_measures_starts_without_numpy_and_posenc():
    code = measure.START.replace("bench.child.main()", "print(sorted({'numpy', 'posenc', 'json'} & set(sys.modules)))")
    assert code != measure.START
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_answers_and_errors_of_a_process():
    bench = measure.Bench(True, None)
    answers, error = bench.asked("sweep", '{"sweep": "error", "name": "posenc_table", "values": [1, -1e99], "effort": [0, 1]}')
    assert [answer["x"] for answer in answers] == [1]  # what came before the error is kept
    assert error.splitlines()[-1].startswith("TypeError: start ")
    with pytest.raises(measure.Failed, match="start"):
        bench.ask("sweep", '{"sweep": "error", "name": "posenc_table", "values": [-1e99], "effort": [0, 1]}')


def test_goals_still_run(capsys):
    assert main(["goals", "--quick", "--rows", "extra memory"]) == 0
    assert "extra memory, 81920 and 8192 rows" in capsys.readouterr().out
    assert main(["goals", "--rows", "no such row"]) == 2


# ---- sweeps ----------------------------------------------------------------------------------------------------------


def test_each_sweep_measures():
    for sweep in sweeps.SWEEPS:
        if sweep.name in ("dtype", "threads"):  # large tables
            continue
        [point] = sweeps.measured(sweep.name, "posenc_table", sweep.values[:1], (0.0, 1))
        wanted = {"x", "error"} if sweep.mode == "error" else {"x", "seconds", "bytes"}
        wanted |= {"fill"} if sweep.mode in ("warm", "idle") else set()
        assert wanted == set(point)
        assert point["x"] == sweep.values[0]


def test_processes_of_a_sweep():
    known = {sweep.name: sweep for sweep in sweeps.SWEEPS}
    assert list(sweeps.runs(known["threads"], "posenc_table", 3, False)) == [([1], 1), ([2], 2)]
    assert len(list(sweeps.runs(known["cold"], "posenc_table", 3, False))) == sweeps.COLD_ROUNDS * len(sweeps.COLD)
    last = {name: next(sweeps.runs(known["error"], name, 3, False))[0][-1] for name in known["error"].contenders}
    assert last["posenc_table"] == 10_000_000
    assert last["transformers_whisper"] == sweeps.REACH
    assert last["transformers_marian"] == sweeps.SLOW_REACH


def test_repeated_points_are_one():
    points = [{"contender": "a", "x": 1, "seconds": s, "bytes": 4} for s in (3.0, 1.0, 2.0)]
    points.append({"contender": "b", "x": 1, "error": 0.5})
    assert sweeps.merged(points) == [points[0] | {"seconds": 2.0}, points[3]]


# ---- documents and figures -------------------------------------------------------------------------------------------


def stored(monkeypatch):
    if not list(RESULTS.glob("*.json")):
        pytest.skip("no stored results beside the tests: documents are not held against them")
    monkeypatch.setattr(page, "RESULTS", RESULTS)
    return page.stored()


@in_checkout
def test_documents_say_what_the_results_say(monkeypatch):
    made = page.blocks(stored(monkeypatch))
    placed = []
    for name in page.DOCUMENTS:
        words = (ROOT / name).read_text(encoding="utf-8")
        assert page.replaced(words, made) == words, f"{name}: python -m bench report"
        assert len(page.PLACE.findall(words)) == words.count("bench:begin") == words.count("bench:end")
        placed += [place[1] for place in page.PLACE.findall(words)]
    assert sorted({*placed, "readme"}) == sorted(made)


def test_what_stands_in_a_place_is_replaced():
    words = "a\n<!-- bench:begin x -->\nold\n\nold\n<!-- bench:end -->\nb <!-- bench:begin y -->\n<!-- bench:end -->"
    done = page.replaced(words, {"x": "new \\1", "y": "z"})
    assert done == "a\n<!-- bench:begin x -->\nnew \\1\n<!-- bench:end -->\nb <!-- bench:begin y -->\nz\n<!-- bench:end -->"
    assert page.replaced(done, {"x": "new \\1", "y": "z"}) == done
    with pytest.raises(KeyError):
        page.replaced(words, {"x": ""})


@in_checkout
def test_stored_results_are_whole_and_the_table_of_readme_is_short(monkeypatch):
    results = stored(monkeypatch)
    entries = {entry["name"]: entry for entry in results["comparison"]["contenders"]}
    assert set(entries) == set(contenders.NAMES)
    assert {one["misrounded"] for one in entries["posenc_table"]["accuracy"]} == {0}
    assert [sweep["name"] for sweep in results["sweeps"]["sweeps"]] == [sweep.name for sweep in sweeps.SWEEPS]
    assert results["goals"]["rows"]
    rows = [line for line in page.readme(results["comparison"]).splitlines() if line.startswith("| ")]
    assert 3 <= len(rows) <= 12
    assert [line.split(" |")[0].removeprefix("| ").strip() for line in rows[2:]] == [
        entries[name]["title"] for name in page.FEW if "speed" in entries[name]
    ]


@in_checkout
def test_figures_show_the_results(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: the figures are not drawn")
    results = stored(monkeypatch)["sweeps"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a package warns of is not ours
        written = figures.write(results, page.titles(), tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in (ROOT / page.FIGURES).glob("bench_*"))
    points = {sweep["name"]: sweep["points"] for sweep in results["sweeps"]}
    drawn = figures.speed(points, page.titles()).axes[0].get_lines()
    assert [line.get_label() for line in drawn][1:] == [page.titles()[name] for name, _, _ in figures.lines(points["length"])]
    for line, (_, own, _) in zip(drawn[1:], figures.lines(points["length"]), strict=True):
        assert list(line.get_ydata()) == [point["bytes"] / point["seconds"] / 1e9 for point in own]
    families = figures.families(points["error"])
    assert sorted(name for names, _, _ in families for name in names) == sorted({p["contender"] for p in points["error"]})


def test_a_report_needs_a_checkout(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(page, "ROOT", tmp_path)
    assert page.write() == 2
    assert "is no checkout" in capsys.readouterr().err
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    assert page.write() == 1
    assert "there is no comparison.json; python -m bench compare --json" in capsys.readouterr().err


def test_tables_in_markdown():
    lines = report.markdown(("what", "n"), [("a", "1.5"), ("long one", "2")]).splitlines()
    assert lines == ["| what     |   n |", "| -------- | --: |", "| a        | 1.5 |", "| long one |   2 |"]
    assert [report.share(x) for x in (0.0, 1e-4, 0.4321, 1.0)] == ["0", "0.01 %", "43.2 %", "100 %"]
    assert report.accuracy(None) == ("-", "-", "-")
