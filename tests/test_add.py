"""`add` is three float operations, by bits, whatever the shape, strides, axis, kernel or threads."""

import itertools
import random

import numpy as np
import oracle
import pytest

import posenc
from posenc import _arrays, _rows, _threads
from posenc._load import core


def width_of(dtype):
    """The dtype in which a sum is formed."""
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def expected(x, rows, scale=1.0, where=True):
    """The sum by NumPy. ``rows`` are float32 or, for float64, float64 encodings that broadcast to x."""
    wide = width_of(x.dtype)
    with np.errstate(all="ignore"):
        scaled = np.multiply(wide.type(scale), x.astype(wide))
        total = np.where(np.broadcast_to(where, x.shape[:-1])[..., None], scaled + rows, scaled)
        return total.astype(x.dtype)


def same(got, want):
    """Equal by bits, but for what NaN is which: NumPy and ml_dtypes do not say."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    number = f"u{got.itemsize}"
    mine, theirs = (np.ascontiguousarray(a).view(number) for a in (got, want))
    wrong = (mine != theirs) & ~(np.isnan(got) & np.isnan(want))
    assert not wrong.any(), [(tuple(i), got[tuple(i)], want[tuple(i)]) for i in np.argwhere(wrong)[:5]]


def numbers(shape, dtype, seed=0, special=True):
    """Random numbers of many sizes and, among them, the special ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 2.0 ** rng.integers(-12, 12, shape)
    x = x.astype(np.float32).astype(dtype)
    if special and x.size:
        tiny = np.nextafter(np.float32(0), np.float32(1)) if np.dtype(dtype).itemsize == 4 else np.float32(1e-7)
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 3e38, -3e38, 65504.0], np.float32)
        with np.errstate(all="ignore"):
            chosen = rng.choice(values, x.shape).astype(dtype)
        x = np.where(rng.random(shape) < 0.1, chosen, x)
    return x


def table(length, dim, dtype, **keywords):
    return posenc.table(length, dim, dtype=width_of(dtype), **keywords)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7, 6), (3, 40, 10), (2, 3, 5, 8), (2, 1, 3, 2, 4), (1, 100, 1), (5, 1, 3)])
def test_every_axis(shape, dtype):
    x = numbers(shape, dtype)
    for axis in range(len(shape) - 1):
        rows = table(shape[axis], shape[-1], dtype, start=-2)
        rows = rows.reshape([shape[-1] if i == len(shape) - 1 else n if i == axis else 1 for i, n in enumerate(shape)])
        want = expected(x, rows, 1.7)
        same(posenc.add(x, axis=axis, start=-2, scale=1.7), want)
        same(posenc.add(x, axis=axis - len(shape), start=-2, scale=1.7, threads=2), want)


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 1023, 1024, 1025, 1026, 2051])
@pytest.mark.parametrize("encoding", [{}, {"layout": "concatenated", "odd": "zero"}, {"odd": "zero", "cos_first": True}])
def test_widths_and_layouts(dim, encoding, dtype, kernel):
    x = numbers((2, 70, dim), dtype)
    want = expected(x, table(70, dim, dtype, start=5, **encoding), 0.1)
    same(posenc.add(x, start=5, scale=0.1, **encoding), want)
    assert posenc.add(x, start=5, scale=0.1, out=x, **encoding) is x
    same(x, want)


def test_1d_takes_a_position(dtype):
    x = numbers((6,), dtype)
    same(posenc.add(x, positions=41), expected(x, table(1, 6, dtype, start=41)[0]))
    with pytest.raises(ValueError, match="x has one axis"):
        posenc.add(x)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4), (0, 3, 4), (2, 0, 0, 4)])
def test_empty(shape, dtype):
    x = np.empty(shape, dtype)
    same(posenc.add(x), x)
    same(posenc.add(x, positions=np.zeros(shape[:-1], int)), x)
    assert posenc.add(x, out=x) is x


