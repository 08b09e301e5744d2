"""hypothesis drives `table`, `encode` and `add` with arguments of every kind.

A call ends in the right bits, those of the accurate path for a table and of NumPy's operations for a sum, or in a TypeError,
ValueError or MemoryError that names a parameter and leaves ``out`` as it was. What is right as documented is not refused.
"""

import inspect
import os

import numpy as np
import pytest
from conftest import DTYPES

import posenc
from posenc import _arrays

hypothesis = pytest.importorskip("hypothesis", reason="the arguments are chosen by hypothesis")
st = hypothesis.strategies

EXAMPLES = int(os.environ.get("POSENC_EXAMPLES", "5500"))  # of each of the first two tests
settings = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
NAMES = {*inspect.signature(posenc.Encoding).parameters, *inspect.signature(posenc.table).parameters}
NAMES |= {*inspect.signature(posenc.encode).parameters, *inspect.signature(posenc.add).parameters, "positions[", "POSENC"}
NO_INTEGER = [None, 1.0, "3", True, [1], np.float64(2), 2 + 0j, object()]
NO_ARRAY = [None, "text", {}, [[1.0], [2.0, 3.0]], np.ma.masked_array([1.0, 2.0]), np.array("2020", "M8[Y]"), object()]


class Argument:
    """What an argument may be, and values that are wrong for it."""

    def __init__(self, right, *wrong):
        self.right = right if isinstance(right, st.SearchStrategy) else st.sampled_from(right)
        self.wrong = st.sampled_from(wrong)


class Choice:
    """The values that a test draws, and whether all are right; most examples are without faults."""

    def __init__(self, data):
        self._data = data
        self.valid = True
        self._faults = self.integer(0, 9) > 6

    def of(self, argument):
        wrong = self.fault(3)
        return self._data.draw(argument.wrong if wrong else argument.right)

    def one(self, values):
        return self._data.draw(st.sampled_from(values))

    def integer(self, least, most):
        return self._data.draw(st.integers(least, most))

    def given(self, share=3):
        """Whether an optional argument is given: one time in ``share``."""
        return self.integer(1, share) == share

    def fault(self, share):
        """Whether something is to be wrong."""
        fault = self._faults and self.given(share)
        self.valid = self.valid and not fault
        return fault


STARTS = Argument(
    st.one_of(st.integers(-100, 100), st.integers(-(2**53), 2**53), st.sampled_from([np.int8(-3), np.uint64(7)])),
    *(2**63, -(2**63) - 1, *NO_INTEGER[1:]),
)
THREADS = Argument([1, 2, 3, np.int32(2)], *(0, -1, 2**40, *NO_INTEGER[1:]))
BASES = Argument([10000.0, 100, np.float32(7.5), 1e9, 1.0, 0.5], *(0.0, -1.0, np.nan, np.inf, "10", 1e300, True, 1j))
AMPLITUDES = Argument([1.0, -0.3, 2, 1e-30, 1e4], *(0.0, np.inf, "1", None, 1e308, False))
SCALES = Argument([1.0, 0.0, -2, 22.627417, np.float32(0.1), 1e-44], *(np.nan, np.inf, "2", None, 1e40, 1j, [1.0]))
LAYOUTS = Argument(["interleaved", "concatenated"], *("halves", None, 1))
ODDS = Argument(["truncate", "zero"], *("drop", None, 0))


def encoding(choice):
    """Keywords of an encoding."""
    kinds = {"base": BASES, "amplitude": AMPLITUDES, "layout": LAYOUTS, "odd": ODDS}
    kinds |= {"cos_first": Argument([True, False], "yes", 1, None), "first": STARTS}
    keywords = {name: choice.of(kind) for name, kind in kinds.items() if choice.given(6)}
    return keywords | ({"unknown": 1} if choice.fault(40) else {})


def memory(choice, shape, dtype, use):
    """An array of that shape in some layout of memory, and the memory that it is a view of.

    As x it may be anything; as the out of a sum in any layout, of a table with rows of contiguous elements.
    """
    steps = [choice.one([1, 1, 1, 2, 3, -1]) for _ in shape]
    pads = [choice.one([0, 0, 1, 5]) for _ in shape]
    order, kind, misaligned = choice.one(["C", "C", "C", "F"]), np.dtype(dtype), 0
    if use == "table" and shape and not choice.fault(6):
        steps, order = [*steps[:-1], 1], "C"
    if dtype != "bfloat16" and (choice.given(12) if use == "x" else choice.fault(12)):
        kind = kind.newbyteorder()
    if choice.given(12) if use == "x" else choice.fault(12):
        misaligned = 1
    full = [abs(step) * n + pad for step, n, pad in zip(steps, shape, pads, strict=True)]
    block = np.zeros(int(np.prod(full)) * kind.itemsize + 64, np.uint8)
    whole = np.ndarray(full, kind, block, 8 * choice.integer(0, 3) + misaligned, order=order)
    view = whole[(..., *(slice(abs(step) * n) for step, n in zip(steps, shape, strict=True)))]
    view = view[(..., *(slice(None, None, step) for step in steps))]
    if use == "x" and shape and choice.given(8):
        view = np.broadcast_to(view[:1], shape)
    if use != "x" and choice.fault(12):
        view.flags.writeable = False
    return view, block


