"""hypothesis drives encodings as values, rules, conventions, countings, schemes and settings with arguments of every kind.

`arguments` says what may happen then. Numbers are compared with MPFR's, countings with loops in Python; what a convention's
layout is, `posenc.CONVENTIONS` says here, and test_conventions whether that is right.
"""

import contextlib
import copy
import io
import math
import operator
import pickle
from fractions import Fraction

import numpy as np
import oracle
from arguments import (
    BASES,
    FLAGS,
    HOSTILE,
    HUGE,
    NO_INTEGER,
    REFUSED,
    SIZES,
    THREADS,
    Argument,
    Numbers,
    Own,
    any_arguments,
    cell,
    check_entry,
    encoding,
    held,
    integers,
    memory,
    numbers_of,
    product,
    rule,
)
from test_counting import loop_ids, loop_lengths, loop_mask

import posenc
from posenc import CONVENTIONS, _threads, frequencies, schemes

COUNTS = Argument(integers(0, 30), -1, *HUGE, *NO_INTEGER)
DIMS = Argument(integers(1, 40), 0, -2, *HUGE, *NO_INTEGER)
REALS = Argument([*SIZES, np.float32(0.1), Fraction(3, 2)], *(0.0, math.nan, math.inf, "1", None, 1j, True, 1e308, 1e-300))


# ---- encodings ---------------------------------------------------------------------------------------------------------


def encodings(choice):
    dim = choice.integer(1, 40)
    keywords, numbers = encoding(choice, dim, share=3)
    made = choice.outcome(posenc.Encoding, choice.of(Argument([dim], 0, *HUGE, *NO_INTEGER)), **keywords)
    if made is REFUSED:
        return
    check_value(made, {"Encoding": posenc.Encoding, "frequencies": frequencies})
    parameters = made._parameters()
    assert made == posenc.Encoding(**parameters)
    for name in ("dim", "layout", "cos_first", "odd", "amplitude", "first"):
        assert getattr(made, name) == parameters[name]
        wrong = choice.one(HOSTILE)()
        for change in (lambda name=name, wrong=wrong: setattr(made, name, wrong), lambda name=name: delattr(made, name)):
            with contextlib.suppress(AttributeError):
                change()
                raise AssertionError(f"{name} was changed")
    if made.dim < 2**40 and made._rule is not None:
        dim, base = made.dim, made._rule
        numbers = Numbers(lambda k: oracle.power(base, -2 * k, dim))
    if made.dim < 2**40 and numbers is not None:
        check_numbers(choice, made._rows.frequencies, numbers)
        assert made.frequencies.tolist() == made._rows.frequencies.values.tolist()
    with contextlib.suppress(Own, ValueError, TypeError, MemoryError, AssertionError):  # the other's own ==
        bool(made == choice.one(HOSTILE)())


def check_value(made, names):
    """It is equal to what its repr, a pickle and a copy make; other objects see it as it is."""
    assert eval(repr(made), names) == made
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert (other, hash(other), repr(other)) == (made, hash(made), repr(made))


def replace(choice):
    dim = choice.integer(1, 40)
    made = posenc.Encoding(dim, layout=choice.one(["interleaved", "concatenated"]), base=choice.one([100.0, 10000.0]))
    changes, _ = encoding(choice, dim, share=3)
    if choice.given(6):
        changes["dim"] = choice.of(Argument(integers(1, 40), 0, *HUGE, *NO_INTEGER))
        choice.valid = choice.valid and "frequencies" not in changes
    got = choice.outcome(made.replace, **changes)
    if got is REFUSED:
        return
    base = {} if changes.get("frequencies") is not None else {"base": made._rule}
    assert got == posenc.Encoding(**{"dim": dim, "layout": made.layout, **base} | changes)
    assert made.replace() == made == made.replace(**made._parameters())


# ---- rules -------------------------------------------------------------------------------------------------------------

WRONG = {
    "paper": [Argument(integers(1, 60), 0, *HUGE, *NO_INTEGER), BASES],
    "shifted": [Argument(integers(1, 60), 0, *HUGE, *NO_INTEGER), Argument([0, 0.25, -1], 31, math.nan, "1"), BASES],
    "geometric": [COUNTS, REALS, REALS],
    "timescales": [COUNTS, REALS, REALS],
    "octaves": [Argument(integers(0, 60), -1, 1001, *HUGE, *NO_INTEGER), FLAGS],
    "linear": [COUNTS, Argument([0.5, 1, 4.0], "1", math.nan), Argument([5.0, 8], None)],
    "given": [
        Argument(
            [[1.0, 0.5], [], (3,), np.arange(3), np.ones(3, "f2"), np.ones(2, ">f8"), range(4), [0.0], [np.float32(0.1)] * 2],
            *(None, 1.0, "text", [[1.0]], [1e-300], [math.nan], [math.inf], [True], [1j], [2**53 + 1], np.ones((2, 2))),
        )
    ],
}  # fmt: skip


