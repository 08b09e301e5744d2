"""What is accepted, what is refused and in which words; results and untouched arrays are compared by bytes."""

import copy
import math
import pickle
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import posenc
from posenc import Encoding, frequencies
from posenc._encoding import farthest

Call = Callable[[Any], Any]

FLOAT32_OVERFLOW = 2.0**128 - 2.0**103  # the first number that rounds to infinity


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    yield
    posenc.set_threads(None)


def refused(error: type[Exception], call: Callable[[], Any], *words: object) -> None:
    """``call`` raises ``error``, and the message has all the words."""
    with pytest.raises(error) as info:
        call()
    for word in words:
        assert str(word) in str(info.value)


def table_of_first(first: Any) -> Any:
    return posenc.table(2, 4, first=first)


# ---- integers --------------------------------------------------------------------------------------------------------

INTEGERS: dict[str, Call] = {
    "table-length": lambda value: posenc.table(value, 4),
    "table-dim": lambda value: posenc.table(2, value),
    "table-start": lambda value: posenc.table(2, 4, start=value),
    "table-threads": lambda value: posenc.table(2, 4, threads=value),
    "table-first": table_of_first,
    "Encoding-dim": Encoding,
    "Encoding-first": lambda value: Encoding(4, first=value),
    "Encoding.table-length": lambda value: Encoding(4).table(value),
    "Encoding.table-start": lambda value: Encoding(4).table(2, start=value),
    "Encoding.table-threads": lambda value: Encoding(4).table(2, threads=value),
    "Encoding.replace-dim": lambda value: Encoding(4).replace(dim=value),
    "paper-dim": frequencies.paper,
    "set_threads-n": posenc.set_threads,
    "threads-n": posenc.threads,
}
OPTIONAL = {"table-start", "table-threads", "Encoding.table-start", "Encoding.table-threads", "set_threads-n"}
NOT_INTEGERS = [
    True,
    np.True_,
    2.0,
    np.float32(2.0),
    "2",
    b"2",
    2j,
    [2],
    (2,),
    {2},
    Decimal(2),
    np.array([2]),
    np.array(2.0),
    np.array(True),
    np.datetime64(2, "s"),
    np.timedelta64(2, "s"),
    object,
]


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
@pytest.mark.parametrize("where", INTEGERS)
def test_not_an_integer(where: str, value: Any) -> None:
    refused(TypeError, partial(INTEGERS[where], value), where.split("-")[1], repr(value))


@pytest.mark.parametrize("where", [where for where in INTEGERS if where not in OPTIONAL])
def test_none_is_not_an_integer(where: str) -> None:
    refused(TypeError, partial(INTEGERS[where], None), where.split("-")[1], None)


@pytest.mark.parametrize("where", sorted(OPTIONAL))
def test_none_is_the_default(where: str) -> None:
    INTEGERS[where](None)


@pytest.mark.parametrize(
    ("parameter", "least", "most"),
    [
        ("length", 0, 2**63 - 1),
        ("dim", 1, 2**63 - 1),
        ("start", -(2**63), 2**63 - 1),
        ("first", -(2**63), 2**63 - 1),
        ("threads", 1, 2**31 - 1),
        ("n", 1, 2**31 - 1),
    ],
)
def test_integer_out_of_range(parameter: str, least: int, most: int) -> None:
    calls = [call for where, call in INTEGERS.items() if where.split("-")[1] == parameter]
    assert calls
    for call in calls:
        for value in (least - 1, -(2**70), most + 1, 2**70):
            refused(ValueError, partial(call, value), f"{parameter} is {value}; it must be ")


@pytest.mark.parametrize("kind", [int, *(np.dtype(code) for code in "bBhHiIlLqQ")], ids=str)
def test_numpy_integers(kind: Any) -> None:
    scalar = kind if kind is int else kind.type
    n = scalar(3)
    expected = posenc.table(3, 3, start=3).tobytes()
    assert posenc.table(n, n, start=n, threads=n).tobytes() == expected
    assert posenc.table(n, n, first=n).tobytes() == expected
    assert Encoding(n, first=n).table(n, threads=n).tobytes() == expected
    assert frequencies.paper(n) == frequencies.paper(3)
    posenc.set_threads(n)
    with posenc.threads(n):
        assert posenc.table(np.array(3), np.array(3), start=np.array(3)).tobytes() == expected  # 0-d: it has __index__
    assert type(Encoding(n, first=n).dim) is type(Encoding(n, first=n).first) is int


