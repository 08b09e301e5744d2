"""Arguments of every kind, right, wrong and hostile, and what a call with them may do: for the tests named test_any_*.

A call ends in a result, which its test compares with a slow one, or in a TypeError, ValueError, MemoryError or ImportError that
names a parameter. After an error its inputs and ``out`` are as they were, byte for byte; always, so are the surroundings:
NumPy's handling of errors, decimal's context, the number of threads, warnings. What is right as documented is not refused.
"""

import array
import contextlib
import datetime
import decimal
import inspect
import operator
import os
import re
import tempfile
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from lender import COPIED, READ_ONLY, Lender, LenderToNumPy

import posenc
from posenc import _threads

hypothesis = pytest.importorskip("hypothesis", reason="the arguments are chosen by hypothesis")
pytest.importorskip("gmpy2", reason="some entries are compared with MPFR")

EXAMPLES = int(os.environ.get("POSENC_EXAMPLES", "5500"))
#: So many examples come from a plain generator with a drawn seed: in half the time, but those that fail are not made smaller.
IS_PLAIN = EXAMPLES >= 100_000
ERRORS = TypeError, ValueError, MemoryError, ImportError
REFUSED = object()  # what `Choice.outcome` returns after an error


def any_arguments(case, share=40):
    """The test that calls ``case`` with many a `Choice`, POSENC_EXAMPLES / ``share`` times, and prints how they ended."""
    counts = Counter()

    @hypothesis.settings(
        max_examples=max(1, EXAMPLES // share),
        deadline=10_000,  # milliseconds: what takes longer hangs
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate] if IS_PLAIN else list(hypothesis.Phase),
    )
    @hypothesis.given(hypothesis.strategies.randoms(use_true_random=IS_PLAIN))
    def run(random):
        choice = Choice(random, counts)
        try:
            case(choice)
        except Exception as error:
            error.add_note(
                "\n".join(f"{function} {shown(values)} {shown(keywords)}" for function, values, keywords in choice.calls)
            )
            raise

    def test():
        run()
        print(
            f"\n{case.__name__}: {sum(counts.values())} calls:", *(f"{n} {name}" for name, n in counts.most_common()), sep="  "
        )

    test.__doc__ = case.__doc__
    return test


# ---- values ------------------------------------------------------------------------------------------------------------


class Own(Exception):
    """Raised by an argument's own methods; it passes through."""


class Index:
    """Anything with ``__index__`` is an integer."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value() if callable(self._value) else self._value

    def __repr__(self):
        return "Index"


class Arrays:
    """Something with ``__array__``."""

    def __init__(self, value):
        self._value = value

    def __array__(self, dtype=None, copy=None):
        return self._value() if callable(self._value) else self._value


def own(*_, **__):
    raise Own


class SimpleLender:
    """Whatever it returns is its capsule; it does not say where it is."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **keywords):
        return self._capsule(**keywords)


class Silent:
    def __repr__(self):
        raise Own


class Unequal:
    __hash__ = None

    def __eq__(self, other):
        return np.array([True, False])


class Unhashable(int):
    __hash__ = None


class Text(str):
    __slots__ = ()


class Subclass(np.ndarray):
    pass


def misaligned(values):
    block = np.zeros(values.nbytes + 1, np.uint8)
    block[1:] = values.view(np.uint8)
    return block[1:].view(values.dtype)


def mapped():
    with tempfile.TemporaryFile() as file:
        file.write(bytes(32))
        return np.memmap(file, np.float32, "r+", shape=(2, 4))


