"""Dask arrays of encodings, on the real dask: the bits of the arrays in memory, whatever the chunks, whoever computes them."""

import copy
import hashlib
import math
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import oracle
import pytest
from frameworks import quietly

import posenc
from posenc import _threads

da = pytest.importorskip("dask.array", reason="NOT TESTED: posenc.dask, without dask")

dask = sys.modules["dask"]
RNG = np.random.default_rng(5)
ENCODINGS = {
    "float32": posenc.Encoding(10),
    "float64": posenc.convention("whisper", 12),
    "float16": posenc.Encoding(7, base=500.0, layout="concatenated", odd="zero", amplitude=0.3, first=-20),
    "bfloat16": posenc.Encoding(6, frequencies=posenc.frequencies.given(RNG.random(3))),
}


@pytest.fixture
def encoding(dtype):
    return ENCODINGS[dtype]


@pytest.fixture(autouse=True)
def in_this_thread():
    """What does not ask for a scheduler runs here."""
    with dask.config.set(scheduler="synchronous"):
        yield


def cut(*sizes):
    """Chunks of random sizes, 0 among them."""
    ends = [sorted(RNG.integers(0, size + 1, 2 if size > 1 else 0)) for size in sizes]  # dask broadcasts an axis of one chunk
    return tuple(tuple(map(int, np.diff([0, *inner, size]))) for inner, size in zip(ends, sizes, strict=True))


def c_order(array):
    return np.asarray(array, order="C")


def same(lazy, want):
    """The bits of ``want``, in whole and in each block, and what dask knew before."""
    got = lazy.compute()
    assert isinstance(got, np.ndarray) or lazy.ndim == 0
    assert (lazy.shape, lazy.dtype) == (got.shape, got.dtype) == (want.shape, want.dtype)
    assert type(lazy._meta) is np.ndarray
    assert lazy._meta.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


# ---- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_under_any_chunking(encoding, dtype):
    length = 333
    want = encoding.table(length, start=-50, dtype=dtype)
    for chunks in (*(cut(length, encoding.dim) for _ in range(10)), 30, 40, -1, "auto", "1 KiB", (7, 3), {0: 30, 1: 2}):
        same(posenc.dask.table(length, encoding, start=-50, dtype=dtype, chunks=chunks), want)


def test_rows_are_whole_unless_columns_are_cut():
    assert posenc.dask.table(100, 512, chunks=10).chunks == ((10,) * 10, (512,))
    assert posenc.dask.table(100, 512, chunks=(50, 300)).chunks == ((50, 50), (300, 212))
    with dask.config.set({"array.chunk-size": "1MiB"}):
        assert posenc.dask.table(10_000, 512).chunksize == (512, 512)


def test_keywords_are_those_of_table():
    same(posenc.dask.table(9, 5, base=50.0, odd="zero", first=3), posenc.table(9, 5, base=50.0, odd="zero", first=3))
    same(posenc.dask.table(9, 4, start=2**63 - 9), posenc.table(9, 4, start=2**63 - 9))
    same(posenc.dask.table(0, 4), posenc.table(0, 4))


INDICES = [
    np.s_[5],
    np.s_[-1],
    np.s_[7:90],
    np.s_[90:7:-3],
    np.s_[::-1],
    np.s_[3::20],
    np.s_[:, 2],
    np.s_[4, 3],
    np.s_[10:80:7, 1:6:2],
    np.s_[[80, 3, 3, 41]],
    np.s_[[3, 80], 2:4],
    np.s_[:, [5, 0, 0]],
    np.s_[5:9, [5, 0]],
    np.s_[None, 4:50, None],
    np.s_[np.arange(100) % 3 == 0],
]


@pytest.mark.parametrize("chunks", [30, (13, 4)], ids=str)
def test_slices(chunks):
    lazy, want = posenc.dask.table(100, 10, start=4, chunks=chunks), posenc.table(100, 10, start=4)
    for index in INDICES:
        same(lazy[index], c_order(want[index]))
    same(lazy[9:95][2::3][[7, 1]][:, ::-2], c_order(want[9:95][2::3][[7, 1]][:, ::-2]))
    with dask.config.set({"optimization.fuse.active": False}):
        for index in INDICES:
            same(lazy[index], c_order(want[index]))


