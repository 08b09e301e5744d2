"""hypothesis drives what fills and changes arrays with arguments of every kind: `arguments` says what may happen then.

The right bits are those of the accurate path, and at some entries MPFR's, for encodings, and of NumPy's operations for sums.
"""

import operator

import numpy as np
import oracle
from arguments import (
    DTYPE_ERRORS,
    HUGE,
    NO_INTEGER,
    REFUSED,
    STARTS,
    THREADS,
    Argument,
    any_arguments,
    bits,
    check_cells,
    check_entry,
    encoding,
    fill,
    given_positions,
    held,
    memory,
    positions,
    wave,
)
from conftest import DTYPES
from test_pairs import once, pairs_of

import posenc
from posenc import _arrays

SCALES = Argument([1.0, 0.0, -2, 22.627417, np.float32(0.1), 1e-44], *(np.nan, np.inf, "2", None, 1e40, 1j, [1.0]))
NO_ARRAY = [None, "text", {}, [[1.0], [2.0, 3.0]], np.ma.masked_array([1.0, 2.0]), np.array("2020", "M8[Y]"), object()]
KINDS = Argument([*DTYPES, *map(np.dtype, DTYPES), np.float64], *DTYPE_ERRORS)
DIMS = Argument(lambda choice: choice.integer(1, 40), *(0, -2, *HUGE, *NO_INTEGER))


def chosen(dim, keywords):
    """The encoding of a call's keywords, and those that are its."""
    names = ("base", "frequencies", "layout", "cos_first", "odd", "amplitude", "first")
    own = {name: value for name, value in keywords.items() if name in names}
    return posenc.Encoding(dim, **own)


def of_encoding(choice, dim, function, keywords):
    """A module's function, or the method of its name: of an encoding if that can be made."""
    if not choice.given():
        return getattr(posenc, function), (dim,), keywords
    names = ("base", "frequencies", "layout", "cos_first", "odd", "amplitude", "first")
    own = {name: value for name, value in keywords.items() if name in names}
    made = choice.outcome(posenc.Encoding, dim, **own)
    if made is REFUSED:
        return None, (), {}
    return getattr(made, function), (), {name: value for name, value in keywords.items() if name not in own}


def slow(made, flat, dtype):
    """Rows of positions, Python's numbers, by the accurate path."""
    want = np.empty((len(flat), made.dim), dtype)
    if want.size:
        is_whole = all(isinstance(p, int) for p in flat)
        made._rows.write(want, np.array(flat, np.int64 if is_whole else np.float64), 1, fast_bound=np.inf)
    return want


def is_zero(keywords):
    return isinstance(keywords.get("odd"), str) and keywords["odd"] == "zero"


def outs(choice, shape, kind, keywords, use="table"):
    """Puts an ``out`` among the keywords, or a dtype; returns the out and its memory."""
    out = block = None
    if choice.fault(30):
        keywords["out"] = choice.one(NO_ARRAY[1:])
    elif choice.given() and type(kind) is str and kind in DTYPES and 2**62 not in shape:
        if choice.fault(10):
            shape = choice.one([(*shape[:-1], shape[-1] + 1), shape[:-1], (), (*shape, 1)])
        out, block = memory(choice, shape, kind, use)
        keywords["out"] = choice.lent(out)
    if "out" not in keywords or choice.given(2):
        keywords["dtype"] = kind
    return out, block


def table(choice):
    length, dim, kind = choice.integer(0, 80), choice.integer(1, 40), choice.of(KINDS)
    keywords, numbers = encoding(choice, dim)
    keywords |= choice.some(start=STARTS, threads=THREADS)
    out, block = outs(choice, (length, dim), kind, keywords)
    length = choice.of(Argument([length], -1, *HUGE, *NO_INTEGER))
    dim = choice.of(Argument([dim], 0, -2, *HUGE, *NO_INTEGER))
    function, first, keywords = of_encoding(choice, dim, "table", keywords)
    if function is None:
        return
    got = choice.outcome(function, length, *first, **keywords, inputs=[block])
    if got is REFUSED:
        return
    made = chosen(dim, keywords) if first else function.__self__
    assert out is None or got is out
    length, start = operator.index(length), keywords.get("start")
    assert got.shape == (length, operator.index(dim))
    assert got.dtype == (
        out.dtype if keywords.get("dtype") is None and out is not None else _arrays.checked_dtype(keywords.get("dtype"), None)
    )
    start = made.first if start is None else operator.index(start)
    if got.size:
        want = slow(made, range(start, start + length), got.dtype)
        assert (bits(got) == bits(want)).all()
        check_cells(choice, got, range(start, start + length), made.dim, spoken(made, numbers), numbers)