#: Functions that make a value, which is right for some parameters.
HOSTILE = [
    *(lambda value=value: value for value in [
        *(None, True, False, np.True_, 1j, np.complex64(1), ..., NotImplemented, object()),
        *("1", "", "f4", "\ud800", "a" * 5000, b"1", Text("pairs"), np.str_("x"), np.bytes_(b"1")),
        *(2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 10**5000, -(10**5000), Unhashable(3)),
        *(1.0, 0.5, 5e-324, -0.0, 1e308, np.nan, np.inf, -np.inf, np.float16(2), np.float32(2)),
        *(np.int8(3), np.uint64(2**64 - 1), np.longdouble(1), np.clongdouble(1), np.void(b"12"), np.ma.masked),
        *(decimal.Decimal(2), Fraction(1, 2), Fraction(1, 3), Fraction(10**5000), datetime.date.min, np.datetime64("2020")),
        *(np.timedelta64(1, "s"), np.dtype("f4"), int, np.float32, len, range(3), range(-(2**63), 2**63 - 1), range(10**30)),
        *((), [], {}, set(), (1,), [1, 2], [[1], [2, 3]], [None], ["a", 1], [10**5000], [2**63, 0.5], {"a": 1}, {1, 2}),
        *(Index(3), Index(-1), Index(own), Index(2.0), Index(10**5000), Silent(), Unequal(), [Silent()], [own]),
        *(Arrays(own), Arrays(3), Arrays(np.arange(3)), Arrays(np.array("x")), posenc.Encoding(4), posenc.frequencies.paper(4)),
    ]),
    *(lambda how=how: Lender(np.ones((2, 4), np.float32), **how) for how in [
        *({}, {"version": None}, {"version": (2, 0)}, {"device": (2, 0)}, {"device": own}, {"device_type": 2}, {"data": None}),
        *({"ndim": -1}, {"ndim": 99}, {"shape": None}, {"shape": (-1, 4)}, {"shape": (2**62, 4)}, {"lanes": 2}, {"bits": 4}),
        *({"code": 10, "bits": 8}, {"flags": READ_ONLY}, {"flags": COPIED}, {"strides": (2**62, 1)}),
    ]),
    lambda: Lender(np.arange(3)),
    lambda: Lender(np.array(1)),
    lambda: Lender(np.array([True, False])),
    lambda: SimpleLender(own),
    lambda: SimpleLender(lambda **_: None),
    lambda: (i for i in (1, 0)),
    lambda: iter([]),
    lambda: array.array("i", [1, 2]),
    lambda: memoryview(b"12"),
    lambda: bytearray(b"12"),
    lambda: SimpleNamespace(shape=(2,), dtype="f4"),
    lambda: np.array(1),
    lambda: np.array(1.5),
    lambda: np.array([]),
    lambda: np.array([], "f4,f4"),
    lambda: np.array([], object),
    lambda: np.zeros((2, 0)),
    lambda: np.ones((2, 2)),
    lambda: np.ones(2, np.longdouble),
    lambda: np.ones(3, ">i4"),
    lambda: np.ones(4, "f4,f4"),
    lambda: np.array([None, 1], object),
    lambda: np.array(["a", "b"]),
    lambda: np.array(["2020"], "M8[Y]"),
    lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
    lambda: np.ones(3).view(Subclass),
    lambda: np.ones(3, "f4").view(np.recarray),
    lambda: misaligned(np.arange(3.0)),
    lambda: np.arange(4)[::-1],
    mapped,
    lambda: np.broadcast_to(np.int64(1), 2**44),
    lambda: np.broadcast_to(np.float32(1), (2**44, 4)),
    lambda: np.broadcast_to(np.True_, (2, 2**44)),
]  # fmt: skip
HUGE = [2**46, 2**55, 2**62, 2**63 - 1]  # sizes that nothing fits
NO_INTEGER = [None, 1.0, "3", True, [1], np.float64(2), 2 + 0j, Silent()]


class Argument:
    """What an argument may be, a list or a function of a `Choice`, and values that are wrong for it, beside the hostile."""

    def __init__(self, right, *wrong):
        self.right = right
        self.wrong = [*wrong]


def integers(least, most):
    """An integer in several types."""

    def draw(choice):
        value = choice.integer(least, most)
        kinds = [int, int, int, np.int64, Index, np.int16 if max(-least, most) < 2**15 else int]
        return choice.one(kinds)(value)

    return draw


def starts(choice):
    if choice.given():
        far = choice.given()
        choice.valid = choice.valid and not far  # times a frequency above 2**4 it is too far
        return choice.one([-(2**60), 2**60 + 1] if far else [np.int8(-3), np.uint64(7), Index(5)])
    most = choice.one([100, 2**53])
    return choice.integer(-most, most)