def test_int64_is_enough() -> None:
    assert posenc.table(1, 2, start=2**63 - 1).shape == posenc.table(1, 2, start=-(2**63)).shape == (1, 2)
    assert posenc.table(1, 2, first=2**63 - 1).tobytes() == posenc.table(1, 2, start=2**63 - 1).tobytes()
    assert posenc.table(1, 2, start=np.uint64(2**63 - 1)).tobytes() == posenc.table(1, 2, start=2**63 - 1).tobytes()
    assert posenc.table(0, 2, start=2**63 - 1).shape == posenc.table(0, 2, start=-(2**63)).shape == (0, 2)
    for call in (partial(posenc.table, start=2**63 - 1), partial(posenc.table, first=2**63 - 1)):
        refused(ValueError, partial(call, 2, 2), "start", 2**63 - 1, "length", 2)
    refused(ValueError, lambda: posenc.table(2**63 - 1, 2, start=2), "start", "length")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"dim": 1}, {"dim": True}),
        ({"dim": 4}, {"dim": 4.0}),
        ({"base": 1.0}, {"base": True}),
        ({"amplitude": 1.0}, {"amplitude": True}),
        ({"first": 1}, {"first": 1.0}),
        ({"cos_first": True}, {"cos_first": 1}),
    ],
    ids=str,
)
def test_equal_is_not_enough(good: dict[str, Any], bad: dict[str, Any]) -> None:
    """An Encoding kept for later calls does not let in what equals its parameters."""
    for _ in range(2):
        posenc.table(2, **{"dim": 4, **good})
        refused(TypeError, partial(posenc.table, 2, **{"dim": 4, **bad}), *bad, *bad.values())


# ---- real numbers ----------------------------------------------------------------------------------------------------

REALS: dict[str, Call] = {
    "table-base": lambda value: posenc.table(2, 4, base=value),
    "table-amplitude": lambda value: posenc.table(2, 4, amplitude=value),
    "Encoding-base": lambda value: Encoding(4, base=value),
    "Encoding-amplitude": lambda value: Encoding(4, amplitude=value),
    "replace-base": lambda value: Encoding(4).replace(base=value),
    "paper-base": lambda value: frequencies.paper(4, value),
}


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.False_,
        "2",
        b"2",
        2j,
        np.complex64(2),
        [2.0],
        {},
        Decimal(2),
        np.array([2.0]),
        np.timedelta64(2, "s"),
        object,
    ],
    ids=repr,
)
@pytest.mark.parametrize("where", REALS)
def test_not_a_real_number(where: str, value: Any) -> None:
    refused(TypeError, partial(REALS[where], value), where.split("-")[1], repr(value))


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, np.float32(np.nan), np.float16(np.inf), 0, 0.0, np.int8(0), 10**400, 2**53 + 1],
    ids=lambda value: repr(value)[:30],
)
@pytest.mark.parametrize("where", REALS)
def test_wrong_real_number(where: str, value: Any) -> None:
    shown = value if isinstance(value, int) and value else float(value)
    refused(ValueError, partial(REALS[where], value), f"{where.split('-')[1]} is {shown!r}; it must ")


@pytest.mark.parametrize("value", [-1, -0.5, -5e-324])
@pytest.mark.parametrize("where", [where for where in REALS if where.endswith("base")])
def test_negative_base(where: str, value: float) -> None:
    refused(ValueError, partial(REALS[where], value), f"base is {float(value)!r}; it must be positive")


@pytest.mark.parametrize(
    "value", [100, np.int8(100), np.uint64(100), np.float16(100), np.float32(100), np.float64(100)], ids=repr
)
def test_numpy_reals(value: Any) -> None:
    expected = posenc.table(3, 4, base=100.0, amplitude=100.0).tobytes()
    assert posenc.table(3, 4, base=value, amplitude=value).tobytes() == expected
    assert Encoding(4, base=value, amplitude=value).table(3).tobytes() == expected
    assert frequencies.paper(4, value) == frequencies.paper(4, 100.0)
    assert type(Encoding(4, amplitude=value).amplitude) is float


def test_float32_is_taken_exactly() -> None:
    tenth = np.float32(0.1)
    assert posenc.table(3, 4, amplitude=tenth).tobytes() == posenc.table(3, 4, amplitude=float(tenth)).tobytes()
    assert frequencies.paper(4, tenth) == frequencies.paper(4, float(tenth)) != frequencies.paper(4, 0.1)


# ---- names, flags, frequencies ---------------------------------------------------------------------------------------


MAKERS = {"table": partial(posenc.table, 2, 4), "Encoding": partial(Encoding, 4), "replace": Encoding(4).replace}