def fill(view, seed):
    """Numbers of many sizes, and special ones."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=view.shape) * 2.0 ** rng.integers(-20, 20, view.shape)
    special = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 65504.0], view.shape)
    with np.errstate(all="ignore"):
        view[...] = np.where(rng.random(view.shape) < 0.1, special, values).astype(np.float32)


def outcome(call, choice, block):
    """The result, or None after an error that is as it should be."""
    before = None if block is None else block.tobytes()
    try:
        return call()
    except (TypeError, ValueError, MemoryError) as raised:
        error = raised
    hypothesis.event(f"{type(error).__name__}")
    assert not choice.valid, error
    assert any(name in str(error) for name in NAMES), error
    assert block is None or block.tobytes() == before
    return None


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


@settings
@hypothesis.given(st.data())
def test_table(data):
    choice = Choice(data)
    length, dim = choice.integer(0, 80), choice.integer(1, 40)
    kind = choice.of(Argument(DTYPES, "int32", "float128", "nothing", 3.5, object(), "c8"))
    keywords = encoding(choice)
    given = {"start": STARTS, "threads": THREADS}
    keywords |= {name: choice.of(strategy) for name, strategy in given.items() if choice.given()}
    arguments = [choice.of(Argument([length], -1, 2**62, *NO_INTEGER)), choice.of(Argument([dim], 0, -2, 2**62, *NO_INTEGER))]
    out = block = None
    if choice.fault(30):
        keywords["out"] = choice.one(NO_ARRAY[1:])
    elif choice.given() and kind in DTYPES:
        shape = choice.one([(length + 1, dim), (dim,), (), (length, dim, 1)]) if choice.fault(10) else (length, dim)
        out, block = memory(choice, shape, kind, "table")
        keywords["out"] = out
    if out is None or choice.given():
        keywords["dtype"] = kind
    got = outcome(lambda: posenc.table(*arguments, **keywords), choice, block)
    if got is None:
        return
    assert out is None or got is out
    assert got.shape == (length, dim)
    names = inspect.signature(posenc.Encoding).parameters
    chosen = posenc.Encoding(dim, **{name: value for name, value in keywords.items() if name in names})
    want = np.empty((length, dim), _arrays.checked_dtype(kind, None))
    start = keywords.get("start")
    if length:
        chosen._rows.write(want, int(chosen.first if start is None else start), 1, fast_bound=np.inf)
    hypothesis.event("a table")
    assert (bits(got) == bits(want)).all()


@settings
@hypothesis.given(st.data())
def test_add(data):
    choice = Choice(data)
    ndim = choice.one([1, 2, 2, 3, 3, 3, 4, 5])
    dim = choice.integer(1, 40)
    lead = tuple(choice.one([1, 2, 3, 5, 40] if i == ndim - 2 else [0, 1, 2, 3]) for i in range(ndim - 1))
    dtype = choice.one(DTYPES)
    x, block = memory(choice, (*lead, dim), dtype, "x")
    if x.flags.writeable:
        fill(x, choice.integer(0, 99))
    keywords = encoding(choice)
    keywords |= {name: choice.of(kind) for name, kind in {"scale": SCALES, "threads": THREADS}.items() if choice.given()}
    points, axis = None, ndim - 2
    if ndim == 1 or choice.given():
        points, keywords["positions"] = positions(choice, lead)
    else:
        if choice.given():
            axis = choice.integer(0, ndim - 2)
            keywords["axis"] = choice.of(Argument([axis, axis - ndim], *(ndim - 1, -1, ndim, -ndim - 1, 0.5, None)))
        if choice.given():
            keywords["start"] = choice.of(STARTS)
    where = None
    if choice.given():
        shape = tuple(choice.one([1, n]) for n in lead)[choice.integer(0, len(lead)) :]
        where = np.random.default_rng(choice.integer(0, 9)).random(shape) < 0.5
        keywords["where"] = choice.of(
            Argument(
                [where, where.tolist() if where.size else where], *(1, np.ones((1,) * (len(lead) + 1), bool), "yes", where + 1)
            )
        )
    before = x.copy()
    out = None
    if choice.given(2):
        out, block = output(choice, x, block)
        keywords["out"] = out
    first = choice.one([*NO_ARRAY, np.ones((2, 3), int), [[1, 2]], np.ones((2, 0)), 1.0]) if choice.fault(8) else x
    got = outcome(lambda: posenc.add(first, **keywords), choice, block)
    if got is None:
        return
    assert out is None or got is out
    names = inspect.signature(posenc.Encoding).parameters
    chosen = posenc.Encoding(dim, **{name: value for name, value in keywords.items() if name in names})
    start = keywords.get("start")
    check_sum(got, before, chosen, rows_of(chosen, before, points, axis, start), keywords.get("scale", 1.0), where)


@settings
@hypothesis.given(st.data())
def test_encode(data):
    choice = Choice(data)
    dim, dtype = choice.integer(1, 40), choice.one(DTYPES)
    lead = tuple(choice.one([0, 1, 2, 3, 40]) for _ in range(choice.integer(0, 3)))
    keywords = encoding(choice)
    keywords |= {"threads": choice.of(THREADS)} if choice.given() else {}
    if choice.given(4):
        given = range(choice.integer(-50, 50), choice.integer(-50, 50), choice.one([1, -1, 2, -3, 100]))
        points, lead = np.array(given, int), (len(given),)
    else:
        points, given = positions(choice, lead, whole=True)
    where = None
    if choice.given():
        where = np.random.default_rng(choice.integer(0, 9)).random(lead) < 0.5
        keywords["where"] = choice.of(Argument([where], 1, np.ones((1,) * (len(lead) + 1), bool), "yes", where + 1))
    out = block = None
    if choice.given():
        out, block = memory(choice, (*lead, dim), dtype, "table")
        keywords["out"] = out
    else:
        keywords["dtype"] = choice.of(Argument([dtype], "int8", object(), 3))
    got = outcome(lambda: posenc.encode(given, dim, **keywords), choice, block)
    if got is None:
        return
    assert out is None or got is out
    assert got.shape == (*lead, dim)
    names = inspect.signature(posenc.Encoding).parameters
    chosen = posenc.Encoding(dim, **{name: value for name, value in keywords.items() if name in names})
    want = np.empty((points.size, dim), got.dtype)
    if want.size:
        chosen._rows.write(want, np.ascontiguousarray(points).ravel(), 1, fast_bound=np.inf)
    want = want.reshape(*lead, dim)
    if where is not None:
        want[~where] = 0
    assert (bits(got) == bits(want)).all()


def positions(choice, lead, *, whole=False):
    """Positions as integers that broadcast to a shape, and in the form in which they are given."""
    shape = lead if whole else tuple(choice.one([1, n, n]) for n in lead)[choice.integer(0, len(lead)) :]
    rng = np.random.default_rng(choice.integer(0, 99))
    points = rng.integers(-60, 60, shape)
    if choice.given() and points.size:
        points = (np.arange(points.size) % 90 + choice.integer(-9, 9)).reshape(shape)
    kinds = [np.int64, np.int8, np.float32, np.float64, np.float16, ">i4", "<f8"]
    forms = [points.astype(kind) for kind in kinds] + [
        points.tolist() if points.size else points,
        points[..., ::-1][..., ::-1] if shape else points,
    ]
    wrong = [points.astype(complex), points > 0, points + 2.0**54, np.full(shape, np.nan), "0", 1j]
    if not whole:
        wrong.append(np.ones(len(lead) + 9, int))
    return points, choice.one(wrong if choice.fault(3) else forms)


def output(choice, x, block):
    """An ``out`` for x: x itself, another array, or one that shares some of its memory."""
    usual = x.dtype.isnative and x.flags.aligned and x.flags.writeable
    if usual and choice.given():
        return (x if choice.given(2) else x[::-1]), block
    dtype, shape = x.dtype.name, x.shape
    if choice.fault(8):
        dtype = "float64" if dtype != "float64" else "float32"
    if choice.fault(8):
        shape = (*shape, 1)
    return memory(choice, shape, dtype, "sum")


def rows_of(chosen, x, points, axis, start):
    """The encodings that are added to x, by tables."""
    kind = np.float64 if x.itemsize == 8 else np.float32
    if points is None:
        rows = chosen.table(x.shape[axis], start=start, dtype=kind)
        return rows.reshape([n if i in (axis, x.ndim - 1) else 1 for i, n in enumerate(x.shape)])
    unique, inverse = np.unique(points, return_inverse=True)
    rows = [chosen.table(1, start=int(p), dtype=kind)[0] for p in unique]
    return np.array(rows, kind).reshape(-1, chosen.dim)[inverse.ravel()].reshape(*points.shape, chosen.dim)


def check_sum(got, x, chosen, rows, scale, where):
    wide = rows.dtype
    with np.errstate(all="ignore"):
        scaled = wide.type(scale) * x.astype(wide)
        total = scaled + rows
        if where is not None:
            total = np.where(np.broadcast_to(where, x.shape[:-1])[..., None], total, scaled)
        want = total.astype(x.dtype.newbyteorder("="))
    assert got.dtype == want.dtype
    hypothesis.event("a sum")
    assert ((bits(got) == bits(want)) | (np.isnan(got) & np.isnan(want))).all()