def spoken(made, numbers):
    """The keywords of an encoding, for `check_cells`."""
    parameters = made._parameters()
    return parameters if "base" in parameters or numbers is not None else {**parameters, "frequencies": None, "base": None}


def encode(choice):
    dim = choice.integer(1, 40)
    lead = tuple(choice.one([0, 1, 2, 3, 40]) for _ in range(choice.integer(0, 3)))
    keywords, numbers = encoding(choice, dim)
    keywords |= choice.some(threads=THREADS)
    given, lead = some_positions(choice, lead)
    where = None
    if choice.given():
        where = choice.rng().random(lead if lead != (2**62,) else 3) < 0.5
        keywords["where"] = where = choice.of(Argument([where], 1, np.ones((1,) * (len(lead) + 1), bool), "yes", where + 1))
    out, block = outs(choice, (*lead, dim), choice.of(KINDS), keywords)
    function, first, keywords = of_encoding(choice, choice.of(Argument([dim], 0, *HUGE, *NO_INTEGER)), "encode", keywords)
    if function is None:
        return
    got = choice.outcome(function, given, *first, **keywords, inputs=[block, held(given), held(where)])
    if got is REFUSED:
        return
    made = chosen(*first, keywords) if first else function.__self__
    flat, lead = given_positions(given)
    assert out is None or got is out
    assert got.shape == (*lead, made.dim)
    if not got.size:
        return
    used = np.ones(lead, bool) if where is None else np.broadcast_to(where, lead)
    want = slow(made, [p if kept else 0 for p, kept in zip(flat, used.ravel().tolist(), strict=True)], got.dtype)
    want[~used.ravel()] = 0
    assert (bits(got) == bits(want.reshape(got.shape))).all()
    if where is None:
        check_cells(choice, got, flat, made.dim, spoken(made, numbers), numbers)


def some_positions(choice, lead):
    if choice.given(4):
        given = range(choice.integer(-50, 50), choice.integer(-50, 50), choice.one([1, -1, 2, -3, 100]))
        if choice.fault(5):
            given = choice.one([range(2**62), range(-(2**63), 2**63 - 1), range(10**30), range(0, 2**64, 2**63 - 1)])
        return given, (len(given),) if len(given[:101]) < 101 else (2**62,)
    return positions(choice, lead, whole=True)[1], lead


def sincos(choice):
    dim = choice.integer(1, 40)
    lead = tuple(choice.one([0, 1, 2, 3, 40]) for _ in range(choice.integer(0, 3)))
    keywords, numbers = encoding(choice, dim)
    duplicate = {"duplicate": Argument([None, "halves", "pairs"], "both", 1, True)}
    keywords |= choice.some(threads=THREADS, **duplicate)
    given, lead = some_positions(choice, lead)
    kind, out, blocks = choice.one(DTYPES), None, []
    if choice.given():
        n = (dim if is_zero(keywords) else dim + 1) // 2 * (1 if keywords.get("duplicate") is None else 2)
        both = [memory(choice, (*lead[:9], n + choice.fault(12)), kind, "table") for _ in range(2)] if lead != (2**62,) else []
        out, blocks = [view for view, _ in both], [block for _, block in both]
        if len(out) != 2 or choice.fault(12):
            choice.valid = False
            out = choice.one([[*out, *out], out[:1] * 2, (), None, *out[:1], "ab", [None, None]])
        keywords["out"] = choice.one([tuple, list])(out) if isinstance(out, list) else out
    else:
        keywords["dtype"] = choice.of(KINDS)
    function, first, keywords = of_encoding(choice, choice.of(Argument([dim], 0, *HUGE, *NO_INTEGER)), "sincos", keywords)
    if function is None:
        return
    got = choice.outcome(function, given, *first, **keywords, inputs=[*blocks, held(given)])
    if got is REFUSED:
        return
    made = chosen(*first, keywords) if first else function.__self__
    if keywords.get("out") is not None:
        assert got[0] is keywords["out"][0]
        assert got[1] is keywords["out"][1]
    flat, lead = given_positions(given)
    n, duplicate = len(made._rows.frequencies), keywords.get("duplicate")
    if not flat:
        assert got[0].shape == got[1].shape == (*lead, n if duplicate is None else 2 * n)
        return
    for is_cosine, (part, want) in enumerate(zip(got, slow_pairs(made, flat, got[0].dtype), strict=True)):
        if n and (numbers is not None or made._rule is not None):
            i, k = choice.integer(0, len(flat) - 1), choice.integer(0, n - 1)
            number = oracle.power(made._rule, -2 * k, made.dim) if made._rule is not None else numbers[k]
            check_entry(want[i, k], wave(flat[i], number, is_cosine, want.dtype.name, made.amplitude), (flat[i], k))
        want = want.reshape(*lead, n)
        want = (
            want if duplicate is None else np.concatenate([want, want], -1) if duplicate == "halves" else np.repeat(want, 2, -1)
        )
        assert (part.shape, part.dtype) == (want.shape, want.dtype)
        assert (bits(part) == bits(want)).all()