def rules(choice):
    if choice.given():
        name, arguments = rule(choice, choice.integer(0, 20))
    else:
        name = choice.one(list(WRONG))
        arguments = [choice.of(argument) for argument in WRONG[name]]
        if name in ("paper", "shifted", "octaves"):
            arguments = arguments[: choice.integer(1, len(arguments))]
        if name == "shifted" and len(arguments) > 1:
            choice.valid = False  # as the shift may be n
    made = choice.outcome(getattr(frequencies, name), *arguments, inputs=map(held, arguments), names=(f"frequencies.{name}",))
    if made is REFUSED or len(made) > 2**20:
        return
    n, numbers = numbers_of(name, *arguments)
    assert len(made) == n
    check_value(made, {"frequencies": frequencies})
    check_numbers(choice, made, numbers)
    if choice.given(2):
        has_pi = name == "octaves" and len(arguments) > 1 and bool(arguments[1])
        factors = Argument([2.0, -0.5, 3, np.float32(0.1), Fraction(1, 4)], *(0.0, math.nan, "1", None, 1e308, 1e-300))
        scaling = choice.some(2, pi=Argument([False] if has_pi else [True, False, np.True_], 1, None, "yes", True))
        factor = choice.of(factors)
        more = choice.outcome(made.scaled, factor, names=("scaled",), **scaling) if made.log2_smallest > -150 else REFUSED
        if more is REFUSED:
            return
        by = [float(factor)] + ([oracle.two_pi(), 0.5] if scaling.get("pi") else [])
        check_value(more, {"frequencies": frequencies})
        check_numbers(choice, more, Numbers(lambda k: product(numbers[k], *by)))


def check_numbers(choice, made, numbers):
    """One of the frequencies and its wavelength are the doubles nearest to the number."""
    assert len(made.values) == len(made.wavelengths) == len(made)
    if len(made):
        k = choice.integer(0, len(made) - 1)
        number = numbers[k]
        check_entry(made.values[k], oracle.rounded(number, "float64") if number else 0.0, (made, k))
        with oracle.gmpy2.context(oracle.WIDE):
            wavelength = oracle.rounded(2 * oracle.gmpy2.const_pi() / number, "float64") if number else math.inf
        check_entry(made.wavelengths[k], wavelength, (made, k))


# ---- conventions -------------------------------------------------------------------------------------------------------

POSITIVES = Argument([10000.0, 100, np.float32(7.5), 1e9, 2.0], *(0.0, -1.0, math.nan, "10", None, 1e300, True))
EXTRAS = {
    "padding_idx": Argument([1, 0, -3, 2**40], 2**63 - 1, *NO_INTEGER),
    "scale": Argument([1.0, 0.5, -2, Fraction(3)], 0.0, "1", math.inf, 1e300),
    "downscale_freq_shift": Argument([0, -0.5, -1], 40, "1", None, math.nan),
} | dict.fromkeys(("flip_sin_to_cos", "cos_first", "full_turns", "pi"), FLAGS)


def frequencies_of(name, dim, e):
    """The rule of a convention, its arguments, and what its numbers are multiplied by."""
    n, turn = dim // 2, [oracle.two_pi()]
    base = e.get("base", e.get("max_period"))
    if name in ("transformer", "marian", "rope", "rope_halves", "multidim"):
        return "paper", (dim + dim % 2 if name == "multidim" else dim, base), []
    if name in ("ddpm", "fairseq", "opennmt-tf", "whisper", "musicgen"):
        return "shifted", (dim, 1, base), []
    if name == "diffusion":
        return "shifted", (dim, 0, base), []
    if name == "diffusers":
        return "shifted", (dim, e["downscale_freq_shift"], base), [float(e["scale"])]
    if name == "mlx":
        return "geometric", (n, e["max_freq"], e["min_freq"]), turn if e["full_turns"] else []
    if name == "octaves":
        return "octaves", (n, e["pi"]), []
    kind = "wavelength" if name == "depthcharge" else "timescale"
    return "timescales", (n, e[f"min_{kind}"], e[f"max_{kind}"]), turn if name == "depthcharge" else []


