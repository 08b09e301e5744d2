"""The same bits whatever the kernel, threads, chunking, alignment, strides or the caller's floating-point environment."""

import itertools
import platform
import random

import numpy as np
import pytest
from conftest import DTYPES

import posenc
from posenc import _arrays, _threads
from posenc._load import core

CASES = [
    (700, 96, -300, {}),
    (1100, 1030, 10**7, {"layout": "concatenated", "odd": "zero"}),
    (67, 5, 2**53, {"base": 1e30, "amplitude": 0.3}),
    (530, 2049, -(2**62), {"cos_first": True}),
]


@pytest.fixture
def always_parallel(monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)


@pytest.fixture(scope="module")
def reference():
    """Tables of the baseline kernel, one thread, whole: what everything else must equal."""
    before = core.kernel()
    core.use_kernel(core.KERNELS[0])
    posenc.clear_cache()
    tables = {
        (case, dtype): posenc.table(length, dim, start=start, dtype=dtype, threads=1, **encoding)
        for case, (length, dim, start, encoding) in enumerate(CASES)
        for dtype in DTYPES
    }
    core.use_kernel(before)
    posenc.clear_cache()
    return tables


@pytest.fixture(params=range(len(CASES)))
def case(request):
    return request.param


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_kernels_and_threads(case, dtype, threads, kernel, reference, always_parallel):
    length, dim, start, encoding = CASES[case]
    table = posenc.table(length, dim, start=start, dtype=dtype, threads=threads, **encoding)
    assert table.tobytes() == reference[case, dtype].tobytes()


@pytest.mark.parametrize("stream", [False, True])
def test_streaming(case, dtype, stream, kernel, reference):
    length, dim, start, encoding = CASES[case]
    out = np.empty((length, dim), dtype)
    posenc.Encoding(dim, **encoding)._rows.write(out, start, 1, stream=stream)
    assert out.tobytes() == reference[case, dtype].tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_any_split_into_calls(case, dtype, seed, kernel, reference):
    length, dim, start, encoding = CASES[case]
    rng = random.Random(seed)
    cuts = sorted({0, length, *(rng.randint(0, length) for _ in range(rng.randint(1, 30)))})
    out = np.empty((length, dim), dtype)
    for begin, end in itertools.pairwise(cuts):
        posenc.table(end - begin, dim, start=start + begin, out=out[begin:end], **encoding)
    assert out.tobytes() == reference[case, dtype].tobytes()


def test_every_alignment_length_and_width(dtype, kernel):
    """Lengths and widths 1..67 at every element offset into a cache line; nothing is written beside the table."""
    want = posenc.table(67, 134, dtype=dtype, start=-30, base=50.0)
    itemsize = want.itemsize
    for n in range(1, 68):
        for offset in {(n * 5) % (64 // itemsize), (n * 3 + 1) % (64 // itemsize)}:
            memory = np.full(2 * 64 + 67 * 134 * itemsize, 0xA5, np.uint8)
            begin = -memory.ctypes.data % 64 + offset * itemsize
            for length, columns, stream in ((n, 134, False), (67, n, True), (67, n, False)):
                memory[:] = 0xA5
                nbytes = length * columns * itemsize
                out = memory[begin : begin + nbytes].view(dtype).reshape(length, columns)
                # the first columns of a wider row are those of an encoding with the frequencies of the wider one
                encoding = posenc.Encoding(134, base=50.0) if columns == 134 else narrowed(columns)
                encoding._rows.write(out, -30, 1, stream=stream)
                assert out.tobytes() == want[:length, :columns].tobytes()
                assert (memory[:begin] == 0xA5).all()
                assert (memory[begin + nbytes :] == 0xA5).all()


def narrowed(columns):
    """The first columns of the width 134 with base 50, as an encoding of its own."""
    pairs = (columns + 1) // 2
    return posenc.Encoding(columns, frequencies=posenc.frequencies.paper_pairs(pairs, 134, 50.0))


@pytest.mark.parametrize("stream", [False, True])
def test_strided_out(dtype, stream, kernel):
    want = posenc.table(100, 30, dtype=dtype, start=5)
    wide = np.full((100, 37), 7.0, dtype)
    posenc.Encoding(30)._rows.write(wide[:, 4:34], 5, 1, stream=stream)
    assert wide[:, 4:34].tobytes() == want.tobytes()
    assert (wide[:, :4] == 7.0).all()
    assert (wide[:, 34:] == 7.0).all()
    backwards = np.empty((100, 30), dtype)[::-1]
    posenc.table(100, 30, start=5, out=backwards)
    assert backwards.tobytes() == want.tobytes()


def test_without_stored_rotations(kernel, monkeypatch):
    """Widths too large for the cache build each tile's rotations as they go."""
    want = [posenc.table(700, 1300, dtype=dtype, start=9).tobytes() for dtype in DTYPES]
    posenc.clear_cache()
    monkeypatch.setattr(posenc._rows.CACHE, "limit", 1000)
    assert [posenc.table(700, 1300, dtype=dtype, start=9).tobytes() for dtype in DTYPES] == want


CONTROLS = {"flush to zero": 0x9FC0, "down": 0x3F80, "up": 0x5F80, "to zero": 0x7F80}
if platform.machine() in ("aarch64", "arm64"):
    CONTROLS = {"flush to zero": 1 << 24, "down": 2 << 22, "up": 1 << 22, "to zero": 3 << 22}


@pytest.mark.parametrize("setting", CONTROLS)
def test_callers_floating_point_environment(setting, dtype, driver):
    """The bits do not depend on it, subnormals included, and it is as it was after the call."""
    tiny = {"float32": 1e-38, "float64": 1e-307, "float16": 6e-5, "bfloat16": 1e-38}[dtype]
    encodings = [posenc.Encoding(16), posenc.Encoding(6, amplitude=tiny, base=1e8)]
    for encoding in encodings:
        for length in (1, 100):
            want = encoding.table(length, start=3, dtype=dtype)
            out = np.empty_like(want)
            posenc.clear_cache()
            before = driver.control(CONTROLS[setting])
            try:
                encoding.table(length, start=3, out=out)
            finally:
                during = driver.control(before)
            assert out.tobytes() == want.tobytes()
            # the low six bits are x86's sticky exception flags, which Python's own arithmetic may raise
            assert during & ~0x3F == CONTROLS[setting]


@pytest.mark.parametrize("setting", CONTROLS)
@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_callers_floating_point_environment_and_subnormal_positions(setting, kind, driver):
    least = np.finfo(kind).smallest_subnormal
    positions = np.array([least, -3 * least, 0.5], kind)
    want = posenc.encode(positions, 8, dtype="float64")
    out = np.empty_like(want)
    before = driver.control(CONTROLS[setting])
    try:
        posenc.encode(positions, 8, out=out)
    finally:
        driver.control(before)
    assert want[0, 0] > 0.0
    assert out.tobytes() == want.tobytes()


def test_exception_flags_are_not_raised(driver):
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("reads the exception flags of MXCSR, which only x86-64 has")
    out, encoding = np.empty((64, 8), np.float32), posenc.Encoding(8, base=1e60, amplitude=1e-30)
    waves = encoding._rows.frequencies.waves()
    before = driver.control(0x1F80)
    core.fill(out, 0, _arrays.FLOAT32_FORMAT, waves, None, encoding._rows._layout, 1, False, None)
    assert driver.control(before) == 0x1F80
