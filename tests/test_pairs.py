"""sincos, rotate, similarity and shift_matrix, by bits where the order of operations is stated."""

import itertools

import numpy as np
import oracle
import pytest
from test_add import numbers, same, views

import posenc
from posenc import _rows, _threads


def pairs_of(x, encoding):
    """x's (s, c) as views."""
    n = encoding.dim // 2
    first, second = (
        (x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2]) if encoding.layout == "interleaved" else (x[..., :n], x[..., n : 2 * n])
    )
    return (second, first) if encoding.cos_first else (first, second)


def rotated(x, positions, encoding):
    """The stated operations, by NumPy."""
    sines, cosines = encoding.sincos(positions, dtype="float64")
    want = x.astype(np.float64)
    s, c = (part.copy() for part in pairs_of(want, encoding))
    with np.errstate(all="ignore"):
        new_s, new_c = s * cosines + c * sines, c * cosines - s * sines
        out_s, out_c = pairs_of(want, encoding)
        out_s[...], out_c[...] = new_s, new_c
        result = want.astype(x.dtype)
        if x.dtype.name == "bfloat16":  # ml_dtypes goes through float32, which rounds twice
            result = once(want, x.dtype)
    result[..., encoding.dim - encoding.dim % 2 :] = x[..., encoding.dim - encoding.dim % 2 :]
    return result