def slow_pairs(made, flat, dtype, amplitude=None):
    """Sines and cosines of positions, Python's numbers, by the accurate path; each (positions, n)."""
    n, settings = len(made._rows.frequencies), {"layout": "concatenated", "cos_first": False, "odd": "truncate"}
    if n == 0:
        return np.zeros((len(flat), 0), dtype), np.zeros((len(flat), 0), dtype)
    amplitude = made.amplitude if amplitude is None else amplitude
    rows = slow(made.replace(dim=2 * n, frequencies=made._rows.frequencies, amplitude=amplitude, **settings), flat, dtype)
    return rows[:, :n], rows[:, n:]


def rotate(choice):
    x, block, lead = some_x(choice)
    dim = x.shape[-1]
    keywords, _ = encoding(choice, dim)
    keywords |= choice.some(threads=THREADS)
    if dim % 2 and not is_zero(keywords):
        choice.valid = False
    if choice.given(6):
        less = choice.integer(1, dim)
        keywords["dim"] = choice.of(Argument([less], 0, dim + 1, *HUGE, *NO_INTEGER))
        choice.valid = choice.valid and "frequencies" not in keywords and (less % 2 == 0 or is_zero(keywords))
    _, given = positions(choice, lead)
    before, out, blocks = x.copy(), None, [block, held(given)]
    if choice.given(2):
        out, other = output(choice, x, block)
        blocks.append(other)
        keywords["out"] = choice.lent(out)
    is_wrong = choice.fault(8)
    first = choice.one(WRONG_X) if is_wrong else choice.lent(x)
    width = keywords.get("dim", dim)
    function, _, keywords = (
        of_encoding(choice, width, "rotate", keywords) if "dim" not in keywords else (posenc.rotate, (), keywords)
    )
    if function is None:
        return
    got = choice.outcome(function, first, given, **keywords, inputs=blocks, names=("dim",))
    if got is REFUSED or is_wrong:
        return
    made = function.__self__ if function is not posenc.rotate else chosen(width, keywords)
    flat, shape = given_positions(given)
    assert out is None or got is out
    waves = [
        np.broadcast_to(part.reshape(*shape, part.shape[-1]), (*lead, part.shape[-1])) for part in slow_pairs(made, flat, float)
    ]
    same_sum(got, turned(before, *waves, made))


def turned(x, sines, cosines, made):
    """The stated operations, by NumPy."""
    want = x.astype(np.float64)
    with np.errstate(all="ignore"):
        s, c = (part.copy() for part in pairs_of(want, made))
        out_s, out_c = pairs_of(want, made)
        out_s[...], out_c[...] = s * cosines + c * sines, c * cosines - s * sines
        result = once(want, x.dtype) if x.dtype.name == "bfloat16" else want.astype(x.dtype.newbyteorder("="))
    result[..., made.dim - made.dim % 2 :] = x[..., made.dim - made.dim % 2 :]
    return result


def same_sum(got, want):
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert ((bits(got) == bits(want)) | (np.isnan(got) & np.isnan(want))).all()


def similarity(choice):
    dim = choice.integer(1, 40)
    lead = tuple(choice.one([0, 1, 2, 3, 20]) for _ in range(choice.integer(0, 3)))
    keywords, _ = encoding(choice, dim)
    if dim % 2 and not is_zero(keywords):
        choice.valid = False
    given, lead = some_positions(choice, lead)
    function, first, keywords = of_encoding(choice, choice.of(Argument([dim], 0, *HUGE, *NO_INTEGER)), "similarity", keywords)
    if function is None:
        return
    got = choice.outcome(function, given, *first, **keywords, inputs=[held(given)])
    if got is REFUSED:
        return
    made = chosen(*first, keywords) if first else function.__self__
    flat, lead = given_positions(given)
    assert (got.shape, got.dtype) == (lead, np.float64)
    if not flat:
        return
    want = np.zeros(len(flat))
    for column in slow_pairs(made, flat, float, 1.0)[1].T:
        want = want + column
    assert (bits(got.ravel()) == bits(want * (made.amplitude * made.amplitude))).all()