def test_a_table_as_dask_may_read_it():
    """Lists too: which of them come from the fusion of slices depends on dask's version."""
    want = posenc.table(100, 10, start=-4, dtype="float64")
    read = posenc.dask._Table(posenc.Encoding(10), range(-4, 96), np.dtype("float64"), 1)
    for index in (
        np.s_[5, 3],
        np.s_[5, :],
        np.s_[90:7:-3, 2],
        np.s_[[80, 3], 1:4],
        np.s_[np.array([7, 7]), :],
        np.s_[4:9, [5, 0]],
    ):
        assert read[index].tobytes() == c_order(want[index]).tobytes()
        assert read[index].shape == want[index].shape
        assert read[index].base is None or read[index].base.nbytes < want.nbytes


def test_of_a_block_the_rows_of_a_slice_are_computed():
    """The block has 2**66 bytes; MPFR has the rows."""
    lazy = posenc.dask.table(2**60, 256, dtype="float64", chunks=2**55)
    start = 2**59 + 12345
    got = lazy[start : start + 9 : 4].compute()
    want = oracle.entries(range(start, start + 9, 4), range(256), 256, dtype="float64")
    assert got.tobytes() == np.asarray(want).tobytes()


def test_a_graph_holds_no_data():
    few, many = (pickle.dumps(posenc.dask.table(10**k, 512, chunks=10 ** (k - 3)).dask) for k in (6, 12))
    assert len(few) < len(many) < 20_000  # a thousand sizes of chunks are most of it
    assert len(posenc.dask.table(1000, 8).dask.layers) == 1
    summed = posenc.dask.add(da.zeros((1000, 8), chunks=(10, 8)), where=True)
    assert len(pickle.dumps(summed.dask)) < 60_000