def conventions(choice):
    name, dim = choice.one(list(CONVENTIONS)), choice.integer(1, 20)
    entry = CONVENTIONS[name]
    if entry.odd == "error" and dim % 2:
        choice.valid = False
    extras = choice.some(3, **{extra: EXTRAS.get(extra, POSITIVES) for extra in entry.extras})
    if choice.fault(10):
        extras[choice.one(["base", "padding_idx", "scale", "pi", "min_freq"])] = 1.0
    if name in ("mlx", "octaves", "diffusers"):
        choice.valid = choice.valid and not extras  # few of them, but some leave the domain
    first = choice.of(Argument([name, np.str_(name)], "nobody's", "", *NO_INTEGER))
    width = choice.of(Argument([dim], 0, -2, *HUGE, *NO_INTEGER))
    made = choice.outcome(posenc.convention, first, width, **extras, names=entry.extras)
    if made is REFUSED or made.dim > 2**20:
        return
    name, dim, e = str(first), operator.index(width), {**CONVENTIONS[first].extras, **extras}
    entry = CONVENTIONS[name]
    kind, arguments, factors = frequencies_of(name, dim, e)
    numbers = Numbers(lambda k: product(numbers_of(kind, *arguments)[1][k], *factors))
    cos_first = entry.cos_first
    if callable(cos_first):
        cos_first = bool(e["flip_sin_to_cos" if name == "diffusers" else "cos_first"])
    settings = {"layout": entry.layout, "odd": entry.odd if entry.odd != "error" else "zero", "cos_first": cos_first}
    if name == "mlx":
        with oracle.gmpy2.context(oracle.WIDE):
            root = oracle.rounded(oracle.gmpy2.sqrt(oracle.gmpy2.mpq(2, dim)), "float64")
        settings["amplitude"] = root if e["scale"] is None else float(e["scale"])
    assert made.first == (e["padding_idx"] + 1 if name == "fairseq" else entry.first)
    assert made.dim == dim
    position, j = choice.integer(-50, 50), choice.integer(0, dim - 1)
    if made._rows.frequencies.log2_largest < 50:
        got = made.encode(position, dtype="float64")[j]
        check_entry(got, cell(position, j, dim, "float64", frequencies=numbers, **settings), (name, dim, extras, position, j))


# ---- countings ---------------------------------------------------------------------------------------------------------

KINDS = [*"bBhHiIlLqQ", ">i4", ">u8", "<u2"]


def counted(choice, most, *, ndim=None, dtypes=KINDS):
    """Integers in some memory, as an array or a list, and the same as an array."""
    shape = [choice.one([0, 1, 2, 3, 9]) for _ in range(choice.integer(1, 3) if ndim is None else ndim)]
    view, block = memory(choice, shape, choice.one(["i1", "u1", "i4", "i8", "u8"]), "x")
    if view.flags.writeable:
        view[...] = choice.rng().integers(0, most + 1, shape)
    values = np.array(view, np.int64)
    kind = choice.one(dtypes)
    forms = [view, values.astype(kind), values.tolist() if values.size else values, values.astype(kind)[..., ::-1][..., ::-1]]
    return choice.one(forms), block, values


def checked(got, want):
    assert type(got) is np.ndarray
    assert (got.dtype, got.shape, got.tolist()) == (np.int64, want.shape, want.tolist())


def from_mask(choice):
    given, block, values = counted(choice, 1, dtypes=[*KINDS, "?"])
    wrong = [
        values + 2,
        values - 7,
        values * 1.0,
        "mask",
        None,
        1,
        True,
        values > 1j,
        [[1], [1, 0]],
        np.ma.masked_array(values),
    ]
    given = choice.of(Argument([given], *wrong))
    got = choice.outcome(posenc.positions_from_mask, given, inputs=[block])
    if got is not REFUSED:
        checked(got, loop_mask(np.asarray(given)))


def from_ids(choice):
    most = choice.one([3, 100])
    given, block, values = counted(choice, most)
    wrong = [values * 1.0, values > 1, "ids", None, 1, [[1], [1, 0]], [2**63, -1], [0.5], np.ma.masked_array(values), 2**63]
    given = choice.of(Argument([given], *wrong))
    padding = choice.of(Argument([0, 1, 2, -1, np.int8(1), 2**62], *(2**63, 2**63 - 1, *NO_INTEGER)))
    got = choice.outcome(posenc.positions_from_ids, given, padding, inputs=[block])
    if got is not REFUSED:
        array = np.asarray(given)
        checked(got, loop_ids(array if array.size else array.astype(int), operator.index(padding)))


