"""The command line: files by bytes against what NumPy saves of `posenc.table`, errors by line, exit code and what is left."""

import errno
import io
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import posenc
from posenc import _cli, _threads

ENCODING_TABLE = posenc.Encoding.table
NEEDS_LINKS = pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def umask() -> Iterator[int]:
    mask = 0o027
    old = os.umask(mask)
    yield mask
    os.umask(old)


def saved(*args: Any, **keywords: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, posenc.table(*args, **keywords))
    return file.getvalue()


def names() -> list[str]:
    return sorted(os.listdir())


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error, which is a line on stderr and all that is said."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("posenc: ")
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1
    return said.err


def patch_table(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], object]) -> None:
    """Call ``before`` with the number of the call, from 1, ahead of each slice of a table; slices are of a few rows."""
    calls = 0

    def table(self: posenc.Encoding, *args: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        before(calls)
        return ENCODING_TABLE(self, *args, **keywords)

    monkeypatch.setattr(_cli, "_SLICE_BYTES", 100)
    monkeypatch.setattr(posenc.Encoding, "table", table)


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

    monkeypatch.setattr(_cli, "_SLICE_BYTES", slice_bytes)
    with monkeypatch.context() as patch:
        patch.setattr(posenc.Encoding, "table", table)
        assert _cli.main(["table", str(length), str(dim), "-o", "x.npy", "--start", "1000"]) == 0
    assert Path("x.npy").read_bytes() == saved(length, dim, start=1000)
    assert sum(lengths) == length
    assert len(buffers) == 1


def test_new_file_grows_beside_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same folder, so that it can take its place at once; the old one is there until then."""
    Path("x.npy").write_bytes(b"precious")
    seen = []
    patch_table(monkeypatch, lambda number: seen.append([Path("x.npy").read_bytes(), *map(os.path.getsize, names())]))
    assert _cli.main(["table", "100", "4", "-o", "x.npy", "--force"]) == 0
    assert len(seen) > 10
    for old, *sizes in seen:
        assert old == b"precious"
        assert len(sizes) == 2
        assert 8 in sizes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_summary(dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line; the clock is stopped when the file is there."""
    there = []

    def clock() -> float:
        there.append(os.path.exists("x.npy"))
        return 10.0 + 2.5 * len(there)

    monkeypatch.setattr(_cli, "time", SimpleNamespace(perf_counter=clock))
    assert _cli.main(["table", "3000", "100", "-o", "x.npy", "--dtype", dtype]) == 0
    nbytes = 300_000 * np.dtype(dtype).itemsize
    gigabytes = {"float32": "0.00048", "float64": "0.00096"}[dtype]
    assert capsys.readouterr().out == f"shape (3000, 100), {dtype}, {nbytes} bytes, 2.5 s, {gigabytes} GB/s\n"
    assert there == [False, True]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_permissions_of_a_new_file(umask: int) -> None:
    assert _cli.main(["table", "2", "4", "-o", "x.npy"]) == 0
    assert stat.S_IMODE(os.stat("x.npy").st_mode) == 0o666 & ~umask


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
@pytest.mark.parametrize("mode", [0o600, 0o666, 0o755])
def test_permissions_of_a_replaced_file(mode: int, umask: int) -> None:
    Path("x.npy").touch()
    os.chmod("x.npy", mode)
    assert _cli.main(["table", "2", "4", "-o", "x.npy", "--force"]) == 0
    assert stat.S_IMODE(os.stat("x.npy").st_mode) == mode


def test_existing_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.npy").write_bytes(b"precious")
    argv = ["table", "2", "4", "-o", "x.npy"]
    assert _cli.main(argv) == 2
    assert one_line(capsys) == "posenc: output is 'x.npy'; it exists, and only --force replaces it\n"
    assert Path("x.npy").read_bytes() == b"precious"
    with open("x.npy", "rb") as before:
        assert _cli.main([*argv, "--force"]) == (0 if os.name != "nt" else 1)  # Windows does not replace an open file
        assert before.read() == b"precious"  # who has it open still reads the old one, whole
    assert _cli.main([*argv, "--force"]) == 0
    assert Path("x.npy").read_bytes() == saved(2, 4)
    assert names() == ["x.npy"]


@NEEDS_LINKS
@pytest.mark.parametrize("there", [True, False])
def test_symbolic_link(there: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A link is an existing file, even if it leads nowhere; --force replaces what it leads to, and leaves the link."""
    os.mkdir("data")
    os.symlink(os.path.join("data", "x.npy"), "link")
    if there:
        Path("data", "x.npy").write_bytes(b"precious")
    argv = ["table", "2", "4", "-o", "link"]
    assert _cli.main(argv) == 2
    assert "'link'; it exists" in one_line(capsys)
    assert _cli.main([*argv, "--force"]) == 0
    assert os.readlink("link") == os.path.join("data", "x.npy")
    assert Path("data", "x.npy").read_bytes() == saved(2, 4)
    assert (names(), os.listdir("data")) == (["data", "link"], ["x.npy"])


@NEEDS_LINKS
@pytest.mark.parametrize("target", ["link", os.path.join("missing", "x.npy"), "."])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_symbolic_link_to_what_cannot_be_written(target: str, force: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    os.symlink(target, "link")
    assert _cli.main(["table", "2", "4", "-o", "link", *force]) == 2
    assert "output is 'link'; " in one_line(capsys)
    assert names() == ["link"]
    assert os.readlink("link") == target


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_special_file(force: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert _cli.main(["table", "2", "4", "-o", "pipe", *force]) == 2
    assert one_line(capsys) == "posenc: output is 'pipe'; it exists and is not a regular file\n"
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert names() == ["pipe"]


@pytest.mark.skipif(os.name == "nt", reason="Windows limits paths, not names")
def test_longest_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longest = os.pathconf(folder, "PC_NAME_MAX")
    assert _cli.main(["table", "2", "4", "-o", "x" * longest]) == 0
    capsys.readouterr()
    assert _cli.main(["table", "2", "4", "-o", "x" * (longest + 1)]) == 2
    assert os.strerror(errno.ENAMETOOLONG) in one_line(capsys)
    assert names() == ["x" * longest]


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
    ("output", "message"),
    [
        ("", "output is ''; it must name a file"),
        (".", "output is '.'; it must name a file"),
        ("folder", "output is 'folder'; it must name a file"),
        ("new/", "output is 'new/'; it must name a file"),
        ("missing/x.npy", "output is 'missing/x.npy'; there is no directory"),
        ("file/x.npy", "output is 'file/x.npy'; there is no directory"),
        ("x\0.npy", "output is 'x\\x00.npy'; "),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_bad_output(output: str, message: str, force: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("folder")
    Path("file").touch()
    assert _cli.main(["table", "2", "4", "-o", output, *force]) == 2
    assert message in one_line(capsys)
    assert (names(), os.listdir("folder")) == (["file", "folder"], [])


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


# ---- when the machine or the user ends it ----------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["new", "force"])
def existing(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Options of a command that fails; afterwards there is what was there before, and nothing else."""
    before = []
    if request.param:
        Path("x.npy").write_bytes(b"precious")
        before = [b"precious"]
    yield ["-o", "x.npy", *["--force"] * request.param]
    assert [Path(name).read_bytes() for name in names()] == before


@pytest.mark.parametrize(("error", "message"), [(MemoryError(), "not enough memory"), (MemoryError("too wide"), "too wide")])
@pytest.mark.parametrize("call", [1, 3])
def test_no_memory(
    error: MemoryError,
    message: str,
    call: int,
    existing: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(number: int) -> None:
        if number == call:
            raise error

    patch_table(monkeypatch, fail)
    assert _cli.main(["table", "100", "4", *existing]) == 1
    assert one_line(capsys) == f"posenc: {message}\n"


@pytest.mark.parametrize(("length", "dim"), [(2**62, 1), (2**40, 2**40), (1, 2**58)])
def test_larger_than_any_disk(length: int, dim: int, existing: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["table", str(length), str(dim), *existing]) == 1
    assert f"output is 'x.npy'; it takes {4 * length * dim} bytes, and " in one_line(capsys)


def test_no_room_on_the_disk(existing: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**6, free=1599))
    assert _cli.main(["table", "100", "4", *existing]) == 1
    assert one_line(capsys) == "posenc: output is 'x.npy'; it takes 1600 bytes, and 1599 are free there\n"


def test_disk_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=0, free=0))
    assert _cli.main(["table", "100", "4", "-o", "x.npy"]) == 0
    assert Path("x.npy").read_bytes() == saved(100, 4)


