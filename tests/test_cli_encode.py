"""``posenc encode``, and how numbers are read: files by bytes against what NumPy saves of `posenc.encode`."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import array_bytes, names, one_line, piped, written

import posenc
from posenc import _cli, _files

pytestmark = pytest.mark.usefixtures("folder")

POSITIONS: dict[str, Any] = {
    "one": np.int64(7),
    "none": np.zeros(0, np.int32),
    "no rows": np.zeros((2, 0, 3)),
    "run": np.arange(5, 105),
    "back": np.arange(20, -20, -1, np.int16),
    "cube": np.random.default_rng(1).integers(-(10**6), 10**6, (3, 4, 5)),
    "unsigned": np.array([0, 2**63 - 1], np.uint64),
    "large": np.array([2**53 + 1, -(2**62) - 1, 2**63 - 1]),
    "floats": np.random.default_rng(2).normal(size=(7, 9)) * 1e4,
    "float32": np.linspace(-3, 3, 41, dtype=np.float32),
    "float16": np.linspace(0, 1, 11, dtype=np.float16),
    "big-endian": np.linspace(-3, 3, 41, dtype=">f8"),
    "big-endian integers": np.arange(41, dtype=">i4"),
    "Fortran, of one axis": np.asfortranarray(np.arange(6)),
}


@pytest.mark.parametrize("case", POSITIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_positions_of_a_file(case: str, dtype: str, slice_bytes: int) -> None:
    np.save("p.npy", POSITIONS[case])
    expected = array_bytes(posenc.encode(POSITIONS[case], 5, dtype=dtype))
    assert written("encode", "p.npy", "5", "--dtype", dtype) == expected
    assert names() == ["p.npy", "x.npy"]


def test_positions_from_standard_input(tmp_path: Path) -> None:
    positions = np.arange(30_000).reshape(3, -1) * 0.5  # more than a pipe holds
    assert piped(array_bytes(positions), "encode", "-", "4") == array_bytes(posenc.encode(positions, 4))
    assert piped(b"1 2\n-3.5\n", "encode", "-", "4", "--force") == array_bytes(posenc.encode([1, 2, -3.5], 4))
    assert piped(b"", "encode", "-", "4", "--force") == array_bytes(posenc.encode([], 4))


TEXTS: list[tuple[bytes, list[int | float]]] = [
    (b"0", [0]),
    (b"", []),
    (b" \n\t ", []),
    (b"0 1\r\n2\t3\n\n", [0, 1, 2, 3]),
    (b"  -7 +7 007", [-7, 7, 7]),
    (b"0.1 1e3 -2.5e-3 .5 5. 4", [0.1, 1000.0, -0.0025, 0.5, 5.0, 4]),
    (b"12345678901 -98765432109", [12345678901, -98765432109]),
    (b"9007199254740993 9223372036854775807 -9223372036854775808", [2**53 + 1, 2**63 - 1, -(2**63)]),
    (b"9007199254740992 0.5 -9007199254740992", [2**53, 0.5, -(2**53)]),
    (b"0.1000000000000000055511151231257827021181583404541015625", [0.1]),
]


@pytest.mark.parametrize(("text", "positions"), TEXTS, ids=[repr(text)[:30] for text, _ in TEXTS])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_positions_of_text(
    text: bytes, positions: list[int | float], block: int, monkeypatch: pytest.MonkeyPatch, slice_bytes: int
) -> None:
    """Exactly what is written, wherever a block of text ends."""
    monkeypatch.setattr(_files, "_BLOCK_BYTES", block)
    Path("p.txt").write_bytes(text)
    assert written("encode", "p.txt", "4", "--dtype", "float64") == array_bytes(posenc.encode(positions, 4, dtype="float64"))


def test_integers_of_text_are_no_floats() -> None:
    Path("p.txt").write_text(f"{2**53} {2**53 + 1}")
    written("encode", "p.txt", "2")
    rows = np.load("x.npy")
    assert (rows[0] != rows[1]).any()


BAD_TEXTS: list[tuple[bytes, str]] = [
    (b"0 1 two", "positions[2] is 'two'; it must be an integer or a float"),
    (b"0,1", "positions[0] is '0,1'; it must be"),
    (b"0 \xff\n", r"positions[1] is '\\xff'; it must be"),
    (b"0 1 nan 3", "positions[2] is nan; it must be finite"),
    (b"0 0.5 1e999", "positions[2] is inf; it must be finite"),
    (b"1e300", "positions[0] is 1e+300; it must be finite and, as a float, at most 2**53 in size"),
    (b"0 9223372036854775808", "positions[1] is 9223372036854775808; it must be an int64"),
    (b"0 9007199254740993 0.5", "positions[1] is 9007199254740993 among floats; it must be at most 2**53 in size there"),
    (b"0.5 -9007199254740993", "positions[1] is -9007199254740993 among floats; it must be"),
    (b"1" * 5000, "positions[0] is"),
    (b"PK\x03\x04", "positions[0] is 'PK"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS, ids=[repr(text)[:30] for text, _ in BAD_TEXTS])
def test_bad_text(text: bytes, message: str, slice_bytes: int, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.txt").write_bytes(text)
    assert _cli.main(["encode", "p.txt", "4", "-o", "x.npy"]) == 2
    assert message in one_line(capsys)
    assert names() == ["p.txt"]


def test_endless_word(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no text is not read to its end."""
    Path("p.txt").write_bytes(b"0 " + b"x" * (5 << 20))
    tracemalloc.start()
    assert _cli.main(["encode", "p.txt", "4", "-o", "x.npy"]) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = one_line(capsys)
    assert "positions[1] is 'xxx" in said
    assert len(said) < 1000
    assert peak < 12 << 20