def once(values, kind):
    """float64 to bfloat16, rounded once: to odd in float32 first."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        back = single.astype(np.float64)
    number = single.view(np.uint32)
    inexact = (back != values) & ~np.isnan(values)
    away = inexact & (np.abs(back) > np.abs(values))
    odd = (number - (away & (number & 1 == 0))) | inexact
    return odd.view(np.float32).astype(kind)


ENCODINGS = [
    posenc.convention("rope", 8),
    posenc.convention("rope_halves", 8),
    posenc.Encoding(8),
    posenc.Encoding(8, layout="concatenated", base=50.0),
    posenc.Encoding(9, odd="zero", amplitude=1.3),
    posenc.Encoding(9, odd="zero", layout="concatenated", cos_first=True),
    posenc.Encoding(2060, layout="concatenated", cos_first=True),
    posenc.Encoding(2060, cos_first=True),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_rotate(encoding, dtype, kernel):
    x = numbers((2, 3, 40, encoding.dim), dtype)
    rng = np.random.default_rng(1)
    for positions in (np.arange(40), 5, rng.integers(-99, 99, (2, 1, 40)), rng.normal(size=(3, 40)) * 50):
        want = rotated(x, positions, encoding)
        same(encoding.rotate(x, positions), want)
        out = x.copy()
        assert encoding.rotate(out, positions, out=out, threads=2) is out
        same(out, want)


def test_rotate_keeps_the_tail(dtype, kernel):
    """Partial rotary embeddings: x is wider."""
    for encoding, more in itertools.product(ENCODINGS[:6], (1, 5)):
        x = numbers((3, 40, encoding.dim + more), dtype)
        got = encoding.rotate(x, np.arange(40))
        same(got, rotated(x, np.arange(40), encoding))
        assert got[..., encoding.dim :].tobytes() == x[..., encoding.dim :].tobytes()
        same(posenc.rotate(x, np.arange(40), dim=8, cos_first=True), ENCODINGS[0].rotate(x, np.arange(40)))


def test_rotate_in_any_memory(dtype, kernel):
    shape, encoding = (3, 37, 22), posenc.convention("rope", 22)
    outs = [out.copy(order="K") if "broadcast" in name else out for name, out in views(shape, dtype)]
    for (name, x), out in itertools.product(views(shape, dtype), outs):
        want, before = rotated(x, np.arange(37), encoding), x.copy()
        assert encoding.rotate(x, np.arange(37), out=out) is out
        same(out, want)
        same(x, before)
        if "broadcast" not in name:
            encoding.rotate(x, np.arange(37), out=x)
            same(x, want)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rotate_with_threads(threads, dtype, kernel, monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    encoding, x = posenc.convention("rope_halves", 64), numbers((2, 4, 700, 64), dtype)
    same(encoding.rotate(x, np.arange(700), threads=threads), rotated(x, np.arange(700), encoding))


def plain_rope(x, positions, halves):
    """RoPE as it is written by hand."""
    d = x.shape[-1]
    angles = np.multiply.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d))
    if halves:
        cos, sin = (np.concatenate([part, part], -1) for part in (np.cos(angles), np.sin(angles)))
        turned = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
    else:
        cos, sin = (np.repeat(part, 2, -1) for part in (np.cos(angles), np.sin(angles)))
        turned = np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    return x * cos + turned * sin


@pytest.mark.parametrize(("name", "halves"), [("rope", False), ("rope_halves", True)])
def test_rotate_is_rope(name, halves):
    x = np.random.default_rng(1).normal(size=(2, 30, 16))
    got = posenc.convention(name, 16).rotate(x, np.arange(30))
    assert np.allclose(got, plain_rope(x, np.arange(30), halves), rtol=0, atol=1e-13)
    back = posenc.convention(name, 16).replace(cos_first=False).rotate(got, np.arange(30))
    assert np.allclose(back, x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODINGS if encoding.amplitude == 1.0], ids=repr)
@pytest.mark.parametrize("delta", [0, 1, -7, 0.5, 1000])
def test_shifts(encoding, delta):
    """rotate(encode(t), delta), T @ encode(t) and encode(t + delta) are near each other."""
    for t in (0, 3, 100.25):
        row, want = encoding.encode(t, dtype="float64"), encoding.encode(t + delta, dtype="float64")
        assert np.allclose(encoding.rotate(row, delta), want, rtol=0, atol=1e-12)
        assert np.allclose(encoding.shift_matrix(delta) @ row, want, rtol=0, atol=1e-12)


def test_shift_matrix_is_exact():
    for encoding in (posenc.Encoding(4), posenc.Encoding(5, odd="zero", layout="concatenated", cos_first=True, amplitude=3.0)):
        matrix = encoding.shift_matrix(0.7)
        sines, cosines = encoding.replace(amplitude=1.0).sincos(0.7, dtype="float64")
        want = np.zeros((encoding.dim, encoding.dim))
        index = np.arange(encoding.dim)
        s, c = pairs_of(index, encoding)
        want[s, s] = want[c, c] = cosines
        want[s, c] = sines
        want[c, s] = -sines
        want[4:, 4:] = np.eye(encoding.dim - 4)
        assert (matrix == want).all()


# ---- sincos ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [range(70), range(9, -9, -1), np.arange(40.0) / 3, [[0, 5], [7, -3]], 4, []], ids=str)
def test_sincos(positions, dtype, kernel):
    encoding = posenc.Encoding(14, base=300.0, amplitude=0.7, odd="zero", cos_first=True)
    flat = np.array(positions, dtype=None if len(np.shape(positions)) == 0 or len(positions) else int)
    shape = flat.shape
    flat = flat.ravel().tolist()
    want = oracle.entries(flat, range(14), 14, base=300.0, amplitude=0.7, layout="concatenated", dtype=dtype)
    sines, cosines = want[:, :7].reshape(*shape, 7), want[:, 7:].reshape(*shape, 7)
    got = encoding.sincos(positions, dtype=dtype)
    assert [part.tobytes() for part in got] == [np.ascontiguousarray(part).tobytes() for part in (sines, cosines)]
    assert all(part.flags.c_contiguous and part.dtype == dtype for part in got)
    halves = encoding.sincos(positions, dtype=dtype, duplicate="halves")
    pairs = encoding.sincos(positions, dtype=dtype, duplicate="pairs")
    for part, half, pair in zip(got, halves, pairs, strict=True):
        assert half.tobytes() == np.concatenate([part, part], -1).tobytes()
        assert pair.tobytes() == np.repeat(part, 2, -1).tobytes()
    for duplicate, wanted in ((None, got), ("halves", halves)):
        out = tuple(np.full_like(part, 7) for part in wanted)
        returned = encoding.sincos(positions, out=out, duplicate=duplicate)
        assert returned[0] is out[0]
        assert returned[1] is out[1]
        assert [part.tobytes() for part in out] == [part.tobytes() for part in wanted]


def test_large_sincos(dtype, kernel, monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    table = posenc.table(1300, 1102, layout="concatenated", dtype=dtype)
    for positions in (range(1300), np.arange(1300)):
        sines, cosines = posenc.sincos(positions, 1102, dtype=dtype, threads=2)
        assert sines.tobytes() == np.ascontiguousarray(table[:, :551]).tobytes()
        assert cosines.tobytes() == np.ascontiguousarray(table[:, 551:]).tobytes()


# ---- similarity ------------------------------------------------------------------------------------------------------


def test_similarity_is_the_sum_from_left_to_right():
    offsets = np.r_[np.arange(-30, 30), np.random.default_rng(1).normal(size=40) * 100]
    for encoding in (posenc.Encoding(64), posenc.Encoding(7, odd="zero", amplitude=0.3, layout="concatenated")):
        cosines = encoding.replace(amplitude=1.0).sincos(offsets, dtype="float64")[1]
        want = np.zeros(len(offsets))
        for k in range(cosines.shape[1]):
            want = want + cosines[:, k]
        want = want * (encoding.amplitude * encoding.amplitude)
        assert (encoding.similarity(offsets) == want).all()
        assert encoding.similarity(offsets.reshape(4, 25)).tobytes() == want.tobytes()
        assert encoding.similarity(-offsets).tobytes() == want.tobytes()


def test_similarity_is_the_dot_product():
    rng = np.random.default_rng(2)
    for encoding in (posenc.Encoding(64), posenc.Encoding(65, odd="zero", amplitude=2.0, cos_first=True)):
        for t, delta in zip(rng.integers(0, 1000, 20).tolist(), rng.integers(-500, 500, 20).tolist(), strict=True):
            dot = encoding.encode(t, dtype="float64") @ encoding.encode(t + delta, dtype="float64")
            assert abs(encoding.similarity(delta) - dot) < 1e-11
    assert posenc.similarity(0, 64) == 32.0
    assert posenc.similarity(range(5), 64).shape == (5,)
    assert posenc.similarity(np.arange(300_000), 4).shape == (300_000,)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: posenc.rotate(np.ones((2, 3)), 0), ValueError, "dim is 3 and odd='truncate'"),
        (lambda: posenc.rotate(np.ones((2, 4), int), 0), TypeError, "x has dtype int64"),
        (lambda: posenc.rotate(np.ones((2, 4)), [0, 1, 2]), ValueError, "positions has shape"),
        (lambda: posenc.rotate(np.ones((2, 4)), [0, np.nan]), ValueError, r"positions\[1\] is nan"),
        (lambda: posenc.rotate(np.ones((2, 4)), True), TypeError, "positions has dtype bool"),
        (lambda: posenc.rotate(np.ones((2, 4)), 0, out=np.ones((2, 4), "f4")), TypeError, "out has dtype float32"),
        (lambda: posenc.rotate(np.ones((2, 4)), 0, dim=6), ValueError, "last axis must be at least the encoding's dim, 6"),
        (lambda: posenc.similarity(0, 3), ValueError, "dim is 3 and odd='truncate'"),
        (lambda: posenc.similarity(np.inf, 4), ValueError, "offsets is inf"),
        (lambda: posenc.Encoding(3).shift_matrix(1), ValueError, "dim is 3 and odd='truncate'"),
        (lambda: posenc.Encoding(4).shift_matrix([1]), ValueError, r"delta has shape \(1,\)"),
        (lambda: posenc.Encoding(4).shift_matrix("1"), TypeError, "delta has dtype <U1"),
        (lambda: posenc.sincos(0, 4, duplicate="both"), ValueError, "duplicate is 'both'"),
        (lambda: posenc.sincos(0, 4, duplicate=2), TypeError, "duplicate must be a str"),
        (lambda: posenc.sincos(0, 4, out=np.ones(2)), TypeError, "out must be two ndarrays"),
        (lambda: posenc.sincos(0, 4, out=(np.ones(2), np.ones(3))), ValueError, "out has shape"),
        (lambda: posenc.sincos(0, 4, out=(np.ones(2), np.ones(2, "f4"))), TypeError, "they must agree"),
        (lambda: posenc.sincos(0, 4, out=(a := np.ones(2), a)), ValueError, "share memory"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_rotate_without_pairs():
    """A zero column alone is copied; this once divided by 0, which ends the process."""
    x = np.arange(80.0).reshape(40, 2)
    for positions in (np.arange(40), 7, np.linspace(0.0, 1.0, 40)):
        assert posenc.rotate(x[:, :1], positions, odd="zero").tobytes() == np.ascontiguousarray(x[:, :1]).tobytes()