@pytest.mark.parametrize(
    ("parameter", "choices"), [("layout", ["interleaved", "concatenated"]), ("odd", ["truncate", "zero", "error"])]
)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_choices(make: Callable[..., Any], parameter: str, choices: list[str]) -> None:
    for value in ("", "Interleaved", "zero "):
        refused(ValueError, partial(make, **{parameter: value}), f"{parameter} is {value!r}", *map(repr, choices))
    for wrong in (None, 1, True, choices[0].encode(), [choices[0]], {}):
        refused(TypeError, partial(make, **{parameter: wrong}), parameter, repr(wrong), *map(repr, choices))
    for choice in choices:
        make(**{parameter: choice})


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_flag(make: Callable[..., Any]) -> None:
    for wrong in (None, 0, 1, 1.0, "True", [], np.array(True), np.int8(1)):
        refused(TypeError, partial(make, cos_first=wrong), "cos_first", repr(wrong))
    make(cos_first=False)


def test_numpy_bool() -> None:
    assert posenc.table(3, 4, cos_first=np.True_).tobytes() == posenc.table(3, 4, cos_first=True).tobytes()
    assert Encoding(4, cos_first=np.True_).cos_first is True


def test_frequencies() -> None:
    rule = frequencies.paper(4)
    assert posenc.table(3, 4, frequencies=rule).tobytes() == posenc.table(3, 4).tobytes()
    for make in (partial(posenc.table, 2, 4), partial(Encoding, 4), Encoding(4).replace):
        for wrong in (1.0, "paper", [1.0, 0.01], np.array([1.0, 0.01]), rule.values, {}, frequencies.paper):
            refused(TypeError, partial(make, frequencies=wrong), "frequencies", type(wrong).__name__)
        refused(ValueError, partial(make, frequencies=frequencies.paper(6)), "frequencies has 3", "dim=4", "needs 2")
        for base in (100.0, 10000.0):
            refused(TypeError, partial(make, base=base, frequencies=rule), f"base={base!r}", f"frequencies={rule!r}")
    assert Encoding(4, base=None, frequencies=rule) == Encoding(4, frequencies=rule)
    assert Encoding(4, base=None, frequencies=None) == Encoding(4)
    refused(ValueError, lambda: Encoding(5, odd="zero", frequencies=frequencies.paper(5)), "frequencies has 3", "needs 2")
    assert Encoding(5, odd="zero", frequencies=rule).table(2).shape == (2, 5)


def test_unknown_keywords() -> None:
    for value in (1, []):
        for make in (partial(posenc.table, 2, 4), partial(Encoding, 4), Encoding(4).replace, partial(Encoding(4).table, 2)):
            refused(TypeError, partial(make, axis=value), "'axis'")


def test_mode() -> None:
    refused(ValueError, lambda: posenc.show_config("dict"), "mode is 'dict'", "'stdout'", "'dicts'")  # type: ignore[arg-type]
    for wrong in (None, 1, b"dicts", ["dicts"]):
        refused(TypeError, partial(posenc.show_config, wrong), "mode", repr(wrong))  # type: ignore[arg-type]


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    config = posenc.show_config("dicts")
    assert capsys.readouterr().out == ""
    assert config["version"] == posenc.__version__
    assert config["kernel"] in config["kernels"]
    assert posenc.show_config() is None  # type: ignore[func-returns-value]
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert {name: value.strip() for name, value in lines.items()} == {name: str(value) for name, value in config.items()}


# ---- dtype and out ---------------------------------------------------------------------------------------------------

SWAPPED = ">" if sys.byteorder == "little" else "<"


@pytest.mark.parametrize(
    "dtype",
    [
        "int32",
        "complex64",
        f"{SWAPPED}f4",
        f"{SWAPPED}f8",
        "nonsense",
        "",
        "f4,f4",
        "(2,)f4",
        "(1,2",
        "f4,,",
        [("a", "f4")],
        object,
        bool,
        np.longdouble if np.dtype(np.longdouble) != np.float64 else np.clongdouble,
        32,
        {},
        (),
        [],
        "float32\0",
    ],
    ids=repr,
)
def test_wrong_dtype(dtype: Any) -> None:
    refused(
        TypeError,
        lambda: posenc.table(2, 4, dtype=dtype),
        f"dtype is {dtype!r}; it must be float32, float64, float16 or bfloat16",
    )
    out = np.full((2, 4), 7.0, np.float32)
    refused(TypeError, lambda: posenc.table(2, 4, dtype=dtype, out=out), "dtype")
    assert (out == 7.0).all()


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (None, np.float32),
        ("float32", np.float32),
        ("f4", np.float32),
        (np.float32, np.float32),
        (np.dtype("=f4"), np.float32),
        ("float64", np.float64),
        (float, np.float64),
        (np.dtype("float64"), np.float64),
    ],
)
def test_dtype(dtype: Any, kind: Any) -> None:
    result = posenc.table(2, 4, dtype=dtype)
    assert result.dtype == kind
    assert result.dtype.isnative
    out = np.empty((2, 4), kind)
    assert posenc.table(2, 4, dtype=dtype, out=out) is out
    assert out.tobytes() == result.tobytes()


