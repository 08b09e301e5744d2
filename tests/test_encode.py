"""`encode` at any positions: MPFR's bits, whatever form, shape and memory the positions and the output have."""

import itertools
import math

import numpy as np
import oracle
import pytest
from conftest import DTYPES

import posenc
from posenc import _arrays, _rows, _threads
from posenc._load import core


def bits(array):
    return np.ascontiguousarray(array).view(oracle.INTEGERS[array.dtype.name])


def check(got, positions, dim, **encoding):
    """Entries against MPFR, all of them."""
    flat = np.asarray(positions).ravel().tolist()
    rows = got.reshape(-1, dim)
    want = oracle.entries(flat, range(dim), dim, dtype=got.dtype.name, **encoding)
    assert got.shape == (*np.shape(positions), dim)
    assert (bits(rows) == bits(want)).all(), oracle.mismatches(rows, want, flat, range(dim), encoding)


RNG = np.random.default_rng(7)
FLOATS = np.r_[
    RNG.random(40) * 1000,
    RNG.normal(size=40) * 2.0 ** RNG.integers(-90, 53, 40),
    [0.0, -0.0, 0.5, -0.5, 2.0**53, -(2.0**53), 1e-30, 2.0**-99, 2.0**-101, -(2.0**-400), 5e-324, 1e15 + 0.125],
].clip(-(2.0**53), 2.0**53)
INTEGERS = np.r_[
    RNG.integers(-(10**6), 10**6, 40),
    RNG.integers(-(2**63), 2**63 - 1, 40),
    [0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, 2**51, 2**51 - 1],
]
SETTINGS = [
    {},
    {"base": 5e5, "layout": "concatenated", "cos_first": True},
    {"base": 1e30, "odd": "zero", "amplitude": -0.3},
    {"base": 0.5, "amplitude": 1e30},
]


@pytest.mark.parametrize("encoding", SETTINGS, ids=str)
@pytest.mark.parametrize("dim", [2, 7, 24])
def test_floats(dim, encoding, dtype, kernel):
    encoding = dict(encoding) if np.dtype(dtype).itemsize > 2 or encoding.get("amplitude", 1.0) < 1e4 else {"base": 0.5}
    got = posenc.encode(FLOATS, dim, dtype=dtype, **encoding)
    check(got, FLOATS, dim, **encoding)


@pytest.mark.parametrize("encoding", SETTINGS[:3], ids=str)
def test_integers(encoding, dtype, kernel):
    check(posenc.encode(INTEGERS, 9, dtype=dtype, **encoding), INTEGERS, 9, **encoding)


@pytest.mark.parametrize("seed", range(4))
def test_random_settings(seed, dtype, kernel):
    """Random widths, bases, amplitudes and positions."""
    rng = np.random.default_rng(seed)
    dim, base, amplitude = int(rng.integers(1, 300)), float(2.0 ** rng.uniform(-2, 60)), float(2.0 ** rng.uniform(-9, 9))
    positions = rng.uniform(-1, 1, 12) * 2.0 ** rng.integers(-30, 50, 12)
    columns = sorted({*rng.integers(0, dim, 40).tolist()})
    got = posenc.encode(positions, dim, dtype=dtype, base=base, amplitude=amplitude)[:, columns]
    want = oracle.entries(positions.tolist(), columns, dim, dtype=dtype, base=base, amplitude=amplitude)
    assert (bits(got) == bits(want)).all(), oracle.mismatches(got, want, positions.tolist(), columns, (dim, base, amplitude))


@pytest.mark.parametrize("dim", [512, 1024, 1030, 2050])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_wide_rows_are_those_of_tables(dim, layout, dtype, kernel):
    positions = np.random.default_rng(dim).integers(-3000, 3000, 60)
    got = posenc.encode(positions, dim, dtype=dtype, layout=layout)
    table = posenc.table(6000, dim, start=-3000, dtype=dtype, layout=layout)
    assert (bits(got) == bits(table[positions + 3000])).all()


# ---- forms -----------------------------------------------------------------------------------------------------------


def test_kinds():
    want = bits(posenc.table(8, 6, start=-3))
    positions = np.arange(-3, 5)
    for kind in (np.int8, np.int16, ">i4", np.int64, ">i8", np.float16, np.float32, np.float64, ">f4", object):
        if kind is object:
            with pytest.raises(TypeError, match="positions has dtype object"):
                posenc.encode(np.array([1, None]), 6)
        else:
            assert (bits(posenc.encode(positions.astype(kind), 6)) == want).all()
    assert (bits(posenc.encode(positions.tolist(), 6)) == want).all()
    assert (bits(posenc.encode(range(-3, 5), 6)) == want).all()
    assert (bits(posenc.encode(positions[::-1], 6)[::-1]) == want).all()
    if "bfloat16" in DTYPES:
        assert (bits(posenc.encode(positions.astype("bfloat16"), 6)) == want).all()
    third = np.float32(1) / np.float32(3)
    check(posenc.encode(third, 6, dtype="float64"), float(third), 6)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (3, 4), (2, 3, 4, 2)])