def shift_matrix(choice):
    dim = choice.integer(1, 24)
    keywords, numbers = encoding(choice, dim)
    made = choice.outcome(posenc.Encoding, dim, **keywords)
    if made is REFUSED:
        return
    if dim % 2 and made.odd == "truncate":
        choice.valid = False
    delta = positions(choice, (), whole=True)[1]
    got = choice.outcome(made.shift_matrix, delta)
    if got is REFUSED:
        return
    (sines, cosines), want = slow_pairs(made, given_positions(delta)[0], float, 1.0), np.eye(dim)
    s, c = pairs_of(np.arange(dim), made)
    want[s, s] = want[c, c] = cosines[0]
    want[s, c], want[c, s] = sines[0], -sines[0]
    assert (got == want).all()
    if len(s) and numbers is not None:
        k = choice.integer(0, len(s) - 1)
        check_entry(got[s[k], c[k]], wave(given_positions(delta)[0][0], numbers[k], 0, "float64"), (delta, k))


# ---- sums --------------------------------------------------------------------------------------------------------------

WRONG_X = [*NO_ARRAY, np.ones((2, 3), int), [[1, 2]], np.ones((2, 0)), 1.0, np.broadcast_to(np.float32(1), (2**44, 4))]


def some_x(choice):
    """X in some memory, that memory, and x's shape but for the last axis."""
    ndim = choice.one([1, 2, 2, 3, 3, 3, 4, 5])
    lead = tuple(choice.one([1, 2, 3, 5, 40] if i == ndim - 2 else [0, 1, 2, 3]) for i in range(ndim - 1))
    x, block = memory(choice, (*lead, choice.integer(1, 40)), choice.one(DTYPES), "x")
    if x.flags.writeable:
        fill(x, choice.rng())
    return x, block, lead


def add(choice):
    x, block, lead = some_x(choice)
    ndim, dim = x.ndim, x.shape[-1]
    keywords, _ = encoding(choice, dim)
    keywords |= choice.some(scale=SCALES, threads=THREADS)
    given, axis = None, ndim - 2
    if ndim == 1 or choice.given():
        keywords["positions"] = given = positions(choice, lead)[1]
    else:
        if choice.given():
            axis = choice.integer(0, ndim - 2)
            keywords["axis"] = choice.of(Argument([axis, axis - ndim], *(ndim - 1, -1, ndim, -ndim - 1, 0.5, None)))
        if choice.given():
            keywords["start"] = choice.of(STARTS)
    where = None
    if choice.given():
        shape = tuple(choice.one([1, n]) for n in lead)[choice.integer(0, len(lead)) :]
        where = choice.rng().random(shape) < 0.5
        right = [where, where.tolist() if where.size else where]
        keywords["where"] = where = choice.of(Argument(right, *(1, np.ones((1,) * (len(lead) + 1), bool), "yes", where + 1)))
    before, out, blocks = x.copy(), None, [block, held(given), held(where)]
    if choice.given(2):
        out, other = output(choice, x, block)
        blocks.append(other)
        keywords["out"] = choice.lent(out)
    is_wrong = choice.fault(8)
    first = choice.one(WRONG_X) if is_wrong else choice.lent(x)
    function, own, keywords = of_encoding(choice, dim, "add", keywords)
    if function is None:
        return
    got = choice.outcome(function, first, **keywords, inputs=blocks)
    if got is REFUSED or is_wrong:
        return
    made = chosen(dim, keywords) if own else function.__self__
    assert out is None or got is out
    kind = np.float64 if x.itemsize == 8 else np.float32
    if keywords.get("positions") is None:
        axis = operator.index(keywords.get("axis", -2)) % ndim
        start = keywords.get("start")
        start = made.first if start is None else operator.index(start)
        rows = slow(made, range(start, start + lead[axis]), kind)
        rows = rows.reshape([n if i in (axis, ndim - 1) else 1 for i, n in enumerate(x.shape)])
    else:
        flat, shape = given_positions(given)
        rows = slow(made, flat, kind).reshape(*shape, dim) if where is None else None
        if rows is None:  # those that are not used may be anything
            flat = [p if np.isfinite(p) and abs(p) <= 2**53 else 0 for p in flat]
            rows = slow(made, flat, kind).reshape(*shape, dim)
    check_sum(got, before, rows, keywords.get("scale", 1.0), where)


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


def check_sum(got, x, rows, scale, where):
    wide = rows.dtype
    with np.errstate(all="ignore"):
        scaled = wide.type(scale) * x.astype(wide)
        total = scaled + rows
        if where is not None:
            total = np.where(np.broadcast_to(where, x.shape[:-1])[..., None], total, scaled)
        want = total.astype(x.dtype.newbyteorder("="))
    same_sum(got, want)


test_table = any_arguments(table, share=1)
test_encode = any_arguments(encode, share=1)
test_sincos = any_arguments(sincos)
test_rotate = any_arguments(rotate)
test_similarity = any_arguments(similarity)
test_shift_matrix = any_arguments(shift_matrix)
test_add = any_arguments(add, share=1)
