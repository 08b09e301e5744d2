"""``posenc add``: files by bytes against what NumPy saves of `posenc.add`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import array_bytes, names, one_line, piped, written

import posenc
from posenc import _cli

pytestmark = pytest.mark.usefixtures("folder")

RANDOM = np.random.default_rng(3)
SHAPES = [(0, 4), (1, 1), (7, 5), (3, 0, 4), (2, 30, 4), (30, 2, 4), (2, 3, 5, 6)]


def embeddings(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_add(shape: tuple[int, ...], dtype: str, slice_bytes: int) -> None:
    x = embeddings(shape, dtype)
    np.save("y.npy", x)
    assert written("add", "y.npy") == array_bytes(posenc.add(x))
    assert Path("y.npy").read_bytes() == array_bytes(x)
    assert names() == ["x.npy", "y.npy"]


@pytest.mark.parametrize(
    ("argv", "keywords"),
    [
        (["--axis", "0"], {"axis": 0}),
        (["--axis=-3", "--start", "-5"], {"axis": -3, "start": -5}),
        (["--axis", "1", "--scale", "0.1"], {"axis": 1, "scale": 0.1}),
        (["--start", str(2**63 - 5)], {"start": 2**63 - 5}),
        (["--scale", "22.627", "--base", "500"], {"scale": 22.627, "base": 500.0}),
    ],
)
def test_add_options(argv: list[str], keywords: dict[str, Any], slice_bytes: int) -> None:
    x = embeddings((4, 3, 5, 6))
    np.save("y.npy", x)
    assert written("add", "y.npy", *argv) == array_bytes(posenc.add(x, **keywords))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (1, 5), (3, 1), (3, 5), (4, 1, 1), (4, 3, 5), (1, 3, 5)], ids=str)
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_add_positions(shape: tuple[int, ...], kind: type, slice_bytes: int) -> None:
    x = embeddings((4, 3, 5, 6))
    positions = (RANDOM.normal(size=shape) * 100).astype(kind)
    np.save("y.npy", x)
    np.save("p.npy", positions)
    assert written("add", "y.npy", "--positions", "p.npy") == array_bytes(posenc.add(x, positions=positions))


def test_add_other_inputs(slice_bytes: int) -> None:
    """One row; positions of text; another byte order, which becomes the native one; NaN and inf; standard input."""
    one, x = embeddings((6,)), embeddings((5, 6))
    x[2, 3], x[4, 0] = np.nan, -np.inf
    np.save("one.npy", one)
    np.save("y.npy", x)
    np.save("big.npy", x.astype(">f4"))
    Path("p.txt").write_text("4 3 2 1 0")
    np.save("p.npy", np.float64(0.5))
    assert written("add", "one.npy", "--positions", "p.npy") == array_bytes(posenc.add(one, positions=0.5))
    assert written("add", "y.npy", "--force") == array_bytes(posenc.add(x))
    assert written("add", "big.npy", "--force") == array_bytes(posenc.add(x))
    expected = array_bytes(posenc.add(x, positions=[4, 3, 2, 1, 0]))
    assert written("add", "y.npy", "--positions", "p.txt", "--force") == expected
    assert piped(array_bytes(x), "add", "-", "--positions", "p.txt", "--force") == expected
    assert piped(b"4 3 2 1 0", "add", "y.npy", "--positions", "-", "--force") == expected


def test_add_in_place(slice_bytes: int, capsys: pytest.CaptureFixture[str]) -> None:
    x = embeddings((3, 50, 4))
    np.save("x.npy", x)
    assert _cli.main(["add", "x.npy", "-o", "x.npy"]) == 2
    assert "only --force replaces it" in one_line(capsys)
    assert written("add", "x.npy", "--force") == array_bytes(posenc.add(x))
    assert names() == ["x.npy"]


BAD_SUMS: list[tuple[list[str], str]] = [
    (["integers.npy"], "x has dtype int64; it must be float32"),
    (["one.npy"], "x has one axis, that of the encodings; without positions it must also have one of the sequence"),
    (["scalar.npy"], "x has shape (); it must have a last axis of at least 1"),
    (["narrow.npy"], "x has shape (0, 0); it must have a last axis of at least 1"),
    (["y.npy", "--axis", "1"], "axis is 1 and x has 2; it must be one of them and not the last"),
    (["y.npy", "--axis", "-1"], "axis is -1 and x has 2"),
    (["y.npy", "--axis", "x"], "argument --axis: invalid int value: 'x'"),
    (["y.npy", "--start", str(2**63 - 2)], f"start is {2**63 - 2} and length 5; the last position"),
    (["y.npy", "--scale", "nan"], "scale is nan; it must be finite"),
    (["y.npy", "--scale", "1e39"], "scale is 1e+39; it overflows the dtype of the sum"),
    (["y.npy", "--positions", "four.txt"], "positions has shape (4,); it must broadcast to (5,)"),
    (["y.npy", "--positions", "one.npy"], "positions has shape (6,); it must broadcast to (5,)"),
    (["y.npy", "--positions", "five.txt", "--start", "0"], "positions is given with start=0 and axis=-2; they exclude it"),
    (["y.npy", "--positions", "five.txt", "--axis", "0"], "positions is given with start=None and axis=0; they exclude it"),
    (["batch.npy", "--positions", "five.txt"], "positions[3] is nan; it must be finite"),
    (["y.npy", "--dtype", "float32"], "unrecognized arguments: --dtype float32"),
    (["-", "--positions", "-"], "x and positions are both '-'; standard input holds one of them"),
    (["five.txt"], "x is 'five.txt'; it must be a .npy file"),
]


@pytest.mark.parametrize(("argv", "message"), BAD_SUMS, ids=[" ".join(argv) for argv, _ in BAD_SUMS])
def test_bad_sum(argv: list[str], message: str, slice_bytes: int, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("y.npy", embeddings((5, 6)))
    np.save("batch.npy", embeddings((2, 5, 6)))
    np.save("one.npy", embeddings((6,)))
    np.save("scalar.npy", np.float32(1))
    np.save("narrow.npy", np.zeros((0, 0), np.float32))
    np.save("integers.npy", np.ones((5, 6), np.int64))
    Path("four.txt").write_text("1 2 3 4")
    Path("five.txt").write_text("1 2 3 nan 5")
    before = names()
    assert _cli.main(["add", *argv, "-o", "x.npy"]) == 2
    assert message in one_line(capsys)
    assert names() == before