def test_shapes(shape, dtype):
    positions = np.random.default_rng(1).integers(-50, 50, shape)
    got = posenc.encode(positions, 5, dtype=dtype)
    assert got.shape == (*shape, 5)
    assert got.dtype.name == dtype
    check(got, positions, 5)
    check(posenc.encode(positions / 7, 5, dtype=dtype), positions / 7, 5)
    assert posenc.encode([], 5).shape == (0, 5)
    assert posenc.encode(3, 5).shape == (5,)


@pytest.mark.parametrize(
    "positions",
    [
        range(0),
        range(5, 6),
        range(300),
        range(-40, 300),
        range(300, -40, -1),
        range(0, 3000, 7),
        range(3000, -50, -13),
        range(-(2**63), 2**63, 2**62),
        range(-(2**63), 2**63, 2**63 + 5),
        range(2**63 - 60, 2**63),
        range(-(2**63) + 60, -(2**63) - 1, -1),
        range(5, 9, 2**70),
        range(9, 5, 2**70),
        range(7, 7 + 2**70, 2**69),
    ],
)
def test_ranges(positions, dtype, kernel):
    if positions and not -(2**63) <= positions[-1] < 2**63:
        with pytest.raises(ValueError, match="positions is 590295810358705651719; it must be an int64"):
            posenc.encode(positions, 4)
        return
    got = posenc.encode(positions, 4, dtype=dtype)
    check(got, np.array(list(positions), np.int64), 4)
    where = np.arange(len(positions)) % 3 > 0
    assert (bits(posenc.encode(positions, 4, dtype=dtype, where=where)) == bits(got) * where[:, None]).all()


def test_long_ranges_are_not_turned_into_arrays(monkeypatch):
    seen = []

    def looked_at(out, points, *_):
        seen.append(points)

    monkeypatch.setattr(core, "fill", looked_at)
    posenc.encode(range(10**6, 0, -1), 4)
    posenc.encode(range(0, 10**6, 3), 4)
    assert seen == [1, range(0, 10**6, 3)]