def from_lengths(choice):
    given, block, values = counted(choice, 20, ndim=1)
    wrong = [
        values - 30,
        values * 1.0,
        values > 1,
        "lengths",
        None,
        1,
        [[1]],
        [2**62],
        [2**63 - 1] * 3,
        [2**64 - 1],
        [-1, 2],
        [1j],
    ]
    given = choice.of(Argument([given], *wrong))
    got = choice.outcome(posenc.positions_from_lengths, given, inputs=[block])
    if got is not REFUSED:
        checked(got, loop_lengths(np.asarray(given).tolist()))


# ---- schemes -----------------------------------------------------------------------------------------------------------


def all_schemes(choice):
    name = choice.one(["integer", "unit_interval", "binary", "sine"])
    n = choice.of(Argument(integers(0, 70), -1, *HUGE, *NO_INTEGER))
    d = choice.of(Argument(integers(7, 20), 0, 5, *HUGE, *NO_INTEGER))
    keywords = choice.some(2, octaves=FLAGS) if name == "sine" else {}
    got = choice.outcome(getattr(schemes, name), n, *([d] if name in ("binary", "sine") else []), **keywords)
    if got is REFUSED or not got.size:
        return
    n, i = operator.index(n), choice.integer(0, len(got) - 1)
    if name == "integer":
        assert (got.dtype, got.tolist()) == (np.int64, list(range(1, n + 1)))
    elif name == "unit_interval":
        assert (got.dtype, got.tolist()) == (np.float64, [k / max(n - 1, 1) for k in range(n)])
    elif name == "binary":
        d = operator.index(d)
        assert (got.dtype, got.shape) == (np.uint8, (n, d))
        assert got[i].tolist() == [int(digit) for digit in format(i, f"0{d}b")]
    else:
        d, j = operator.index(d), choice.integer(0, operator.index(d) - 1)
        assert (got.dtype, got.shape) == (np.float32, (n, d))
        frequency = product(Fraction(1, 2**j)) if keywords.get("octaves") else oracle.power(10000.0, -j, max(d - 1, 1))
        check_entry(got[i, j], oracle.rounded(oracle.sin_cos(i, frequency)[0], "float32") if i else 0.0, (n, d, i, j))


# ---- settings ----------------------------------------------------------------------------------------------------------


def settings(choice):
    """set_threads, threads, show_config, clear_cache."""
    before = _threads._process
    try:
        many = choice.of(Argument([None, 1, 2, 7, np.uint8(3)], *THREADS.wrong))
        if choice.outcome(posenc.set_threads, many, changes=True) is REFUSED:
            assert _threads._process == before
        else:
            assert _threads._process == (None if many is None else operator.index(many))
        inner = choice.of(THREADS)
        context = choice.outcome(posenc.threads, inner)
        usual = _threads.wanted()
        if context is not REFUSED:
            with contextlib.suppress(Own), context:
                assert _threads.wanted() == operator.index(inner)
                assert _threads.wanted(5) == 5
                with posenc.threads(2):
                    assert _threads.wanted() == 2
                if choice.given(2):
                    raise Own
        assert _threads.wanted() == usual
        mode, printed = choice.of(Argument(["stdout", "dicts"], "dict", "", None, 1)), io.StringIO()
        with contextlib.redirect_stdout(printed):
            how = choice.one([((mode,), {}), ((), {"mode": mode}), ((), {})])
            found = choice.outcome(posenc.show_config, *how[0], **how[1])
        if found is not REFUSED and found is not None:
            assert 1 <= found["threads"] <= 2**31
            assert found["version"] == posenc.__version__
        elif found is None:
            assert posenc.__version__ in printed.getvalue()
    finally:
        posenc.set_threads(before)
    if choice.given(20):
        table = posenc.table(30, 6)
        assert choice.outcome(posenc.clear_cache) is None
        assert posenc.table(30, 6).tobytes() == table.tobytes()


test_encodings = any_arguments(encodings)
test_replace = any_arguments(replace)
test_rules = any_arguments(rules)
test_conventions = any_arguments(conventions)
test_positions_from_mask = any_arguments(from_mask)
test_positions_from_ids = any_arguments(from_ids)
test_positions_from_lengths = any_arguments(from_lengths)
test_schemes = any_arguments(all_schemes)
test_settings = any_arguments(settings)