STARTS = Argument(starts, 2**63, -(2**63) - 1, *NO_INTEGER[1:])
THREADS = Argument([1, 2, 3, np.int32(2), 2**31 - 1], *(0, -1, 2**40, *NO_INTEGER[1:]))
BASES = Argument(
    [10000.0, 100, np.float32(7.5), 1e9, 1.0, 0.5, Fraction(9, 4)], *(0.0, -1.0, np.nan, np.inf, "10", 1e300, True, 1j)
)
AMPLITUDES = Argument([1.0, -0.3, 2, 1e-30, 1e4], *(0.0, np.inf, "1", None, 1e308, False))
LAYOUTS = Argument(["interleaved", "concatenated", Text("interleaved")], *("halves", None, 1))
ODDS = Argument(["truncate", "zero"], *("drop", None, 0))
FLAGS = Argument([True, False, np.True_], *("yes", 1, 0, None))
DTYPE_ERRORS = ["int32", "longdouble", "nothing", 3.5, object(), "c8", ">f4", "f4,f4", {"names": 3}, np.ndarray]


class Choice:
    """The values that a test draws, and whether all are right; most examples are without faults."""

    def __init__(self, random, counts):
        self._random, self._counts = random, counts
        self.valid = True
        self._faults = self.integer(0, 9) > 6
        self.calls = []  # those that were made
        self._lent = []  # what stands for an array, and the array

    def of(self, argument):
        if self.fault(3):
            return self.one(HOSTILE)() if self.given(2) or not argument.wrong else self.one(argument.wrong)
        return argument.right(self) if callable(argument.right) else self.one(argument.right)

    def one(self, values):
        return values[self.integer(0, len(values) - 1)]

    def integer(self, least, most):
        return self._random.randint(least, most)

    def rng(self):
        return np.random.default_rng(self.integer(0, 999))

    def given(self, share=3):
        """Whether an optional argument is given: one time in ``share``."""
        return self.integer(1, share) == share

    def fault(self, share):
        """Whether something is to be wrong."""
        fault = self._faults and self.given(share)
        self.valid = self.valid and not fault
        return fault

    def some(self, share=3, **arguments):
        """Some of the arguments, drawn; one time in a while an unknown keyword too."""
        chosen = {name: self.of(argument) for name, argument in arguments.items() if self.given(share)}
        return chosen | ({self.one(["unknown", "\ud800", "self"]): 1} if self.fault(40) else {})

    def lent(self, array):
        """An array for ``out``, now and then as another package has it; `outcome` returns the array for it."""
        other = array
        if self.given(6) and array.dtype.isnative and all(step % array.itemsize == 0 for step in array.strides):
            other = self.one([Lender, LenderToNumPy, lambda a: LenderToNumPy(a, version=None)])(array)
        elif self.given(6) and array.dtype.name != "bfloat16":
            other = memoryview(array)
        self._lent.append((other, array))
        return other

    # ---- a call ------------------------------------------------------------------------------------------------------

    def outcome(self, function, /, *arguments, inputs=(), names=(), changes=False, **keywords):
        """What the function returns, or `REFUSED` after an error that is as it should be."""
        self.calls.append((function, arguments, keywords))
        inputs = [value for value in inputs if value is not None]
        before, error, result = [value.tobytes() for value in inputs], None, REFUSED
        with self._surroundings():
            outside = surroundings()
            try:
                result = function(*arguments, **keywords)
            except Own:
                assert not self.valid
                error = Own
            except ERRORS as raised:
                error = raised
            assert changes or surroundings() == outside
        for other, view in self._lent:
            if result is other:
                result = view
        self._counts["right" if error is None else "own" if error is Own else type(error).__name__] += 1
        if error is None:
            return result
        assert [value.tobytes() for value in inputs] == before, "an input or out was touched"
        if error is not Own:
            assert not self.valid, error
            names = {*parameters(function), *keywords, *names, "position * frequency"}
            message = str(error)
            named = any(re.search(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", message) for name in names)
            assert named or (isinstance(error, MemoryError) and "llocate" in message), (type(error), message)
        return REFUSED

    @contextlib.contextmanager
    def _surroundings(self):
        """Another state of things than usual, now and then."""
        with contextlib.ExitStack() as stack:
            if self.given(8):
                stack.enter_context(np.errstate(all=self.one(["raise", "ignore", "warn"])))
            if self.given(8):
                context = decimal.Context(prec=self.integer(1, 3), traps=[decimal.Inexact])
                stack.enter_context(decimal.localcontext(context))
            if self.given(8):
                stack.enter_context(posenc.threads(self.integer(1, 3)))
            if self.given(30):
                stack.callback(setattr, _threads, "PARALLEL_BYTES", _threads.PARALLEL_BYTES)
                _threads.PARALLEL_BYTES = 0
            yield


def surroundings():
    return np.geterr(), repr(decimal.getcontext()), _threads._process, _threads._context.get(), np.get_printoptions()


def shown(values):
    """For a note; some have no repr."""
    try:
        return repr(values)[:2000]
    except (Own, ValueError):
        return f"{type(values)}: {[type(value) for value in (values.values() if isinstance(values, dict) else values)]}"


def parameters(function):
    """Names of a function's parameters, with those of an encoding's keywords."""
    found = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in found if parameter.kind is not parameter.VAR_KEYWORD}
    if len(names) < len(found) or isinstance(getattr(function, "__self__", None), posenc.Encoding):
        names |= {*inspect.signature(posenc.Encoding).parameters}
    return names


# ---- encodings and their entries ----------------------------------------------------------------------------------------


class Numbers:
    """Frequencies as MPFR's numbers, made when they are asked for."""

    def __init__(self, number):
        self._number = number

    def __getitem__(self, k):
        return self._number(k)


def product(*factors):
    """Of rationals, floats and MPFR's numbers, to 400 bits."""
    with oracle.gmpy2.context(oracle.WIDE):
        total = oracle.gmpy2.mpfr(1)
        for factor in factors:
            total *= oracle.gmpy2.mpq(factor) if isinstance(factor, int | float | Fraction) else factor
        return total


def progression(first, ratio, exponent):
    """first * ratio**exponent, for a rational ratio."""
    with oracle.gmpy2.context(oracle.WIDE):
        return product(first, oracle.gmpy2.mpfr(oracle.gmpy2.mpq(ratio)) ** oracle.gmpy2.mpq(exponent))


def numbers_of(name, *arguments):
    """How many numbers a rule of `posenc.frequencies` stands for, and the numbers."""
    if name == "given":
        values = np.asarray(arguments[0]).astype(float).tolist()
        return len(values), Numbers(lambda k: product(values[k]))
    n, *reals = operator.index(arguments[0]), *map(float, arguments[1:])
    if name == "paper":
        base = Fraction(*reals) if reals else Fraction(10000)
        return (n + 1) // 2, Numbers(lambda k: progression(1, base, Fraction(-2 * k, n)))
    if name == "shifted":
        shift, base = (Fraction(given) for given in (*reals, *(1.0, 10000.0)[len(reals) :]))
        return n // 2, Numbers(lambda k: progression(1, base, Fraction(-k) / (n // 2 - shift) if k else 0))
    if name == "octaves":
        return n, Numbers(lambda k: product(2**k, *([oracle.two_pi(), 0.5] if reals and reals[0] else [])))
    (a, b), steps = map(Fraction, reals), max(n - 1, 1)
    if name == "geometric":
        return n, Numbers(lambda k: progression(a, b / a, Fraction(k, steps)))
    if name == "timescales":
        return n, Numbers(lambda k: progression(1 / a, a / b, Fraction(k, steps)))
    return n, Numbers(lambda k: product(a + (b - a) * Fraction(k, steps)))


SIZES = [1.0, 0.5, 3.25, 0.01, 7, 0.1, 20.0]


def rule(choice, n):
    """A right call of a rule for ``n`` numbers: its name and arguments."""
    name = choice.one(["paper", "shifted", "geometric", "timescales", "octaves", "linear", "given"])
    a, b, base = choice.one(SIZES), choice.one(SIZES), choice.one([10000.0, 77.5, 0.5, 3])
    if name == "paper" and n:
        return name, (2 * n - choice.integer(0, 1), base)
    if name == "shifted":
        return name, (max(2 * n, 1), choice.one([1, 0, 0.5, -2]) if n > 1 else 0, base)
    if name in ("geometric", "timescales"):
        return name, (n, a, b)
    if name == "octaves" and n < 11:
        return name, (n, choice.given(2))
    if name == "linear":
        a *= choice.one([1, -1])
        if n < 2 or Fraction(a).denominator * Fraction(b).denominator < 2**9:  # else some may be all but 0
            return name, (n, a, b)
    values = [choice.one([*SIZES, 0.0, -3.0, 2.0**-200, 100]) for _ in range(n)]
    return "given", (choice.one([values, np.array(values, float)]),)


def encoding(choice, dim, share=6, **more):
    """Keywords of an encoding, and the same for `cells`, if they are right."""
    keywords = choice.some(share, layout=LAYOUTS, odd=ODDS, amplitude=AMPLITUDES, cos_first=FLAGS, first=STARTS, **more)
    numbers = None
    if choice.given(share):
        pairs = dim // 2 if isinstance(keywords.get("odd"), str) and keywords["odd"] == "zero" else (dim + 1) // 2
        pairs += choice.fault(10)
        name, arguments = rule(choice, pairs)
        numbers = numbers_of(name, *arguments)[1]
        keywords["frequencies"] = getattr(posenc.frequencies, name)(*arguments)
        if choice.fault(10):
            keywords["frequencies"] = choice.one(NO_INTEGER[1:]) if choice.given(2) else choice.one(HOSTILE)()
    if choice.given(share) and (numbers is None or choice.fault(3)):
        keywords["base"] = choice.of(BASES)
    return keywords, numbers


def plain(keywords, numbers):
    """Keywords of an encoding that were right, for `cell`."""
    kinds = {"base": float, "layout": str, "odd": str, "amplitude": float, "cos_first": bool}
    found = {name: kind(keywords[name]) for name, kind in kinds.items() if keywords.get(name) is not None}
    if keywords.get("frequencies") is not None:
        found["frequencies"] = numbers
    return found


def cell(position, column, dim, dtype, *, base=10000.0, frequencies=None, amplitude=1.0, **where):
    """A correctly rounded entry, by MPFR."""
    place = oracle.where(
        column, dim, where.get("layout", "interleaved"), where.get("cos_first", False), where.get("odd", "truncate")
    )
    if place is None:
        return 0.0
    k, is_cosine = place
    frequency = oracle.power(base, -2 * k, dim) if frequencies is None else frequencies[k]
    return wave(position, frequency, is_cosine, dtype, amplitude)


def wave(position, frequency, is_cosine, dtype, amplitude=1.0):
    """The sine or cosine of an angle times the amplitude, rounded once. A sine next to 0 is that of a multiple of pi: 0."""
    position = position if isinstance(position, int) else Fraction(float(position))
    value = oracle.sin_cos(position, frequency)[is_cosine]
    if abs(value) < 2.0**-300 and (position == 0 or frequency == 0 or isinstance(position, int) or abs(position) > 2.0**-90):
        return 0.0
    return oracle.rounded(oracle.sin_cos(position, frequency, amplitude)[is_cosine], dtype)


def check_cells(choice, got, positions, dim, keywords, numbers, count=2):
    """Some entries of rows of positions, which are Python's numbers, by MPFR."""
    rows, parameters = got.reshape(-1, got.shape[-1]) if got.size else got.reshape(0, 1), plain(keywords, numbers)
    for _ in range(count if rows.size else 0):
        i, j = choice.integer(0, len(rows) - 1), choice.integer(0, rows.shape[1] - 1)
        check_entry(rows[i, j], cell(positions[i], j, dim, got.dtype.name, **parameters), (positions[i], j))


def check_entry(got, want, about):
    want = np.array(want, got.dtype)
    assert bits(got) == bits(want), f"{about}: got {float(got).hex()}, want {float(want).hex()}"


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


# ---- arrays ------------------------------------------------------------------------------------------------------------


def memory(choice, shape, dtype, use):
    """An array of that shape in some layout of memory, and the memory that it is a view of.

    As x it may be anything; as the out of a sum in any layout, of a table with rows of contiguous elements.
    """
    steps = [choice.one([1, 1, 1, 2, 3, -1]) for _ in shape]
    pads = [choice.one([0, 0, 1, 5]) for _ in shape]
    order, kind, unaligned = choice.one(["C", "C", "C", "F"]), np.dtype(dtype), 0
    if use == "table" and shape and not choice.fault(6):
        steps, order = [*steps[:-1], 1], "C"
    if dtype != "bfloat16" and (choice.given(12) if use == "x" else choice.fault(12)):
        kind = kind.newbyteorder()
    if choice.given(12) if use == "x" else choice.fault(12):
        unaligned = 1
    full = [abs(step) * n + pad for step, n, pad in zip(steps, shape, pads, strict=True)]
    block = np.zeros(int(np.prod(full)) * kind.itemsize + 64, np.uint8)
    whole = np.ndarray(full, kind, block, 8 * choice.integer(0, 3) + unaligned, order=order)
    view = whole[(..., *(slice(abs(step) * n) for step, n in zip(steps, shape, strict=True)))]
    view = view[(..., *(slice(None, None, step) for step in steps))]
    if use == "x" and shape and choice.given(8):
        view = np.broadcast_to(view[:1], shape)
    if use != "x" and choice.fault(12):
        view.flags.writeable = False
    if choice.given(20):
        view = view.view(Subclass)
    return view, block


def fill(view, rng):
    """Numbers of many sizes, and special ones."""
    values = rng.normal(size=view.shape) * 2.0 ** rng.integers(-20, 20, view.shape)
    special = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 65504.0], view.shape)
    with np.errstate(all="ignore"):
        view[...] = np.where(rng.random(view.shape) < 0.1, special, values).astype(np.float32)