def views(shape, dtype):
    """Views of that shape in many memory layouts: name, view."""
    n, d = shape[-2:]
    yield "contiguous", numbers(shape, dtype)
    yield "Fortran", np.asfortranarray(numbers(shape, dtype))
    yield "reversed", numbers(shape, dtype)[::-1, ::-1, ::-1]
    yield "every second column", numbers((*shape[:-1], 2 * d), dtype)[..., ::2]
    yield "every third row", numbers((*shape[:-2], 3 * n, d), dtype)[..., 1::3, :]
    yield "moved axes", np.moveaxis(numbers((n, shape[0], d), dtype), 0, 1)
    yield "columns outermost", np.moveaxis(numbers((d, *shape[:-1]), dtype), 0, -1)
    yield "inside a wider array", numbers((*shape[:-1], d + 5), dtype)[..., 3 : 3 + d]
    yield "broadcast batch", np.broadcast_to(numbers((1, n, d), dtype), shape)
    yield "broadcast rows", np.broadcast_to(numbers((shape[0], 1, d), dtype), shape)
    yield "broadcast columns", np.broadcast_to(numbers((shape[0], n, 1), dtype), shape)


def test_strides(dtype, kernel):
    shape = (3, 37, 22)
    rows = table(37, 22, dtype, start=3)
    outs = [out.copy(order="K") if "broadcast" in name else out for name, out in views(shape, dtype)]
    for (name, x), out in itertools.product(views(shape, dtype), outs):
        want, before = expected(x, rows, 3.0), x.copy()
        assert posenc.add(x, start=3, scale=3.0, out=out) is out
        same(out, want)
        same(x, before)
        if "broadcast" not in name:
            assert posenc.add(x, start=3, scale=3.0, out=x) is x
            same(x, want)


@pytest.mark.parametrize("step", [-30, -22, -7, -1, 0, 1, 7, 22, 30])
def test_overlapping_x_and_out(step, dtype):
    """The right answer whatever is read after it is written."""
    memory = numbers((2000,), dtype)
    x = memory[200 : 200 + 30 * 22].reshape(30, 22)
    out = memory[200 + step : 200 + step + 30 * 22].reshape(30, 22)
    want = expected(x.copy(), table(30, 22, dtype))
    posenc.add(x, out=out)
    same(out, want)


def test_positions_and_where_in_the_memory_of_out():
    memory = np.zeros(2000, np.float64)
    out = memory[100:1100].reshape(50, 20)
    x = numbers((50, 20), "float64")
    points, where = memory.view(np.int64)[190:240], memory.view(np.bool_)[900:950]
    points[:] = range(50)
    where[:] = [True, False] * 25
    want = expected(x, posenc.table(50, 20, dtype="float64"), 1.0, where.copy())
    posenc.add(x, positions=points, where=where, out=out)
    same(out, want)


def test_reversed_overlap(dtype):
    x = numbers((30, 22), dtype)
    for view in (x[::-1], x[:, ::-1]):
        want = expected(x, table(30, 22, dtype))
        posenc.add(x, out=view)
        same(view, want)


def test_nothing_is_written_beside_out(dtype, kernel):
    for width, lead in itertools.product((1, 3, 16, 33, 64), range(4)):
        memory = np.full((4, 40, width + 8), 7, dtype)
        out = memory[1:3, 2:38, 4 + lead % 3 : 4 + lead % 3 + width]
        x = numbers((2, 36, width), dtype)
        want = memory.copy()
        want[1:3, 2:38, 4 + lead % 3 : 4 + lead % 3 + width] = expected(x, table(36, width, dtype))
        posenc.add(x, out=out)
        same(memory, want)