def test_names_are_those_of_the_arguments_in_every_process():
    calls = [
        "posenc.dask.table(100, 8)",
        "posenc.dask.table(100, posenc.Encoding(8, base=10000))",
        "posenc.dask.encode(range(5), 8)",
        "posenc.dask.add(posenc.dask.table(100, 8))",
    ]
    names = [eval(f"{call}.name") for call in calls]
    assert names[0] == names[1]
    lines = "; ".join(f"print({call}.name)" for call in calls)
    ended = subprocess.run([sys.executable, "-c", f"import posenc; {lines}"], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == names
    others = [
        posenc.dask.table(101, 8),
        posenc.dask.table(100, 10),
        posenc.dask.table(100, 8, start=1),
        posenc.dask.table(100, 8, dtype="float64"),
        posenc.dask.table(100, 8, chunks=10),
        *(
            posenc.dask.table(100, 8, **keywords)
            for keywords in ({"base": 2.0}, {"layout": "concatenated"}, {"cos_first": True})
        ),
        *(posenc.dask.table(100, 8, frequencies=posenc.frequencies.given([1.0, 2.0, 3.0, w])) for w in (4.0, 5.0)),
    ]
    assert len({names[0], *(other.name for other in others)}) == 1 + len(others)


# ---- any positions -----------------------------------------------------------------------------------------------------

POSITIONS = {
    "integers": RNG.integers(-(10**6), 10**6, (9, 20)),
    "runs": np.arange(180).reshape(9, 20),
    "floats": RNG.normal(size=(9, 20)) * 1e5,
    "unsigned": RNG.integers(0, 200, (9, 20), np.uint8),
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_encode_under_any_chunking(kind, encoding, dtype):
    positions = POSITIONS[kind]
    where = positions % 3 < 1
    for lead in [(), (0,), (slice(None), 3)]:
        some, mask = positions[lead], where[lead]
        want = encoding.encode(some, dtype=dtype)
        masked = encoding.encode(some, where=mask, dtype=dtype)
        for _ in range(3):
            lazy = da.from_array(some, chunks=cut(*some.shape))
            got = posenc.dask.encode(lazy, encoding, dtype=dtype)
            assert got.chunks == (*lazy.chunks, (encoding.dim,))
            same(got, want)
            for given in (mask, da.from_array(mask, chunks=cut(*mask.shape))):
                same(posenc.dask.encode(lazy, encoding, where=given, dtype=dtype), masked)


def test_encode_where_broadcasts():
    positions, lazy = POSITIONS["floats"], da.from_array(POSITIONS["floats"], chunks=(4, 7))
    for where in (True, False, [i % 2 == 0 for i in range(20)], np.arange(9)[:, None] % 2 == 0, np.zeros((1, 1), bool)):
        want = posenc.encode(positions, 8, where=where)
        same(posenc.dask.encode(lazy, 8, where=where), want)
        same(posenc.dask.encode(lazy, 8, where=da.asarray(where)), want)
    holes = np.where(np.arange(20) % 2 == 0, positions, np.nan)
    want = posenc.encode(holes, 8, where=np.arange(20) % 2 == 0)
    same(posenc.dask.encode(da.from_array(holes, chunks=3), 8, where=np.arange(20) % 2 == 0), want)


def test_encode_what_is_not_a_dask_array():
    for given in (5, 0.5, [], [[1, 2], [3, 4.5]], np.float32(7), range(20, -20, -3), range(0), range(5, 9, 10)):
        same(posenc.dask.encode(given, 6), posenc.encode(given, 6))
    same(posenc.dask.encode(range(5, 9, 2**70), 6), posenc.encode([5], 6))
    ends = range(-(2**63), 2**63 - 1, 2**62 + 12345)
    same(posenc.dask.encode(ends, 6), posenc.encode(ends, 6))
    same(posenc.dask.encode(range(9), 6, where=[True] * 8 + [False]), posenc.encode(range(9), 6, where=[True] * 8 + [False]))


def test_encode_cuts_what_is_long_so_that_blocks_of_rows_are_not():
    lazy = posenc.dask.encode(range(10**8), 512)
    assert math.prod(lazy.chunksize) * 4 <= 128 << 20
    same(lazy[10**7 + 5], posenc.encode(10**7 + 5, 512))
    assert max(posenc.dask.encode(np.zeros((1000, 1000), np.int8), 512).chunksize) < 1000


def test_encode_with_unknown_chunks():
    numbers = np.arange(50)
    lazy = da.from_array(numbers, chunks=8)
    kept = lazy[lazy % 3 == 0]
    want = posenc.encode(numbers[::3], 8)
    assert posenc.dask.encode(kept, 8).compute().tobytes() == want.tobytes()
    mask = numbers[::3] % 2 == 0
    got = posenc.dask.encode(kept, 8, where=kept % 2 == 0).compute()
    assert got.tobytes() == posenc.encode(numbers[::3], 8, where=mask).tobytes()


# ---- sums --------------------------------------------------------------------------------------------------------------


def test_add_under_any_chunking(encoding, dtype):
    x = RNG.normal(size=(4, 3, 11, encoding.dim)).astype(dtype)
    for axis, start, scale in [(-2, None, 1.0), (0, 10**9, 3.7), (1, -5, 0.1), (-3, 2**62, -1.0), (2, 7, 16)]:
        want = encoding.add(x, axis=axis, start=start, scale=scale)
        for _ in range(3):
            lazy = da.from_array(x, chunks=cut(*x.shape))
            got = posenc.dask.add(lazy, dim=encoding, axis=axis, start=start, scale=scale)
            assert got.chunks == (*lazy.chunks[:-1], (encoding.dim,))
            same(got, want)


def test_add_at_positions():
    encoding = ENCODINGS["float16"]
    x = RNG.normal(size=(6, 5, 8, encoding.dim)).astype(np.float32)
    lazy = da.from_array(x, chunks=(4, 2, 3, 4))
    for shape in [(), (8,), (5, 1), (5, 8), (6, 1, 1), (6, 5, 8), (1, 1, 8), (1,)]:
        for positions in (RNG.integers(-99, 99, shape), RNG.normal(size=shape)):
            where = RNG.random(shape) < 0.5
            want = encoding.add(x, positions=positions, where=where)
            got = posenc.dask.add(lazy, dim=encoding, positions=positions, where=where)
            assert got.chunks == (*lazy.chunks[:-1], (encoding.dim,))
            same(got, want)
            cuts = (da.from_array(array, chunks=cut(*shape)) for array in (positions, where))
            same(posenc.dask.add(lazy, dim=encoding, **dict(zip(("positions", "where"), cuts, strict=True))), want)
    whole_rows = da.from_array(x, chunks=(4, 2, 3, -1))
    got = posenc.dask.add(whole_rows, dim=encoding, positions=np.arange(40).reshape(5, 8), where=[True] * 8)
    assert not any("rechunk" in name for name in got.dask.layers)  # what is in memory is cut as x is
    same(posenc.dask.add(lazy, dim=encoding, positions=range(8, 0, -1)), encoding.add(x, positions=range(8, 0, -1)))


def test_add_what_it_is_given():
    x = RNG.normal(size=(5, 6))
    same(posenc.dask.add(x), posenc.add(x))
    same(posenc.dask.add(x.tolist(), base=20.0), posenc.add(x, base=20.0))
    same(posenc.dask.add(x, dim=6, base=20.0), posenc.add(x, base=20.0))
    same(posenc.dask.add(x[0], positions=3), posenc.add(x[0], positions=3))
    same(posenc.dask.add(da.ones((0, 6))), posenc.add(np.ones((0, 6))))
    swapped = da.ones((7, 6), dtype=">f4", chunks=3)
    same(posenc.dask.add(swapped), posenc.add(np.ones((7, 6), np.float32)))
    first = x.copy()
    lazy = posenc.dask.add(da.from_array(x, chunks=2))
    lazy.compute()
    assert (x == first).all()


def test_add_with_unknown_chunks():
    x = np.repeat(np.arange(1.0, 21.0), 6 * 4).reshape(20, 4, 6)
    lazy = da.from_array(x, chunks=(3, 2, 6))
    kept = lazy[lazy[:, 0, 0] % 2 == 0]
    assert posenc.dask.add(kept, start=9).compute().tobytes() == posenc.add(x[1::2], start=9).tobytes()
    with pytest.raises(
        ValueError, match=r"x has shape \(nan, 4, 6\); its size along axis 0 must be known: x.compute_chunk_sizes"
    ):
        posenc.dask.add(kept, axis=0)
    kept.compute_chunk_sizes()
    same(posenc.dask.add(kept, axis=0), posenc.add(x[1::2], axis=0))


# ---- who computes, and with what ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers(scheduler):
    where = np.arange(1000) % 7 > 0
    x = posenc.table(1000, 32, start=5)
    lazy = posenc.dask.add(posenc.dask.table(1000, 32, start=5, chunks=100), where=where, scale=2.0)
    with dask.config.set(scheduler=scheduler), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks
        same(lazy, posenc.add(x, where=where, scale=2.0))


@pytest.mark.parametrize("given", [{}, {"threads": 1}, {"threads": 3}, {"threads": None}], ids=str)
def test_threads_of_a_block(given, monkeypatch):
    """Each block is over the size from which more threads than one are used."""
    asked = []

    def for_work(explicit, nbytes):
        asked.append(explicit)
        return 1

    monkeypatch.setattr(_threads, "for_work", for_work)
    x = da.zeros((20_000, 128), chunks=(10_000, 128), dtype="float32")
    for lazy in (
        posenc.dask.table(*x.shape, chunks=10_000, **given),
        posenc.dask.encode(da.arange(20_000, chunks=10_000), 128, **given),
        posenc.dask.add(x, **given),
    ):
        asked.clear()
        lazy.compute()
        assert asked[-2:] == [given.get("threads", 1)] * 2


def test_to_zarr(tmp_path, dtype):
    zarr = pytest.importorskip("zarr", reason="NOT TESTED: to_zarr, without zarr")
    if dtype == "bfloat16":
        pytest.skip("zarr has no bfloat16")
    lazy = posenc.dask.table(5000, 64, start=3, dtype=dtype, chunks=1024)
    quietly(lazy.to_zarr, str(tmp_path / "pe.zarr"))
    want = posenc.table(5000, 64, start=3, dtype=dtype)
    stored = zarr.open(str(tmp_path / "pe.zarr"), mode="r")
    assert stored.chunks == (1024, 64)
    assert stored[...].tobytes() == want.tobytes()
    same(da.from_zarr(str(tmp_path / "pe.zarr"))[1000:3000], want[1000:3000])


def test_settings_of_dask_are_left_alone():
    before = copy.deepcopy(dask.config.config)
    lazy = posenc.dask.add(posenc.dask.table(9, 4, chunks=2), positions=posenc.dask.encode(range(9), 1)[:, 0])
    lazy.compute()
    assert dask.config.config == before


# ---- what is refused, and when -----------------------------------------------------------------------------------------

ONES = da.ones((6, 4), chunks=(4, 4))
WRONG = [
    (lambda: posenc.dask.table(-1, 4), ValueError, "length is -1; it must be at least 0"),
    (lambda: posenc.dask.table(5, 0), ValueError, "dim is 0; it must be at least 1"),
    (lambda: posenc.dask.table(5, 4, dtype="int32"), TypeError, "dtype is 'int32'; it must be float32"),
    (lambda: posenc.dask.table(5, 4, start=2**63 - 4), ValueError, "the last position, start .* must be an int64"),
    (lambda: posenc.dask.table(5, 4, threads=0), ValueError, "threads is 0; it must be at least 1"),
    (
        lambda: posenc.dask.table(5, 4, amplitude=1e6, dtype="float16"),
        ValueError,
        "amplitude is 1000000.0; it overflows float16",
    ),
    (
        lambda: posenc.dask.table(2**62, 4, frequencies=posenc.frequencies.octaves(2, pi=True).scaled(2.0)),
        ValueError,
        r"2\*\*64",
    ),
    (lambda: posenc.dask.table(5, 4, chunks=(2, 2, 2)), ValueError, "chunks"),
    (lambda: posenc.dask.table(5, posenc.Encoding(4), base=5.0), TypeError, r"dim is Encoding\(4, .* and base= given"),
    (lambda: posenc.dask.table(5, "4"), TypeError, "dim must be an integer, not str '4'"),
    (lambda: posenc.dask.encode(ONES > 0, 4), TypeError, "positions has dtype bool"),
    (lambda: posenc.dask.encode(["a"], 4), TypeError, "positions has dtype <U1"),
    (lambda: posenc.dask.encode(da.ma.masked_array(ONES, ONES > 0), 4), TypeError, "positions is a masked array"),
    (lambda: posenc.dask.encode(ONES, 4, where=ONES), TypeError, "where has dtype float64; it must be booleans"),
    (lambda: posenc.dask.encode(ONES, 4, where=[1, 0]), TypeError, "where has dtype int64; it must be booleans"),
    (
        lambda: posenc.dask.encode(ONES, 4, where=[True] * 5),
        ValueError,
        r"where has shape \(5,\); it must broadcast to \(6, 4\)",
    ),
    (lambda: posenc.dask.encode(ONES, 4, where=ONES[None] > 0), ValueError, "where has shape"),
    (lambda: posenc.dask.encode(ONES, 4, threads=True), TypeError, "threads must be an integer, not bool True"),
    (lambda: posenc.dask.add(ONES.astype(int)), TypeError, "x has dtype int64; it must be float32"),
    (lambda: posenc.dask.add(da.ma.masked_array(ONES, ONES > 0)), TypeError, "x is a masked array"),
    (lambda: posenc.dask.add(da.ones(())), ValueError, r"x has shape \(\); it must have a last axis"),
    (lambda: posenc.dask.add(da.ones((3, 0))), ValueError, r"x has shape \(3, 0\); it must have a last axis"),
    (lambda: posenc.dask.add(ONES[:, ONES[0] > 0]), ValueError, r"x has shape \(6, nan\); it must have a last axis of a known"),
    (lambda: posenc.dask.add(ONES, dim=5), ValueError, r"x has shape \(6, 4\); its last axis must be the encoding's dim, 5"),
    (lambda: posenc.dask.add(ONES, axis=1), ValueError, "axis is 1 and x has 2"),
    (lambda: posenc.dask.add(ONES[0]), ValueError, "x has one axis"),
    (lambda: posenc.dask.add(ONES, scale=math.inf), ValueError, "scale is inf; it must be finite"),
    (lambda: posenc.dask.add(ONES, start=2**63 - 3), ValueError, "must be an int64"),
    (lambda: posenc.dask.add(ONES, positions=5, start=4), TypeError, "positions is given with start=4 and axis=-2"),
    (lambda: posenc.dask.add(ONES, positions=[1, 2]), ValueError, r"positions has shape \(2,\); it must broadcast to \(6,\)"),
    (lambda: posenc.dask.add(ONES, positions=ONES), ValueError, r"positions has shape \(6, 4\); it must broadcast to \(6,\)"),
    (lambda: posenc.dask.add(ONES, positions=ONES[:, 0] > 0), TypeError, "positions has dtype bool"),
    (lambda: posenc.dask.add(ONES, where="no"), TypeError, "where has dtype <U2; it must be booleans"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_wrong_is_refused_before_anything_is_computed(number):
    call, error, words = WRONG[number]
    with pytest.raises(error, match=words):
        call()


def test_values_are_looked_at_when_a_block_is_computed():
    lazy = posenc.dask.encode(da.from_array([0.0, 1.0, np.nan], chunks=2), 4)
    same(lazy[:2], posenc.encode([0.0, 1.0], 4))
    with pytest.raises(ValueError, match=r"positions\[0\] is nan; it must be finite"):
        lazy.compute()


def test_dask_is_imported_when_it_is_needed():
    code = (
        "import sys\n"
        "sys.modules['dask'] = sys.modules['dask.array'] = None\n"
        "import posenc\n"
        "assert 'posenc.dask' not in sys.modules and 'dask' in dir(posenc) and 'dask' not in posenc.__all__\n"
        "from posenc import dask\n"
        "assert dask is posenc.dask\n"
        "dask.table(4, 4)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr.endswith("ImportError: posenc.dask needs dask: pip install 'posenc[dask]'\n"), ended.stderr


# ---- a cluster ---------------------------------------------------------------------------------------------------------

LIMIT = 256 << 20  # bytes of a worker; it is ended at 95 % of them
BLOCK = 4096  # rows of 256 float32, 4 MiB


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="NOT TESTED: posenc.dask on a cluster, without distributed")
    settings = {"distributed.worker.memory.terminate": 0.95, "distributed.comm.timeouts.connect": "60s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def digests(lazy):
    """For each block of rows its SHA-256 and the process that computed it, as futures' inputs."""

    def digest(block):  # a function of no module goes to the workers by value
        return hashlib.sha256(block).hexdigest(), os.getpid()

    return [dask.delayed(digest)(block) for block in lazy.to_delayed().ravel()]


def wanted(start, blocks):
    """The digests of blocks in memory."""
    buffer = np.empty((BLOCK, 256), np.float32)
    for first in range(start, start + BLOCK * blocks, BLOCK):
        yield hashlib.sha256(posenc.table(BLOCK, 256, start=first, out=buffer)).hexdigest()


def test_a_table_larger_than_the_memory_of_a_worker(client):
    lazy = posenc.dask.table(BLOCK * 192, 256, start=10**6, chunks=BLOCK)
    assert lazy.nbytes == 3 * LIMIT
    before = set(client.run(os.getpid).values())
    got = client.gather(client.compute(digests(lazy)))
    assert [digest for digest, _ in got] == list(wanted(10**6, 192))
    assert set(client.run(os.getpid).values()) == before  # nobody took more memory than there is
    assert {process for _, process in got} == before
    assert os.getpid() not in before


def test_a_worker_is_killed_half_way(client):
    distributed, psutil = sys.modules["distributed"], pytest.importorskip("psutil")
    lazy = posenc.dask.table(BLOCK * 64, 256, start=-(10**6), chunks=BLOCK)
    futures = client.compute(digests(lazy))
    lost = None
    for finished, future in enumerate(distributed.as_completed(futures), 1):
        if finished == 32:
            _, lost = future.result()
            psutil.Process(lost).kill()
    got = client.gather(futures)
    assert [digest for digest, _ in got] == list(wanted(-(10**6), 64))
    assert lost not in {process for _, process in got}  # what it had computed was computed again by others


def test_a_cluster_computes_sums_and_any_positions(client):
    x = RNG.normal(size=(8, 100, 32)).astype(np.float16)
    where, positions = RNG.random((8, 100)) < 0.7, RNG.normal(size=(8, 100)) * 1e4
    for encoding in (posenc.Encoding(32), posenc.Encoding(32, frequencies=posenc.frequencies.given(RNG.random(16)))):
        summed = posenc.dask.add(da.from_array(x, chunks=(3, 30, 10)), dim=encoding, where=where, start=77)
        points = posenc.dask.encode(da.from_array(positions, chunks=(3, 30)), encoding, dtype="float64")
        with dask.config.set(scheduler=client):
            same(summed, encoding.add(x, where=where, start=77))
            same(points, encoding.encode(positions, dtype="float64"))