def positions(choice, lead, *, whole=False):
    """Positions that broadcast to a shape, as an array of int64 or float64, and in the form in which they are given."""
    shape = lead if whole else tuple(choice.one([1, n, n]) for n in lead)[choice.integer(0, len(lead)) :]
    rng = choice.rng()
    points = rng.integers(-60, 60, shape)
    if choice.given() and points.size:
        points = (np.arange(points.size) % 90 + choice.integer(-9, 9)).reshape(shape)
    kinds = [np.int64, np.int8, np.float32, np.float64, np.float16, ">i4", "<f8"]
    forms = [points.astype(kind) for kind in kinds] + [
        points.tolist() if points.size else points,
        points[..., ::-1][..., ::-1] if shape else points,
        points.view(Subclass),
        Arrays(points),
        Lender(points),
        Lender(points.astype(np.float32), version=None),
        memoryview(points),
    ]
    wrong = [points.astype(complex), points > 0, points + 2.0**54, np.full(shape, np.nan), "0", 1j, np.full(shape, 2**63)]
    if not whole:
        wrong.append(np.ones(len(lead) + 9, int))
    if choice.fault(3):
        return points, choice.one(HOSTILE)() if choice.given(2) else choice.one(wrong)
    if choice.given(4):  # any floats
        points = np.asarray(rng.normal(size=shape) * 2.0 ** rng.integers(-40, 30))
        return points, choice.one([points, points.tolist() if points.size else points])
    return points, choice.one(forms)


def given_positions(given):
    """Python's numbers, and the shape, of positions that were found right."""
    if isinstance(given, range):
        return given, (len(given),)
    if isinstance(given, Lender | np.ndarray):
        found = np.asarray(given.value if isinstance(given, Lender) else given)
    else:
        found = np.asarray(given)
        if found.dtype.kind == "f" and found.size:  # NumPy has made floats of integers among floats
            found = np.asarray(given, object) if np.asarray(given, object).shape == found.shape else found
    if found.dtype != object and found.dtype.kind not in "iu":
        found = found.astype(np.float64)
    elif found.dtype == object:
        found = np.array([p if isinstance(p, int) else float(p) for p in found.flat], object).reshape(found.shape)
    return found.ravel().tolist(), found.shape


def held(value):
    """Memory that a call must not touch."""
    is_held = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    return value if is_held and value.nbytes < 2**20 and value.dtype != object else None