def test_runs_inside_arrays(dtype, kernel):
    """Packed sequences of many lengths, around those that repay a block."""
    lengths = [*range(1, 20), 31, 32, 33, 64, 65, 600, 1, 1, 7, 8, 9]
    positions = np.concatenate([np.arange(n) - n // 3 for n in lengths])
    table = posenc.table(1000, 6, start=-300, dtype=dtype)
    assert (bits(posenc.encode(positions, 6, dtype=dtype)) == bits(table[positions + 300])).all()
    near = np.r_[2**63 - 100 : 2**63 - 1, -(2**63) : -(2**63) + 100]
    check(posenc.encode(near, 6, dtype=dtype), near, 6)


def test_order_does_not_matter(dtype, kernel):
    rng = np.random.default_rng(3)
    for positions in (np.arange(700), rng.normal(size=700)):
        order = rng.permutation(700)
        want = posenc.encode(positions, 10, dtype=dtype)
        assert (bits(posenc.encode(positions[order], 10, dtype=dtype)) == bits(want)[order]).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_threads_streams_and_slices(threads, stream, small, dtype, kernel, monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    if small:
        monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    if stream:
        monkeypatch.setattr(_arrays, "STREAM_FROM", 0)
    out = np.empty((1300, 37), dtype)
    for positions in (np.arange(1300) / 3, np.r_[0:700, 0:600], range(0, 3900, 3)):
        got = posenc.encode(positions, 37, out=out, threads=threads, where=np.arange(1300) % 5 > 0)
        rows = [0, 1, 2, 511, 512, 699, 701, 1299]
        flat = np.asarray(positions)[rows].tolist()
        want = oracle.entries(flat, range(37), 37, dtype=dtype)
        want[[row % 5 == 0 for row in rows]] = 0
        assert (bits(got[rows]) == bits(want)).all()
        assert not bits(got[::5]).any()


# ---- where and out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [{}, {"odd": "zero"}, {"layout": "concatenated"}])
def test_where(encoding, dtype):
    positions = np.random.default_rng(1).integers(-50, 50, (3, 40))
    whole = posenc.encode(positions, 9, dtype=dtype, **encoding)
    for where in (positions > 0, positions[0] > 0, (positions > 0)[:, :1], True, False, [[True], [False], [True]]):
        got = posenc.encode(positions, 9, dtype=dtype, where=where, **encoding)
        assert (bits(got) == bits(whole) * np.broadcast_to(where, (3, 40))[..., None]).all()
    bad = np.where(positions > 0, positions, np.nan)
    got = posenc.encode(bad, 9, dtype=dtype, where=positions > 0, **encoding)
    assert (bits(got) == bits(whole) * (positions > 0)[..., None]).all()


def test_outputs_in_any_memory(dtype, kernel):
    positions = np.random.default_rng(1).integers(-50, 50, (3, 4, 5))
    want = bits(posenc.encode(positions, 6, dtype=dtype))
    for steps in itertools.product((1, 2, -1), repeat=3):
        whole = np.full([abs(step) * n for step, n in zip(steps, positions.shape, strict=True)] + [11], 7, dtype)
        out = whole[tuple(slice(None, None, step) for step in steps)][..., 2:8]
        for axes in itertools.permutations(range(3)):
            view = out.transpose(*axes, 3)
            assert posenc.encode(positions.transpose(axes), 6, out=view) is view
            assert (bits(out) == want).all()
            beside = whole.copy()
            beside[tuple(slice(None, None, step) for step in steps)][..., 2:8] = 7
            assert (beside == 7).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"positions": [0.0, np.nan]}, ValueError, r"positions\[1\] is nan"),
        ({"positions": [[np.inf]]}, ValueError, r"positions\[0, 0\] is inf"),
        ({"positions": 2.0**54}, ValueError, r"positions is 1\.8014398509481984e\+16; .* at most 2\*\*53"),
        ({"positions": True}, TypeError, "positions has dtype bool"),
        ({"positions": 1j}, TypeError, "positions has dtype complex"),
        ({"positions": "1"}, TypeError, "positions has dtype <U1"),
        ({"positions": None}, TypeError, "positions has dtype object"),
        ({"positions": np.datetime64("2020")}, TypeError, "positions has dtype datetime64"),
        ({"positions": np.longdouble(1)}, TypeError, "positions has dtype"),
        ({"positions": np.ma.masked_array([1])}, TypeError, "positions is a masked array"),
        ({"positions": 2**63}, ValueError, "positions is 9223372036854775808; it must be an int64"),
        ({"positions": -(2**63) - 1}, ValueError, "positions is -9223372036854775809"),
        ({"positions": [1, 2], "where": [True] * 3}, ValueError, "where has shape"),
        ({"positions": 1, "where": [True]}, ValueError, r"where has shape \(1,\); it must broadcast to \(\)"),
        ({"positions": [1], "where": [1]}, TypeError, "where has dtype int64; it must be booleans"),
        ({"positions": [1, 2], "out": np.zeros((2, 5), np.float32)}, ValueError, "out has shape"),
        ({"positions": [1, 2], "out": np.zeros((2, 8), np.float32)[:, ::2]}, ValueError, "last axis must be contiguous"),
        ({"positions": [1, 2], "out": np.zeros((2, 4)), "dtype": "float32"}, TypeError, "they must agree"),
        ({"positions": [1, 2], "dim": 0}, ValueError, "dim is 0"),
        ({"positions": [2.0**40], "base": 1e-300, "dim": 6}, ValueError, "the farthest position is 1099511627776 from 0"),
        ({"positions": [1, 2], "threads": 0}, ValueError, "threads is 0"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        posenc.encode(**{"dim": 4, **arguments})


# ---- doubts ----------------------------------------------------------------------------------------------------------


def test_every_path_ends_in_the_same_bits(dtype, kernel):
    encoding = posenc.Encoding(10, amplitude=0.7)
    form = _arrays.FORMATS[_arrays.checked_dtype(dtype, None)]
    points = np.random.default_rng(2).normal(size=60) * 100
    want = encoding.encode(points, dtype=dtype)
    some = {"float32": 2.0**-26, "float64": 2.0**-54, "float16": 2.0**-13, "bfloat16": 2.0**-10}[dtype]
    for bounds in ({"fast_bound": math.inf}, {"fast_bound": some}, {"fast_bound": math.inf, "accurate_bound": 0.5}):
        out = np.empty_like(want)
        encoding._rows.write(out, points, 1, form, **bounds)
        assert (bits(out) == bits(want)).all()


@pytest.mark.exhaustive
def test_many_positions(dtype, kernel):
    """2^27 entries: fast and doubt against the accurate path."""
    encoding = posenc.Encoding(1024)
    rng = np.random.default_rng(5)
    for _ in range(128):
        points = rng.uniform(-1, 1, 1024) * 2.0 ** rng.integers(-3, 30, 1024)
        want = np.empty((1024, 1024), _arrays.checked_dtype(dtype, None))
        encoding._rows.write(want, points, 1, fast_bound=math.inf)
        assert (bits(encoding.encode(points, dtype=dtype)) == bits(want)).all()