def test_byte_order_and_alignment(dtype):
    x = numbers((3, 5, 8), dtype)
    want = expected(x, table(5, 8, dtype))
    packed = np.empty(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    packed[...] = x
    assert packed.flags.aligned is False
    same(posenc.add(packed), want)
    if dtype != "bfloat16":
        swapped = x.astype(np.dtype(dtype).newbyteorder())
        got = posenc.add(swapped)
        assert got.dtype.isnative
        same(got, want)
    same(posenc.add(x.tolist()) if dtype == "float64" else posenc.add(x), want)


# ---- large: threads, batches, slices, streams ------------------------------------------------------------------------

LARGE = [(1, 1100, 96), (5, 300, 1030), (300, 3, 64), (4000, 1, 33), (2, 3000, 3)]


@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("item", ["as it is", "small slices"])
def test_threads_and_slices(shape, threads, item, dtype, kernel, monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    if item == "small slices":
        monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    x = numbers(shape, dtype)
    same(posenc.add(x, start=-7, threads=threads), expected(x, table(*shape[1:], dtype, start=-7)))


def test_batches_are_split(monkeypatch):
    """A batch so large that its work items take a part of it each."""
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    x = np.ones((30_000, 2, 512), np.float32)
    want = 1 + posenc.table(2, 512)
    posenc.add(x, out=x, threads=2)
    assert (x == want).all()


@pytest.mark.parametrize("stream", [False, True])
def test_streaming(stream, dtype, kernel):
    encoding = posenc.Encoding(77, odd="zero")
    x = numbers((3, 50, 77), dtype)
    out = np.empty_like(x)
    form = _arrays.FORMATS[width_of(dtype)]
    encoding._rows.add(x, out, None, 9, [False, True], 2.0, form, 1, stream=stream)
    same(out, expected(x, table(50, 77, dtype, start=9, odd="zero"), 2.0))


# ---- positions and where ---------------------------------------------------------------------------------------------


def rows_at(positions, dim, dtype, **encoding):
    """Rows by MPFR."""
    flat = np.asarray(positions).ravel().tolist()
    rows = oracle.entries(flat, range(dim), dim, dtype=width_of(dtype).name, **encoding)
    return rows.reshape(*np.shape(positions), dim)


POSITIONS = {
    "packed": np.r_[0:60, 0:11, 0:1, 0:30, 5:9, -40:0],
    "left-padded": np.maximum(np.arange(146) - 50, 0),
    "descending": np.arange(146)[::-1],
    "int64's ends": np.r_[2**63 - 40 : 2**63 - 1, -(2**63) : -(2**63) + 40, 0:67],
    "floats": np.r_[np.arange(100) / 7, np.arange(46) + 0.5],
    "float range": np.arange(146.0),
    "tiny and large floats": np.r_[2.0**-300, -1e-40, 2.0**53, -(2.0**53), 1e15 + 0.5, np.arange(141) * 1e-9],
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_positions(kind, dtype, kernel):
    positions, dim = POSITIONS[kind], 6
    x = numbers((2, 146, dim), dtype)
    rows = rows_at(positions, dim, dtype)
    same(posenc.add(x, positions=positions), expected(x, rows))
    both = np.stack([positions, positions[::-1]])
    same(posenc.add(x, positions=both, threads=2), expected(x, np.stack([rows, rows[::-1]])))
    x = numbers((2, 3, 146, dim), dtype)
    same(posenc.add(x, positions=both[:, None]), expected(x, np.stack([rows, rows[::-1]])[:, None]))
    same(posenc.add(x, positions=positions[:1]), expected(x, rows[:1]))


def test_positions_are_of_any_kind():
    x = numbers((2, 5, 8), "float32")
    want = expected(x, posenc.table(5, 8, start=3))
    for kind in (np.int8, np.uint8, np.int32, np.uint64, ">i4", np.float16, np.float32, np.float64, ">f8"):
        same(posenc.add(x, positions=np.arange(3, 8).astype(kind)), want)
    for positions in (range(3, 8), [3, 4, 5, 6, 7], (3.0, 4, 5, 6, 7), np.arange(0, 10)[3:8], np.arange(7, 2, -1)[::-1]):
        same(posenc.add(x, positions=positions), want)
    same(posenc.add(x, positions=range(7, 2, -1))[:, ::-1], expected(x[:, ::-1], posenc.table(5, 8, start=3)))
    same(posenc.add(x, positions=np.int8(3)), expected(x, posenc.table(1, 8, start=3)))
    for ends in (range(-(2**63), 2**63 - 1, 2**62 + 2**61), range(-(2**63), 2**63, 2**63 + 5)):
        same(posenc.add(x[:, : len(ends)], positions=ends), expected(x[:, : len(ends)], rows_at(list(ends), 8, "float32")))


def test_where(dtype, kernel):
    x = numbers((3, 40, 10), dtype)
    rng = np.random.default_rng(1)
    for where in (rng.random((3, 40)) < 0.5, rng.random((40,)) < 0.5, rng.random((3, 1)) < 0.5, True, False):
        same(posenc.add(x, where=where, scale=-2.0), expected(x, table(40, 10, dtype), -2.0, where))
        positions = rng.integers(-99, 99, (3, 40))
        same(posenc.add(x, where=where, positions=positions), expected(x, rows_at(positions, 10, dtype), 1.0, where))


def test_where_false_keeps_negative_zeros():
    x = np.full((2, 3, 4), -0.0, np.float32)
    got = posenc.add(x, where=[True, False, True], out=x.copy())
    assert np.signbit(got[:, 1]).all()
    assert not np.signbit(got[:, 0]).any()


def test_positions_that_where_leaves_out_are_not_inspected():
    x = np.ones((2, 4, 6))
    where = np.array([[False, True, True, False]] * 2)
    for bad in (np.nan, np.inf, 2.0**60):
        got = posenc.add(x, positions=[bad, 1.0, 2.5, -bad], where=where)
        same(got, expected(x, rows_at([0, 1, 2.5, 0], 6, "float64"), 1.0, where))
    same(
        posenc.add(x, positions=np.array([2**64 - 1, 1, 2, 2**63], np.uint64), where=where),
        expected(x, rows_at([0, 1, 2, 0], 6, "float64"), 1.0, where),
    )
    with pytest.raises(ValueError, match=r"positions\[0\] is nan"):
        posenc.add(x, positions=[np.nan, 1.0, 2.5, 3.0], where=[[False] * 4, [True, False, False, False]])


# ---- values ----------------------------------------------------------------------------------------------------------


def test_every_16_bit_number(kernel):
    """Each number of float16 and bfloat16, NaNs and subnormals too, plus a row and a few scales."""
    for dtype in [dtype for dtype in ("float16", "bfloat16") if dtype in oracle_dtypes()]:
        x = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(1, 1024, 64)
        for scale in (1.0, 0.0, -3.0, 2.0**-20, 1e5):
            same(posenc.add(x, scale=scale), expected(x, posenc.table(1024, 64), scale))


def oracle_dtypes():
    from conftest import DTYPES

    return DTYPES


@pytest.mark.parametrize("bits", [0x7FC1, 0xFFC1, 0x7F81, 0xFF81])
def test_nan_of_bfloat16_keeps_sign_and_payload(bits, kernel):
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    x = np.full((3, 37), bits, np.uint16).view("bfloat16")
    assert (posenc.add(x).view(np.uint16) == bits | 0x40).all()


@pytest.mark.parametrize("bits", [0x7E01, 0xFE01, 0x7D01, 0xFD01])
def test_nan_of_float16_keeps_sign_and_payload(bits, kernel):
    x = np.full((3, 37), bits, np.uint16).view(np.float16)
    assert (posenc.add(x).view(np.uint16) == bits | 0x200).all()


def test_sums_of_16_bits_are_not_fused(dtype, kernel):
    """Ties and near-ties of the last rounding, made on purpose: x so that the float32 sum falls on or beside the middle."""
    if np.dtype(dtype).itemsize != 2:
        pytest.skip("sums of 16 bits only")
    rows = posenc.table(500, 32)
    rng = random.Random(3)
    x = (np.float32(1) - rows).astype(dtype)
    for _ in range(20):
        x = (x.astype(np.float32) * rng.choice([0.5, 1, 2, 3])).astype(dtype)
        same(posenc.add(x), expected(x, rows))


def test_floating_point_environment(driver, kernel):
    """Subnormals and roundings are IEEE's whatever the caller's control word says."""
    x = numbers((2, 50, 24), "float32")
    x[:, ::2] = 1e-40
    want = expected(x, posenc.table(50, 24, start=1, amplitude=1e-39), 0.3)
    for control in (0x9FC0, 0x3F80, 0x5F80, 0x7F80) if core.kernel() != "neon" else (1 << 24, 1 << 22, 2 << 22):
        before = driver.control(control)
        try:
            got = posenc.add(x, start=1, amplitude=1e-39, scale=0.3)
        finally:
            driver.control(before)
        same(got, want)


@pytest.mark.parametrize("threads", [1, 2])
def test_doubts_are_settled_before_x_is_touched(dtype, threads, kernel, monkeypatch):
    encoding = posenc.Encoding(6, amplitude=-0.7)
    form = _arrays.FORMATS[width_of(dtype)]
    bounds = {"fast_bound": np.inf, "accurate_bound": 0.5}
    x = numbers((2, 70, 6), dtype)
    want = expected(x, encoding.table(70, start=-3, dtype=width_of(dtype)), 1.5)
    out = x.copy()
    encoding._rows.add(out, out, None, -3, [False, True], 1.5, form, threads, **bounds)
    same(out, want)
    points = np.arange(70) / 3
    out = x.copy()
    encoding._rows.add(out, out, None, points, [False, True], 1.5, form, threads, **bounds)
    same(out, expected(x, rows_at(points, 6, dtype, amplitude=-0.7), 1.5))

    def failing(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_rows.Rows, "entry", failing)
    out = x.copy()
    with pytest.raises(KeyboardInterrupt):
        encoding._rows.add(out, out, None, 1, [False, True], 1.5, form, threads, **bounds)
    same(out, x)


# ---- errors ----------------------------------------------------------------------------------------------------------

X = np.ones((2, 3, 4), np.float32)
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.ones((2, 3, 4), int)}, TypeError, "x has dtype int64"),
        ({"x": np.ones((2, 3), bool)}, TypeError, "x has dtype bool"),
        ({"x": [[1, 2], [3, 4]]}, TypeError, "x has dtype int64"),
        ({"x": np.ones((2, 3), complex)}, TypeError, "x has dtype complex128"),
        ({"x": np.ones((2, 3), np.longdouble)}, TypeError, "x has dtype"),
        ({"x": np.ma.masked_array(X)}, TypeError, "x is a masked array"),
        ({"x": None}, TypeError, "x has dtype object"),
        ({"x": "text"}, TypeError, "x has dtype <U4"),
        ({"x": np.float32(1)}, ValueError, r"x has shape \(\)"),
        ({"x": np.ones((3, 0))}, ValueError, r"x has shape \(3, 0\)"),
        ({"axis": -1}, ValueError, "axis is -1 and x has 3"),
        ({"axis": 2}, ValueError, "axis is 2 and x has 3"),
        ({"axis": 3}, ValueError, "axis is 3 and x has 3"),
        ({"axis": -4}, ValueError, "axis is -4"),
        ({"axis": 1.0}, TypeError, "axis must be an integer"),
        ({"start": 0.5}, TypeError, "start must be an integer"),
        ({"start": 2**63 - 2}, ValueError, r"the last position, start \+ length - 1, must be an int64"),
        ({"scale": "2"}, TypeError, "scale must be a real number"),
        ({"scale": np.nan}, ValueError, "scale is nan"),
        ({"scale": 1e39}, ValueError, r"scale is 1e\+39; it overflows"),
        ({"where": [1, 0, 1]}, TypeError, "where has dtype int64; it must be booleans"),
        ({"where": [True, False]}, ValueError, r"where has shape \(2,\); it must broadcast to \(2, 3\)"),
        ({"where": np.ones((1, 2, 3), bool)}, ValueError, "where has shape"),
        ({"positions": [0, 1]}, ValueError, r"positions has shape \(2,\); it must broadcast to \(2, 3\)"),
        ({"positions": [0, 1, 2], "start": 0}, TypeError, "positions is given with start=0"),
        ({"positions": [0, 1, 2], "axis": 1}, TypeError, "positions is given with start=None and axis=1"),
        ({"positions": [True, False, True]}, TypeError, "positions has dtype bool"),
        ({"positions": [1j, 0, 0]}, TypeError, "positions has dtype complex128"),
        ({"positions": ["a", "b", "c"]}, TypeError, "positions has dtype <U1"),
        ({"positions": np.ma.masked_array([1, 2, 3])}, TypeError, "positions is a masked array"),
        ({"positions": np.array([1, 2, 3], np.longdouble)}, TypeError, "positions has dtype"),
        ({"positions": np.array([1, 2, 3], "M8[s]")}, TypeError, "positions has dtype datetime64"),
        ({"positions": [[1], [2, 3]]}, ValueError, "positions is a list that is no array"),
        ({"positions": [0.0, np.nan, 1.0]}, ValueError, r"positions\[1\] is nan"),
        ({"positions": [[0.0, 1.0, -np.inf]]}, ValueError, r"positions\[0, 2\] is -inf"),
        ({"positions": [0.0, 2.0**53 + 2, 1.0]}, ValueError, r"positions\[1\] is 9007199254740994"),
        ({"positions": [0, 2**63, 1]}, ValueError, "positions is 9223372036854775808; it must be an int64"),
        ({"positions": [0.5, 2**53 + 1, 1]}, ValueError, "positions is 9007199254740993 among floats"),
        ({"positions": np.array([0, 2**63, 1], np.uint64)}, ValueError, r"positions\[1\] is 9223372036854775808"),
        ({"positions": [0, 2**64, 1]}, ValueError, "positions is 18446744073709551616; it must be an int64"),
        ({"positions": range(2**63 - 2, 2**63 + 1)}, ValueError, "positions is 9223372036854775808"),
        ({"positions": np.inf}, ValueError, "positions is inf"),
        ({"positions": 2**60, "base": 1e-40}, ValueError, r"position \* frequency must be at most 2\*\*64"),
        ({"out": X.tolist()}, TypeError, "out must be an ndarray"),
        ({"out": np.ones((2, 3, 4))}, TypeError, "out has dtype float64; it must be that of x, float32"),
        ({"out": np.ones((3, 4), np.float32)}, ValueError, r"out has shape \(3, 4\); it must be \(2, 3, 4\)"),
        ({"out": READ_ONLY}, ValueError, "out is read-only"),
        ({"out": np.broadcast_to(X[:1].copy(), (2, 3, 4))}, ValueError, "out is read-only"),
        (
            {"out": np.lib.stride_tricks.as_strided(X.copy(), (2, 3, 4), (8, 16, 4))},
            ValueError,
            "its elements overlap",
        ),
        ({"out": np.zeros(97, np.uint8)[1:].view(np.float32).reshape(2, 3, 4)}, ValueError, "not aligned"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"dim": 4}, TypeError, "dim"),
        ({"base": -1.0}, ValueError, "base is -1.0"),
        ({"amplitude": 1e39}, ValueError, "overflows float32"),
    ],
)
def test_errors(arguments, error, message):
    arguments = {"x": X, **arguments}
    out = arguments.get("out")
    before = np.array(out)
    with pytest.raises(error, match=message):
        posenc.add(**arguments)
    assert np.array_equal(np.array(out), before)


def test_an_encoding_knows_its_width():
    with pytest.raises(ValueError, match=r"x has shape \(2, 3, 4\); its last axis must be the encoding's dim, 6"):
        posenc.Encoding(6).add(X)


def test_method_and_function_agree():
    encoding = posenc.Encoding(4, base=100.0, layout="concatenated", first=3)
    want = expected(X, posenc.table(3, 4, base=100.0, layout="concatenated", start=3))
    same(encoding.add(X), want)
    same(posenc.add(X, base=100.0, layout="concatenated", first=3), want)
    assert (posenc.add(X).dtype, posenc.add(X.tolist()).dtype) == (np.float32, np.float64)


def test_what_only_repeats_is_looked_at_once():
    """``where`` that is broadcast to a shape no array could fill; this once went on for hours."""
    x = np.broadcast_to(np.float32(1.0), (2**44, 4))
    with pytest.raises(MemoryError):
        posenc.add(x, positions=0, where=True)