@pytest.mark.parametrize(("dtype", "other"), [("float32", "float64"), ("float64", "float32")])
def test_dtype_and_out_agree(dtype: str, other: str) -> None:
    out = np.full((2, 4), 7.0, other)
    refused(TypeError, lambda: posenc.table(2, 4, dtype=dtype, out=out), f"dtype is {dtype}", f"out has dtype {other}")
    assert (out == 7.0).all()
    assert posenc.table(2, 4, out=out) is out
    assert out.tobytes() == posenc.table(2, 4, dtype=other).tobytes()


def read_only(memory: Any) -> Any:
    out = memory[:16].reshape(4, 4)
    out.flags.writeable = False
    return out


def byte_view(memory: Any, offset: int, strides: tuple[int, int]) -> Any:
    return np.ndarray((4, 4), np.float32, memory, offset, strides)


# what an ``out`` for shape (4, 4) and float32 is made of 128 float32 by, the error and its words
WRONG_OUT: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "rows": (lambda memory: memory[:12].reshape(3, 4), ValueError, ["shape (3, 4)", "(4, 4)"]),
    "columns": (lambda memory: memory[:20].reshape(4, 5), ValueError, ["shape (4, 5)", "(4, 4)"]),
    "one column": (lambda memory: memory[:4].reshape(4, 1), ValueError, ["shape (4, 1)", "(4, 4)"]),
    "no rows": (lambda memory: memory[:0].reshape(0, 4), ValueError, ["shape (0, 4)", "(4, 4)"]),
    "0-d": (lambda memory: memory[:1].reshape(()), ValueError, ["shape ()", "(4, 4)"]),
    "1-d": (lambda memory: memory[:16], ValueError, ["shape (16,)", "(4, 4)"]),
    "3-d": (lambda memory: memory[:16].reshape(4, 4, 1), ValueError, ["shape (4, 4, 1)", "(4, 4)"]),
    "int32": (
        lambda memory: memory.view(np.int32)[:16].reshape(4, 4),
        TypeError,
        ["dtype int32", "float16 or bfloat16"],
    ),
    "uint8": (
        lambda memory: memory.view(np.uint8)[:16].reshape(4, 4),
        TypeError,
        ["dtype uint8", "float16 or bfloat16"],
    ),
    "complex": (lambda memory: memory.view(np.complex64)[:16].reshape(4, 4), TypeError, ["dtype complex64"]),
    "structured": (lambda memory: memory.view([("a", "f4")])[:16].reshape(4, 4), TypeError, ["dtype"]),
    "byte order": (
        lambda memory: memory.view(f"{SWAPPED}f4")[:16].reshape(4, 4),
        TypeError,
        [f"dtype {SWAPPED}f4", "native byte order"],
    ),
    "read-only": (read_only, ValueError, ["read-only", "writeable"]),
    "misaligned": (lambda memory: byte_view(memory, 1, (16, 4)), ValueError, ["aligned"]),
    "misaligned by half": (lambda memory: byte_view(memory, 2, (16, 4)), ValueError, ["aligned"]),
    "misaligned rows": (lambda memory: byte_view(memory, 0, (18, 4)), ValueError, ["aligned"]),
    "Fortran order": (lambda memory: memory[:16].reshape(4, 4).T, ValueError, ["strides (4, 16)", "last axis", "contiguous"]),
    "every other": (lambda memory: memory[:32].reshape(4, 8)[:, ::2], ValueError, ["strides (32, 8)", "contiguous"]),
    "reversed columns": (lambda memory: memory[:16].reshape(4, 4)[:, ::-1], ValueError, ["strides (16, -4)", "contiguous"]),
    "one number": (lambda memory: as_strided(memory, (4, 4), (0, 0)), ValueError, ["out has strides (0, 0)"]),
    "one row": (lambda memory: as_strided(memory, (4, 4), (0, 4)), ValueError, ["strides (0, 4)", "overlap", "16 bytes"]),
    "overlapping rows": (lambda memory: as_strided(memory, (4, 4), (12, 4)), ValueError, ["strides (12, 4)", "overlap"]),
    "overlapping rows, reversed": (
        lambda memory: as_strided(memory[64:], (4, 4), (-12, 4)),
        ValueError,
        ["strides (-12, 4)", "overlap"],
    ),
    "masked": (lambda memory: np.ma.array(memory[:16].reshape(4, 4), copy=False), TypeError, ["out must be", "MaskedArray"]),
    "memoryview of bytes": (lambda memory: memoryview(memory[:16]).cast("B"), TypeError, ["out must be", "memoryview"]),
    "number": (lambda memory: memory[0], TypeError, ["out must be", "float32"]),
}