WHOLE = array_bytes(np.arange(100.0).reshape(10, 10))
BAD_FILES: list[tuple[bytes, str]] = [
    (WHOLE[:-1], "is 'p.npy'; it ends before its last number"),
    (WHOLE[:130], "is 'p.npy'; it ends before its last number"),
    (WHOLE[:60], "is 'p.npy'; it must be a .npy file, as numpy.save writes it"),
    (WHOLE[:7], "is 'p.npy'; it must be a .npy file"),
    (WHOLE[:6] + b"\x09" + WHOLE[7:], "is 'p.npy'; it must be a .npy file"),
    (WHOLE.replace(b"{'descr'", b"['descr'"), "is 'p.npy'; it must be a .npy file"),
    (WHOLE.replace(b"(10, 10)", b"(10,-10)"), "is 'p.npy', of shape (10, -10) and dtype float64; it must be an array of"),
    (array_bytes(np.array([1, "a"], object)), "of shape (2,) and dtype object; it must be an array of numbers"),
    (array_bytes(np.asfortranarray(np.ones((3, 4)))), "is 'p.npy', in Fortran order; it must be in C order"),
    (array_bytes(np.zeros(3, bool)), "has dtype bool; it must be"),
    (array_bytes(np.zeros(3, complex)), "has dtype complex128; it must be"),
    (array_bytes(np.zeros(3, "U4")), "has dtype <U4; it must be"),
    (array_bytes(np.zeros(3, [("a", "i4")])), "it must be"),
]


@pytest.mark.parametrize(("content", "message"), BAD_FILES, ids=[message[:60] for _, message in BAD_FILES])
@pytest.mark.parametrize("command", [["encode", "p.npy", "4"], ["add", "p.npy"]], ids=lambda c: c[0])
def test_bad_file(
    command: list[str], content: bytes, message: str, slice_bytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.npy").write_bytes(content)
    assert _cli.main([*command, "-o", "x.npy"]) == 2
    assert message in one_line(capsys)
    assert names() == ["p.npy"]


@pytest.mark.parametrize(("index", "value"), [((0, 0), np.nan), ((3, 7), np.inf), ((9, 9), -(2.0**54))])
def test_bad_position_of_a_file(
    index: tuple[int, int], value: float, slice_bytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names its place in the array, whatever slice it is in; so it does for `add`."""
    positions = np.arange(100.0).reshape(10, 10)
    positions[index] = value
    np.save("p.npy", positions)
    np.save("y.npy", np.zeros((10, 10, 4), np.float32))
    place = f"posenc: positions[{index[0]}, {index[1]}] is {value}; it must be finite"
    assert _cli.main(["encode", "p.npy", "4", "-o", "x.npy"]) == 2
    assert one_line(capsys).startswith(place)
    assert _cli.main(["add", "y.npy", "-o", "x.npy", "--positions", "p.npy"]) == 2
    assert one_line(capsys).startswith(place)
    assert names() == ["p.npy", "y.npy"]


@pytest.mark.parametrize(
    ("path", "message"),
    [("missing", "it cannot be read: No such file or directory"), ("", "it cannot be read: No such file"), ("x\0", "embedded")],
)
def test_no_such_input(path: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, argv in (("positions", ["encode", path, "4"]), ("x", ["add", path])):
        assert _cli.main([*argv, "-o", "x.npy"]) == 2
        said = one_line(capsys)
        assert said.startswith(f"posenc: {name} is {path!r}; ")
        assert message in said
    assert names() == []