def test_write_that_fails(existing: list[str]) -> None:
    """The system refuses the file's second megabyte."""
    resource = pytest.importorskip("resource", reason="no limit on the size of files here")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, {limit}))\n"
        "from posenc import _cli; _cli._SLICE_BYTES = 1 << 18; sys.exit(_cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "table", "100000", "4", *existing], capture_output=True, text=True, timeout=60, check=False
    )
    message = f"posenc: output is 'x.npy'; it cannot be written: {os.strerror(errno.EFBIG)}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root and Windows write to any directory")
def test_directory_that_may_not_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("closed", 0o555)
    assert _cli.main(["table", "2", "4", "-o", os.path.join("closed", "x.npy")]) == 1
    assert os.strerror(errno.EACCES) in one_line(capsys)
    assert os.listdir("closed") == []


def test_file_made_meanwhile(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    patch_table(monkeypatch, lambda number: Path("x.npy").write_bytes(b"precious"))
    assert _cli.main(["table", "100", "4", "-o", "x.npy"]) == 2
    assert "it exists" in one_line(capsys)
    assert names() == ["x.npy"]
    assert Path("x.npy").read_bytes() == b"precious"


@pytest.mark.parametrize("moment", ["open", "first slice", "a later slice", "replace"])
def test_interrupt(
    moment: str, existing: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(number: int = 0, *_: Any) -> None:
        if number in (0, {"first slice": 1, "a later slice": 3}.get(moment)):
            raise KeyboardInterrupt

    def opened(*args: Any) -> None:
        open(*args).close()
        interrupt()

    if moment == "open":
        monkeypatch.setattr(_cli, "open", opened, raising=False)
    elif moment == "replace":
        monkeypatch.setattr(os, "replace", lambda *args: interrupt())
    else:
        patch_table(monkeypatch, interrupt)
    assert _cli.main(["table", "100", "4", *existing]) == 130
    assert one_line(capsys) == "posenc: interrupted\n"


def test_signal(existing: list[str]) -> None:
    """Ctrl-C itself, in the second slice."""
    code = """if True:
        import signal, sys
        from posenc import Encoding, _cli
        signal.signal(signal.SIGINT, signal.default_int_handler)
        table = Encoding.table
        def interrupted(self, rows, out=None, **keywords):
            if out is not None:
                signal.raise_signal(signal.SIGINT)
            return table(self, rows, out=out, **keywords)
        Encoding.table = interrupted
        _cli._SLICE_BYTES = 100
        sys.exit(_cli.main(sys.argv[1:]))"""
    done = subprocess.run(
        [sys.executable, "-c", code, "table", "100", "4", *existing], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "posenc: interrupted\n")


# ---- as a process ----------------------------------------------------------------------------------------------------


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "posenc", *argv], capture_output=True, text=True, timeout=60, check=False)


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


def test_help() -> None:
    assert (run("--version").stdout, run("--version").returncode) == (f"posenc {posenc.__version__}\n", 0)
    assert re.search(r"^ +table +write a table", run("--help").stdout, re.MULTILINE)
    options = set(re.findall(r"--[a-z]+", run("table", "--help").stdout))
    assert options == {"--help", "--output", "--start", "--dtype", "--base", "--layout", "--force"}