@pytest.mark.parametrize("name", WRONG_OUT)
@pytest.mark.parametrize("method", [False, True], ids=["table", "Encoding.table"])
def test_wrong_out(name: str, method: bool) -> None:
    make, error, words = WRONG_OUT[name]
    memory = np.arange(128, dtype=np.float32)
    before = memory.tobytes()
    out = make(memory)
    call = partial(Encoding(4).table, 4, out=out) if method else partial(posenc.table, 4, 4, out=out)
    refused(error, call, "out", *words)
    assert memory.tobytes() == before


@pytest.mark.parametrize(
    "out", [[[7.0] * 4] * 4, ([7.0] * 4,) * 4, bytearray(64), "out", 7.0], ids=lambda out: type(out).__name__
)
def test_out_that_is_no_array(out: Any) -> None:
    before = copy.deepcopy(out)
    refused(TypeError, lambda: posenc.table(4, 4, out=out), "out must be an ndarray", type(out).__name__)
    assert out == before


@pytest.mark.parametrize(
    ("error", "keywords"),
    [
        (TypeError, {"length": 4.0}),
        (ValueError, {"length": -1}),
        (ValueError, {"dim": 0}),
        (ValueError, {"dim": 5, "odd": "error"}),
        (TypeError, {"start": 0.5}),
        (ValueError, {"start": 2**63 - 3}),
        (ValueError, {"threads": 0}),
        (TypeError, {"threads": True}),
        (TypeError, {"dtype": "float64"}),
        (ValueError, {"layout": "round"}),
        (ValueError, {"base": -1.0}),
        (TypeError, {"base": 2.0, "frequencies": frequencies.paper(4)}),
        (ValueError, {"base": 2.0**-20, "start": 2**60}),
        (ValueError, {"amplitude": 1e39}),
        (TypeError, {"axis": 0}),
    ],
    ids=str,
)
def test_out_is_untouched_by_errors(error: type[Exception], keywords: dict[str, Any]) -> None:
    out = np.full((4, 4), 7.0, np.float32)
    refused(error, lambda: posenc.table(**{"length": 4, "dim": 4, **keywords}, out=out))
    assert (out == 7.0).all()


RIGHT_OUT: dict[str, Call] = {
    "whole": lambda memory: memory,
    "every other row": lambda memory: memory[::2],
    "reversed": lambda memory: memory[::-1],
    "gap after rows": lambda memory: memory[:, :6],
    "gap before rows": lambda memory: memory[:, 3:],
    "gaps, every third, reversed": lambda memory: memory[::-3, 1:6],
    "one row": lambda memory: memory[5:6, 2:],
    "one column": lambda memory: memory[:, 4:5],
    "one column, reversed": lambda memory: memory[::-2, 4:5],
    "far columns of one": lambda memory: as_strided(memory, (30, 1), (memory.strides[0], 999)),
    "overlap of one row": lambda memory: as_strided(memory, (1, 9), (0, memory.itemsize)),
    "subclass": lambda memory: memory.view(np.recarray),
    "no rows": lambda memory: memory[:0],
}


@pytest.mark.parametrize("name", RIGHT_OUT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [30, 600])
@pytest.mark.parametrize("odd", ["truncate", "zero"])
def test_out(name: str, dtype: str, rows: int, odd: Any) -> None:
    """Any distance between rows will do, and what lies between them stays as it was."""
    memory = np.full((rows, 9), 7.0, dtype)
    out = RIGHT_OUT[name](memory)
    written = np.zeros(memory.shape, bool)
    RIGHT_OUT[name](written)[...] = True
    encoding = Encoding(out.shape[1], odd=odd)
    assert encoding.table(len(out), start=-3, out=out) is out
    assert out.tobytes() == encoding.table(len(out), start=-3, dtype=dtype).tobytes()
    assert (memory[~written] == 7.0).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_out_of_many_rows_with_gaps(threads: int) -> None:
    """Large enough for two threads."""
    memory = np.full((3000, 300), 7.0, np.float32)
    out = memory[::-1, 20:-20]
    assert posenc.table(3000, 260, out=out, threads=threads) is out
    assert out.tobytes() == posenc.table(3000, 260, threads=1).tobytes()
    assert (memory[:, :20] == 7.0).all()
    assert (memory[:, -20:] == 7.0).all()


