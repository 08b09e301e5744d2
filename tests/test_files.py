"""Files that the command line writes: what they replace, and what is left of those that are not completed."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command_line import names, one_line, patch_table, saved

from posenc import _cli, _files

pytestmark = pytest.mark.usefixtures("folder")
NEEDS_LINKS = pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege on Windows")


@pytest.fixture
def umask() -> Iterator[int]:
    mask = 0o027
    old = os.umask(mask)
    yield mask
    os.umask(old)


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
        "from posenc import _cli, _cli_write; _cli_write._SLICE_BYTES = 1 << 18; sys.exit(_cli.main(sys.argv[1:]))"
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
        monkeypatch.setattr(_files, "open", opened, raising=False)
    elif moment == "replace":
        monkeypatch.setattr(os, "replace", lambda *args: interrupt())
    else:
        patch_table(monkeypatch, interrupt)
    assert _cli.main(["table", "100", "4", *existing]) == 130
    assert one_line(capsys) == "posenc: interrupted\n"


@pytest.mark.parametrize(
    ("name", "code", "message"), [("SIGINT", 130, "posenc: interrupted\n"), ("SIGTERM", 143, ""), ("SIGHUP", 129, "")]
)
@pytest.mark.parametrize("argv", [["table", "100", "4"], ["encode", "positions.npy", "4"], ["add", "x.in"]])
def test_signal(name: str, code: int, message: str, argv: list[str], existing: list[str], tmp_path: Path) -> None:
    """The signal itself, in the second slice."""
    if name != "SIGINT" and os.name == "nt":
        pytest.skip("Windows ends processes without asking them")
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    np.save(inputs / "positions.npy", np.arange(100))
    np.save(inputs / "x.npy", np.ones((100, 4), np.float32))
    argv = [{"positions.npy": str(inputs / "positions.npy"), "x.in": str(inputs / "x.npy")}.get(word, word) for word in argv]
    program = f"""if True:
        import signal, sys
        from posenc import _cli, _cli_write
        signal.signal(signal.{name}, signal.default_int_handler if "{name}" == "SIGINT" else signal.SIG_DFL)
        def interrupted(function):
            def slices(*args, **keywords):
                for i, part in enumerate(function(*args, **keywords)):
                    if i == 1:
                        signal.raise_signal(signal.{name})
                    yield part
            return slices
        for name in ("_table_slices", "_encode_slices", "_sums_of"):
            setattr(_cli_write, name, interrupted(getattr(_cli_write, name)))
        _cli_write._SLICE_BYTES = 100
        sys.exit(_cli.main(sys.argv[1:]))"""
    done = subprocess.run(
        [sys.executable, "-c", program, *argv, *existing], capture_output=True, text=True, timeout=60, check=False
    )
    shutil.rmtree(inputs)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_signal_that_is_ignored() -> None:
    """As under nohup: it stays so."""
    program = """if True:
        import signal, sys
        from posenc import Encoding, _cli
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        table = Encoding.table
        def interrupted(self, *args, **keywords):
            signal.raise_signal(signal.SIGHUP)
            return table(self, *args, **keywords)
        Encoding.table = interrupted
        code = _cli.main(sys.argv[1:])
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        sys.exit(code)"""
    command = [sys.executable, "-c", program, "table", "3", "4", "-o", "x.npy", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path("x.npy").read_bytes() == saved(3, 4)
