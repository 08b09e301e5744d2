"""The command line: files by bytes against what NumPy saves of `posenc.table`, errors by line, exit code and what is left."""

import errno
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from command_line import ENCODING_TABLE, names, one_line, patch_table, run, saved

import posenc
from posenc import _cli, _cli_write, _threads

pytestmark = pytest.mark.usefixtures("folder")
BIG_TABLE = ["table", "100000", "16", "-o", "-"]

# ---- what is written -------------------------------------------------------------------------------------------------

OPTIONS: list[tuple[list[str], dict[str, Any]]] = [
    ([], {}),
    (["--dtype", "float64"], {"dtype": "float64"}),
    (["--dtype=float32", "--start", "-3"], {"start": -3}),
    (["--start", str(2**63 - 64)], {"start": 2**63 - 64}),
    (["--base", "500.5"], {"base": 500.5}),
    (["--layout", "concatenated"], {"layout": "concatenated"}),
    (
        ["--layout=concatenated", "--base=1e6", "--start=7", "--dtype=f8", "--force"],
        {"layout": "concatenated", "base": 1e6, "start": 7, "dtype": "float64"},
    ),
]


@pytest.mark.parametrize(("length", "dim"), [(0, 4), (1, 1), (7, 5), (64, 8)])
@pytest.mark.parametrize(("options", "keywords"), OPTIONS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_file(length: int, dim: int, options: list[str], keywords: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["table", str(length), str(dim), "-o", "x.npy", *options]) == 0
    assert Path("x.npy").read_bytes() == saved(length, dim, **keywords)
    assert names() == ["x.npy"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("slice_bytes", [1, 16, 100, 1000])
def test_slices(slice_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is made of slices, of a row at least and of no more than was said, through one buffer."""
    dim, length, buffers, lengths = 4, 25, set(), []

    def table(self: posenc.Encoding, rows: int, **keywords: Any) -> Any:
        result = ENCODING_TABLE(self, rows, **keywords)
        assert result.nbytes == rows * 4 * dim <= max(slice_bytes, 4 * dim)
        lengths.append(rows)
        buffers.add(result.__array_interface__["data"][0])
        return result

    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", slice_bytes)
    with monkeypatch.context() as patch:
        patch.setattr(posenc.Encoding, "table", table)
        assert _cli.main(["table", str(length), str(dim), "-o", "x.npy", "--start", "1000"]) == 0
    assert Path("x.npy").read_bytes() == saved(length, dim, start=1000)
    assert sum(lengths) == length
    assert len(buffers) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_summary(dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line; the clock is stopped when the file is there."""
    there = []

    def clock() -> float:
        there.append(os.path.exists("x.npy"))
        return 10.0 + 2.5 * len(there)

    monkeypatch.setattr(_cli_write, "time", SimpleNamespace(perf_counter=clock))
    assert _cli.main(["table", "3000", "100", "-o", "x.npy", "--dtype", dtype]) == 0
    nbytes = 300_000 * np.dtype(dtype).itemsize
    gigabytes = {"float32": "0.00048", "float64": "0.00096"}[dtype]
    assert capsys.readouterr().out == f"shape (3000, 100), {dtype}, {nbytes} bytes, 2.5 s, {gigabytes} GB/s\n"
    assert there == [False, True]


# ---- bad arguments ---------------------------------------------------------------------------------------------------

BAD: list[tuple[list[str], str]] = [
    (["-1", "4"], "length is -1; it must be at least 0"),
    (["1.5", "4"], "argument LENGTH: invalid int value: '1.5'"),
    (["many", "4"], "argument LENGTH: invalid int value: 'many'"),
    ([str(2**63), "4"], f"length is {2**63}; it must be an int64"),
    (["2", "0"], "dim is 0; it must be at least 1"),
    (["2", "-4"], "dim is -4; it must be at least 1"),
    (["2", "wide"], "argument DIM: invalid int value: 'wide'"),
    (["2", str(2**63)], f"dim is {2**63}; it must be an int64"),
    (["2"], "arguments are required: DIM"),
    (["2", "4", "6"], "unrecognized arguments: 6"),
    (["2", "4", "a\nb"], "unrecognized arguments: a b"),
    (["2", "4", "--start", "x"], "argument --start: invalid int value: 'x'"),
    (["2", "4", "--start", str(2**63)], f"start is {2**63}; it must be an int64"),
    (["2", "4", "--start", str(-(2**63) - 1)], f"start is {-(2**63) - 1}; it must be an int64"),
    (["2", "4", "--start", str(2**63 - 1)], f"start is {2**63 - 1} and length 2; the last position"),
    ([str(2**63 - 1), "4", "--start", "2"], f"start is 2 and length {2**63 - 1}; the last position"),
    (["2", "4", "--dtype", "int32"], "dtype is 'int32'; it must be"),
    (["2", "4", "--dtype", "nonsense"], "dtype is 'nonsense'; it must be"),
    (["2", "4", "--dtype", ">f4" if sys.byteorder == "little" else "<f4"], "dtype is"),
    (["2", "4", "--layout", "round"], "layout is 'round'; it must be one of 'interleaved', 'concatenated'"),
    (["2", "4", "--base", "ten"], "argument --base: invalid float value: 'ten'"),
    (["2", "4", "--base", "0"], "base is 0.0; it must be positive"),
    (["2", "4", "--base", "-2.5"], "base is -2.5; it must be positive"),
    (["2", "4", "--base", "nan"], "base is nan; it must be finite"),
    (["2", "4", "--base", "1e999"], "base is inf; it must be finite"),
    (["2", "40", "--base", "1e300"], "base=1e+300): the smallest frequency"),
    (["2", "40", "--base", "1e-300"], "the farthest position is 1 from 0, and the largest frequency"),
    (["2", "4", "--wide"], "unrecognized arguments: --wide"),
    (["2", "4", "--forc"], "unrecognized arguments: --forc"),
]


@pytest.mark.parametrize(("argv", "message"), BAD, ids=[" ".join(argv) for argv, _ in BAD])
def test_bad_argument(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["table", *argv, "-o", "x.npy"]) == 2
    assert message in one_line(capsys)
    assert names() == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--base", str(2.0**-112)], "the farthest position is 999 from 0, and the largest frequency"),
        (["--start", str(2**63 - 999)], f"start is {2**63 - 999} and length 1000; the last position"),
    ],
)
def test_bad_last_row(
    argv: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong with the last row only is found before the first is made."""
    patch_table(monkeypatch, lambda number: pytest.fail("there are rows already"))
    assert _cli.main(["table", "1000", "4", "-o", "x.npy", *argv]) == 2
    assert message in one_line(capsys)
    assert names() == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "arguments are required: COMMAND"),
        (["chair"], "argument COMMAND: invalid choice: 'chair'"),
        (["table"], "arguments are required: LENGTH, DIM, -o/--output"),
        (["table", "2", "4"], "arguments are required: -o/--output"),
        (["table", "2", "4", "-o"], "argument -o/--output: expected one argument"),
    ],
)
def test_bad_command(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(argv) == 2
    assert message in one_line(capsys)
    assert names() == []


def test_bad_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if not posenc.show_config("dicts")["openmp"]:
        pytest.skip("this build is serial: it does not read POSENC_NUM_THREADS")
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    monkeypatch.setenv("POSENC_NUM_THREADS", "two")
    assert _cli.main(["table", "2", "4", "-o", "x.npy"]) == 2
    assert "POSENC_NUM_THREADS is 'two'" in one_line(capsys)
    assert names() == []


# ---- as a process ----------------------------------------------------------------------------------------------------


def test_process() -> None:
    done = run("table", "20000", "64", "-o", "x.npy", "--dtype", "float64")  # more than the threads' threshold
    assert (done.returncode, done.stderr) == (0, "")
    number = r"\d+(\.\d+)?(e[+-]\d+)?"
    assert re.fullmatch(rf"shape \(20000, 64\), float64, 10240000 bytes, {number} s, {number} GB/s\n", done.stdout)
    assert Path("x.npy").read_bytes() == saved(20000, 64, dtype="float64")
    again = run("table", "20000", "64", "-o", "x.npy")
    message = "posenc: output is 'x.npy'; it exists, and only --force replaces it\n"
    assert (again.returncode, again.stdout, again.stderr) == (2, "", message)
    assert names() == ["x.npy"]


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["table", "-1", "4", "-o", "x.npy"], 2, "posenc: length is -1; it must be at least 0\n"),
        (["table", "2", "x", "-o", "x.npy"], 2, "posenc: argument DIM: invalid int value: 'x'\n"),
        ([], 2, "posenc: the following arguments are required: COMMAND\n"),
    ],
)
def test_process_that_fails(argv: list[str], code: int, message: str) -> None:
    done = run(*argv)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)
    assert names() == []


COMMANDS = {
    "table": "output start dtype force threads quiet json convention extra base layout cos-first odd amplitude",
    "encode": "output dtype force threads quiet json convention extra base layout cos-first odd amplitude",
    "add": "output scale axis start positions force threads quiet json convention extra base layout cos-first odd amplitude",
    "conventions": "dim position json",
    "info": "json",
    "plot": "output force dim length start width height dpi convention extra base layout cos-first odd amplitude",
    "verify": "convention base first sample strict json",
}


def test_help_of_all() -> None:
    assert (run("--version").stdout, run("--version").returncode) == (f"posenc {posenc.__version__}\n", 0)
    text = run("--help").stdout
    assert re.search(r"^ +table +write a table", text, re.MULTILINE)
    assert {int(code) for code in re.findall(r"\b\d+\b", text.split("exit codes: ")[1])} == {0, 1, 2, 3, 4, 130, 141, 143}
    listed = re.findall(r"^ {4}(\w+)(?: |$)", text, re.MULTILINE)
    assert set(listed) >= {*COMMANDS, "bench"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    done = run(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    about, examples = done.stdout.split("\nexamples:\n")
    assert set(re.findall(r"--([a-z-]+)", about)) == {"help", *COMMANDS[command].split()}
    assert 1 <= examples.count(f"posenc {command}") <= 3


@pytest.mark.parametrize("command", ["table", "encode", "add"])
def test_examples_of_help_are_right(command: str, folder: Path) -> None:
    """Those that write, but for input from a pipe, with small files of the names that they read."""
    np.save("positions.npy", [1, 2])
    Path("timesteps.txt").write_text("0.5 7")
    np.save("embeddings.npy", np.ones((3, 2, 512), np.float32))
    np.save("packed.npy", np.ones((2, 512), np.float32))
    examples = re.findall(rf"^  posenc ({command} .*?)(?: {{2,}}|$)", run(command, "--help").stdout, re.MULTILINE)
    assert examples
    for example in examples:
        assert _cli.main([*example.split(), *["--force"] * ("--force" not in example)]) == 0, example


# ---- standard output -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 3, 300])
def test_standard_output(length: int) -> None:
    command = [sys.executable, "-m", "posenc", "table", str(length), "4", "-o", "-"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, saved(length, 4), b"")
    assert names() == []


def test_standard_output_is_not_for_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["table", "2", "4", "-o", "-", "--json"]) == 2
    assert one_line(capsys) == "posenc: output is '-' and --json given; standard output holds one of them\n"


def test_standard_output_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert _cli.main(["table", "2", "4", "-o", "-"]) == 2
    assert "output is '-'; standard output is a terminal" in one_line(capsys)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE and other errors")
@pytest.mark.parametrize(
    "argv", [["--help"], ["--version"], ["info"], ["conventions", "--json"], ["table", "9", "4", "-o", "-"], BIG_TABLE]
)
def test_nobody_reads(argv: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "posenc", *argv]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # else argparse sees to it
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False, env=buffered)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here: a full device is not tried")
@pytest.mark.parametrize("argv", [["info"], ["table", "9", "4", "-o", "-"], BIG_TABLE])
def test_full_device(argv: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "posenc", *argv]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False, text=True)
    assert done.returncode == 1
    assert re.fullmatch(rf"posenc: .*{os.strerror(errno.ENOSPC)}\n", done.stderr)


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["table", "2", "4", "-o", "x.npy", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(_cli_write, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    argv = ["table", "30", "4", "-o", "x.npy", "--dtype", "float16", "--convention", "whisper", "--json", "--quiet"]
    assert _cli.main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    encoding = told.pop("encoding")
    names_of_repr = {"Encoding": posenc.Encoding, "frequencies": posenc.frequencies}
    assert eval(encoding, names_of_repr) == posenc.convention("whisper", 4)
    assert told == {"output": "x.npy", "shape": [30, 4], "dtype": "float16", "bytes": 240, "seconds": 2.5}


# ---- progress --------------------------------------------------------------------------------------------------------


class Bar:
    """What is asked of tqdm."""

    bars: ClassVar[list["Bar"]] = []

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.updates: list[int] = []
        self.is_open = False
        self.bars.append(self)

    def __enter__(self) -> "Bar":
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def update(self, n: int) -> None:
        assert self.is_open
        self.updates.append(n)


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    monkeypatch.setattr(Bar, "bars", [])
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))  # type: ignore[arg-type]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return Bar.bars


def test_progress(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", 64)
    assert _cli.main(["table", "25", "4", "-o", "x.npy"]) == 0
    [bar] = bars
    assert bar.updates == [64] * 6 + [16]
    assert (bar.options["total"], bar.options["file"], bar.is_open) == (400, sys.stderr, False)


def test_progress_ends_with_an_interrupt(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    patch_table(monkeypatch, interrupt)
    assert _cli.main(["table", "25", "4", "-o", "x.npy"]) == 130
    assert [bar.is_open for bar in bars] == [False]


@pytest.mark.parametrize("reason", ["quiet", "no terminal", "no tqdm"])
def test_no_progress(reason: str, bars: list[Bar], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if reason == "no terminal":
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    elif reason == "no tqdm":
        monkeypatch.setitem(sys.modules, "tqdm", None)
    assert _cli.main(["table", "25", "4", "-o", "x.npy", *["--quiet"] * (reason == "quiet")]) == 0
    assert bars == []
    assert capsys.readouterr().err == ""
    assert Path("x.npy").read_bytes() == saved(25, 4)


def test_progress_on_a_terminal() -> None:
    """The bar of tqdm itself, which is gone at the end."""
    pytest.importorskip("tqdm", reason="tqdm is not installed: its bar is not looked at")
    pty = pytest.importorskip("pty", reason="no terminals here to show a bar on")
    ours, theirs = pty.openpty()
    import_module("termios").tcsetwinsize(theirs, (25, 80))
    code = (
        "import sys; from posenc import _cli, _cli_options, _cli_write\n"
        "_cli_options.BAR_AFTER, _cli_write._SLICE_BYTES = 0, 64; sys.exit(_cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-W", "error", "-c", code, "table", "25", "4", "-o", "x.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False)
    os.set_blocking(ours, False)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert "0%|" in shown
    assert "/400" in shown
    assert shown.rstrip("\r").rpartition("\r")[2].strip() == ""