# ---- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [1, 4, 5])
def test_length_0(dtype: Any, dim: int) -> None:
    result = posenc.table(0, dim, dtype=dtype)
    assert result.shape == (0, dim)
    assert result.dtype == dtype
    out = np.empty((0, dim), dtype)
    for keywords in ({}, {"start": -(2**63)}, {"start": 2**63 - 1}, {"base": 1e-30, "start": 2**62}):
        assert posenc.table(0, dim, out=out, **keywords) is out
    refused(ValueError, lambda: posenc.table(0, dim, out=np.empty((0, dim + 1), dtype)), "out has shape", f"(0, {dim})")
    refused(ValueError, lambda: posenc.table(0, dim, out=np.empty((1, dim), dtype)), "out has shape", f"(0, {dim})")
    refused(ValueError, lambda: posenc.table(0, dim, threads=0), "threads is 0")


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("cos_first", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 3, 300])
def test_dim_1(layout: Any, cos_first: bool, dtype: str, length: int) -> None:
    """One column: sin p w0, or zero, or an error; w0 = 1 for any base."""
    pair = posenc.table(length, 2, start=-2, dtype=dtype)
    out = np.full((length, 1), 7.0, dtype)
    keywords: dict[str, Any] = {"layout": layout, "cos_first": cos_first, "start": -2, "out": out}
    posenc.table(length, 1, odd="truncate", **keywords)
    assert out.tobytes() == pair[:, int(cos_first)].tobytes()
    before = out.tobytes()
    refused(ValueError, lambda: posenc.table(length, 1, odd="error", **keywords), "dim is 1", "odd='error'", "even")
    assert out.tobytes() == before
    posenc.table(length, 1, odd="zero", **keywords)
    assert out.tobytes() == bytes(out.nbytes)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("dim", [3, 5, 33])
def test_zero_column(layout: Any, dim: int) -> None:
    out = np.full((50, dim), 7.0, np.float32)
    posenc.table(50, dim, layout=layout, odd="zero", amplitude=-1.0, out=out)
    assert out[:, -1].tobytes() == bytes(4 * 50)
    rule = frequencies.paper(dim)
    assert np.array_equal(Encoding(dim, odd="zero").frequencies, rule.values[:-1])
    assert np.array_equal(Encoding(dim).frequencies, rule.values)


