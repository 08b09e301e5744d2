"""What the tests of the command line share."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import posenc
from posenc import _cli, _cli_write

ENCODING_TABLE = posenc.Encoding.table


def saved(*args: Any, **keywords: Any) -> bytes:
    """The .npy file of a table."""
    return array_bytes(posenc.table(*args, **keywords))


def array_bytes(array: Any) -> bytes:
    """The .npy file that NumPy makes of an array."""
    file = io.BytesIO()
    np.save(file, array)
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

    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", 100)
    monkeypatch.setattr(posenc.Encoding, "table", table)


def run(*argv: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own."""
    command = [sys.executable, "-m", "posenc", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **keywords)


def written(*argv: str) -> bytes:
    """The file that a command writes, whose output is to be x.npy."""
    assert _cli.main([*argv, "-o", "x.npy", "--quiet"]) == 0
    return Path("x.npy").read_bytes()


def piped(given: bytes, *argv: str) -> bytes:
    """The same, in a process of its own, with standard input."""
    command = [sys.executable, "-m", "posenc", *argv, "-o", "x.npy", "--quiet"]
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return Path("x.npy").read_bytes()