@pytest.mark.parametrize(
    ("length", "dim"), [(2**62, 4), (2**63 - 1, 1), (2**50, 2**10), (2**40, 2**40), (1, 2**58), (1, 2**62)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_too_large(length: int, dim: int, dtype: Any) -> None:
    refused(MemoryError, lambda: posenc.table(length, dim, dtype=dtype), length, dim)


@pytest.mark.parametrize("dim", [2**58, 2**62, 2**63 - 2])
def test_too_wide(dim: int) -> None:
    encoding, rule = Encoding(dim), frequencies.paper(dim)
    assert len(rule) == dim // 2
    for get in (lambda: encoding.frequencies, lambda: encoding.wavelengths, lambda: rule.values, lambda: rule.wavelengths):
        refused(MemoryError, get)


def test_no_rows_of_a_width_that_numpy_has_not() -> None:
    """An array's row must be a size even if there is none."""
    assert posenc.table(0, 2**60).shape == (0, 2**60)
    refused(MemoryError, lambda: posenc.table(0, 2**62), 2**62)


# ---- domain ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [4, 40, 4096])
def test_smallest_frequency(dim: int) -> None:
    """At least 2**-200: the last exponent is -(dim - 2) / dim, so base may be a little above 2**200."""
    base = 2.0 ** (200 * dim // (dim - 2))
    too_large = 4 * base
    for make in (partial(Encoding, dim), partial(frequencies.paper, dim), Encoding(dim).replace, partial(posenc.table, 2, dim)):
        make(base=base)
        refused(ValueError, partial(make, base=too_large), f"base={too_large!r}", "smallest frequency", "2**-200")
        refused(ValueError, partial(make, base=sys.float_info.max), f"base={sys.float_info.max!r}", "2**-200")
    assert Encoding(2, base=sys.float_info.max).table(2).tobytes() == posenc.table(2, 2).tobytes()  # base**0


@pytest.mark.parametrize("sign", [-1, 1])
def test_largest_angle(sign: int) -> None:
    """w1 = 2**10 for this base and width, so positions end at 2**54; the last row counts as well as the first."""
    encoding = Encoding(4, base=2.0**-20)
    for start, length in ((sign * 2**54, 1), (2**54 - 9, 10), (-(2**54), 10)):
        assert encoding.table(length, start=start).shape == (length, 4)
    for start, length in ((sign * 2**55, 1), (2**55 - 9, 10), (-(2**55), 2**40), (-5, 2**56), (-(2**63), 1)):
        refused(ValueError, partial(encoding.table, length, start=start), f"position is {farthest(start, length)} ", "2**64")
    refused(ValueError, lambda: encoding.replace(first=2**55).table(1), f"position is {2**55} ", "2**64")
    refused(ValueError, lambda: posenc.table(2, 1000, base=1e-300), "the farthest position is 1 ", "2**64")


@pytest.mark.parametrize("sign", [-1, 1])
def test_amplitude_that_overflows(sign: int) -> None:
    last = math.nextafter(FLOAT32_OVERFLOW, 0.0)
    largest = float(np.finfo(np.float32).max)
    result = posenc.table(3, 4, amplitude=sign * last)
    assert result[0].tobytes() == np.array([0.0, sign * largest] * 2, np.float32).tobytes()
    for amplitude in (sign * FLOAT32_OVERFLOW, sign * 1e300):
        encoding = Encoding(4, amplitude=amplitude)
        for length in (0, 3):
            refused(ValueError, partial(encoding.table, length), f"amplitude is {amplitude!r}", "float32")
        refused(ValueError, partial(encoding.table, 3, out=np.empty((3, 4), np.float32)), f"amplitude is {amplitude!r}")
        table = encoding.table(3, dtype="float64")
        assert table[0].tobytes() == np.array([0.0, amplitude] * 2).tobytes()


@pytest.mark.parametrize("amplitude", [2.0**500, 2.0**501, -1e300, sys.float_info.max, 2.0**-501, 1e-310, 5e-324])
def test_extreme_amplitude_at_0(amplitude: float) -> None:
    """The first row is exact: +0.0 and the amplitude."""
    for dtype in ("float32", "float64") if abs(amplitude) < 1.0 else ("float64",):
        row = posenc.table(1, 4, amplitude=amplitude, dtype=dtype)[0]
        assert row.tobytes() == np.array([0.0, amplitude] * 2).astype(dtype).tobytes()


# ---- an Encoding is a value ------------------------------------------------------------------------------------------

NAMES = {"Encoding": Encoding, "frequencies": frequencies}
ENCODINGS = [
    Encoding(4),
    Encoding(1),
    Encoding(7, odd="zero"),
    Encoding(8, odd="error"),
    Encoding(4, base=0.1),
    Encoding(2, base=5e-324),
    Encoding(4, base=500000),
    Encoding(4, layout="concatenated"),
    Encoding(4, cos_first=True),
    Encoding(4, amplitude=-0.1),
    Encoding(4, amplitude=sys.float_info.max),
    Encoding(4, first=-(2**63)),
    Encoding(4, first=2**63 - 1),
    Encoding(4, frequencies=frequencies.paper(4)),
    Encoding(5, odd="zero", frequencies=frequencies.paper(4, 0.3)),
    Encoding(6, layout="concatenated", cos_first=True, odd="zero", amplitude=2**0.5, first=2, base=1e6),
]
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)


def parameters(encoding: Encoding) -> tuple[Any, ...]:
    e = encoding
    return repr(e), e.dim, e.layout, e.cos_first, e.odd, e.amplitude, e.first, e.frequencies.tobytes(), e.wavelengths.tobytes()


@each_encoding
def test_immutable(encoding: Encoding) -> None:
    before = parameters(encoding)
    for name in (*Encoding.__slots__, "dim", "layout", "frequencies", "table", "new"):
        for change in (partial(setattr, encoding, name, 1), partial(delattr, encoding, name)):
            refused(AttributeError, change, "immutable")
    for array in (encoding.frequencies, encoding.wavelengths):
        assert not array.flags.writeable
    assert not hasattr(encoding, "__dict__")
    assert parameters(encoding) == before


@each_encoding
def test_rebuilt(encoding: Encoding) -> None:
    rebuilt = [eval(repr(encoding), dict(NAMES)), copy.copy(encoding), copy.deepcopy(encoding), encoding.replace()]
    if abs(encoding.first) < 2**62 and abs(encoding.amplitude) < 1e30:
        encoding.table(100)  # caches are not part of the value
    rebuilt += [pickle.loads(pickle.dumps(encoding, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in rebuilt:
        assert type(other) is Encoding
        assert other == encoding
        assert hash(other) == hash(encoding)
        assert parameters(other) == parameters(encoding)
    assert len(pickle.dumps(encoding)) < 500


def test_equality() -> None:
    for i, one in enumerate(ENCODINGS):
        for j, other in enumerate(ENCODINGS):
            alike = parameters(one)[1:] == parameters(other)[1:]  # all but how they are written
            assert (one == other) is alike
            assert (one != other) is not alike
            assert alike is (i == j) or {i, j} == {0, 13}
    assert len({*ENCODINGS, *map(copy.deepcopy, ENCODINGS)}) == len(ENCODINGS) - 1
    assert Encoding(np.int8(4), base=np.float32(100), amplitude=1, first=np.int64(0)) == Encoding(4, base=100.0)
    for stranger in (4, "Encoding(4)", None, frequencies.paper(4), repr(Encoding(4))):
        assert Encoding(4) != stranger


@pytest.mark.parametrize("parameter", ["layout", "odd"])
def test_plain_types(parameter: str) -> None:
    """A subclass of str is not kept: repr would not rebuild it."""
    value = getattr(Encoding(4), parameter)
    encoding = Encoding(4, **{parameter: np.str_(value)})
    assert type(getattr(encoding, parameter)) is str
    assert repr(encoding) == repr(Encoding(4))


def test_replace() -> None:
    encoding = Encoding(6, base=500.0, layout="concatenated", odd="zero", amplitude=2.0, first=3)
    assert encoding.replace(dim=8) == Encoding(8, base=500.0, layout="concatenated", odd="zero", amplitude=2.0, first=3)
    changes = {"layout": "interleaved", "cos_first": True, "odd": "error", "amplitude": 1.0, "first": -1, "base": 2.0}
    assert encoding.replace(**changes) == Encoding(6, **changes)  # type: ignore[arg-type]
    rule = frequencies.paper(6, 100.0)
    given = encoding.replace(frequencies=rule)
    assert given == Encoding(6, frequencies=rule, layout="concatenated", odd="zero", amplitude=2.0, first=3)
    assert given.replace(base=500.0) == encoding
    assert given.replace(first=0).replace(first=3) == given
    refused(ValueError, lambda: given.replace(dim=8), "frequencies has 3", "dim=8")
    refused(ValueError, lambda: encoding.replace(dim=0), "dim is 0")
    assert encoding == Encoding(6, base=500.0, layout="concatenated", odd="zero", amplitude=2.0, first=3)


@pytest.mark.parametrize(
    ("dim", "keywords"),
    [
        (4, {}),
        (5, {"odd": "zero", "layout": "concatenated"}),
        (5, {"cos_first": True}),
        (6, {"base": 0.5, "amplitude": -3.0, "first": 17}),
        (6, {"frequencies": frequencies.paper(6, 70.0), "first": -5}),
    ],
)
@pytest.mark.parametrize("call", [{}, {"start": -7}, {"dtype": "float64"}, {"threads": 2}], ids=str)
def test_function_is_the_method(dim: int, keywords: dict[str, Any], call: dict[str, Any]) -> None:
    expected = Encoding(dim, **keywords).table(40, **call)
    for clear in (posenc.clear_cache, lambda: None):
        clear()
        result = posenc.table(40, dim, **keywords, **call)
        assert result.dtype == expected.dtype
        assert result.tobytes() == expected.tobytes()
    first = keywords.get("first", 0)
    assert "start" in call or result.tobytes() == posenc.table(40, dim, **keywords, **call, start=first).tobytes()


def test_keywords_that_cannot_be_hashed() -> None:
    expected = posenc.table(2, 4, first=3).tobytes()
    assert posenc.table(2, np.array(4), first=np.array(3)).tobytes() == expected
    for parameter in ("base", "layout", "odd", "cos_first", "first", "amplitude"):
        for value in ([], [1], {}, set(), bytearray()):
            refused(TypeError, partial(posenc.table, 2, 4, **{parameter: value}), parameter, repr(value))
    refused(TypeError, lambda: posenc.table(2, [4]), "dim", "[4]")  # type: ignore[arg-type]


# ---- frequencies.paper -----------------------------------------------------------------------------------------------


def test_paper() -> None:
    for dim in (1, 2, 5, 8):
        rule = frequencies.paper(dim)
        assert len(rule) == len(rule.values) == len(rule.wavelengths) == (dim + 1) // 2
        assert rule.values[0] == 1.0
        assert rule.wavelengths[0] == 2 * math.pi
        assert not rule.values.flags.writeable
        for other in (eval(repr(rule), dict(NAMES)), copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
            assert other == rule
            assert hash(other) == hash(rule)
            assert repr(other) == repr(rule)
    assert frequencies.paper(4) != frequencies.paper(6)
    assert frequencies.paper(4) != frequencies.paper(4, 2.0)
    assert frequencies.paper(4) != 4
