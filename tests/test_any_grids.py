"""hypothesis drives grids, rotary schedules, caches and configurations with arguments of every kind.

`arguments` says what may happen then. Entries of grids are compared with MPFR's of the formulas in test_grid, schedules with
the formulas in test_rope, one float64 operation after the other, and configurations with the schedules that they ask for.
"""

import operator
from collections.abc import Iterator

import numpy as np
from arguments import (
    DTYPE_ERRORS,
    FLAGS,
    HOSTILE,
    HUGE,
    NO_INTEGER,
    REFUSED,
    STARTS,
    THREADS,
    Argument,
    Subclass,
    any_arguments,
    check_entry,
    held,
    integers,
    memory,
)
from conftest import DTYPES
from test_grid import FORMULAS, cells, coordinates, entry
from test_rope import FORMULAS as SCHEDULES
from test_rope import laid_out, proportional, waves

import posenc
from posenc import GRIDS, _arrays, rope

# ---- grids -------------------------------------------------------------------------------------------------------------

NORMALIZE = ("normalize", "scale", "eps", "offset")
SHARED = ("normalize", "interleave_sin_cos", "spatial_interpolation_scale", "temporal_interpolation_scale")
OPTIONS = {
    "first": Argument([*range(-3, 4), 2**40, np.int8(2), 0.5, -1e-3, 1e10], *(2**63, "0", None, True, 2.0**60, 1j)),
    "scale": Argument([1, 0.3, -2.0, 0, np.float32(0.1)], *("1", None, np.nan, np.inf, True, 1e300)),
    "eps": Argument([1e-6, 0.1], *("1", None, np.nan, -1.0)),
    "offset": Argument([-0.5, 0.25], *("1", None, np.inf)),
    "interleave_sin_cos": FLAGS,
    "normalize": FLAGS,
    "base_size": Argument([16, 5.5, 0.3], *("1", 0, -1, np.nan, 1e300)),
}
NUMBERS = Argument([10000.0, 100, 0.5, 1.0, 7.25, np.float32(3)], *(0.0, -1.0, "1", None, np.nan, True, 1j, 1e300, 1e-320))


def options_of(choice, name, axes):
    """Some of a convention's options, each one value or one for each axis."""
    chosen = {}
    for option in FORMULAS[name][4]:
        if choice.given():
            argument, each = OPTIONS.get(option, NUMBERS), choice.given(3) and option not in SHARED
            values = [choice.of(argument) for _ in range(axes + choice.fault(10))] if each else choice.of(argument)
            chosen[option] = choice.one([tuple, list])(values) if each else values
    normalize = chosen.get("normalize")
    is_normalized = isinstance(normalize, bool | np.bool_) and bool(normalize)
    if name == "detr" and not is_normalized and not choice.fault(6):
        chosen = {option: value for option, value in chosen.items() if option not in NORMALIZE}
    return chosen | ({choice.one(["unknown", "mask", "base", "\ud800"]): choice.one(HOSTILE)()} if choice.fault(12) else {})


def grid(choice):
    name = choice.one(list(FORMULAS))
    axes = choice.one(list(GRIDS[name].axes or range(1, 5)))
    shape = tuple(choice.integer(0, 5 if axes < 4 else 2) for _ in range(axes))
    least = 2 * axes if name == "tensor2tensor" else GRIDS[name].multiple
    dim = choice.integer(least, least + 30) // GRIDS[name].multiple * GRIDS[name].multiple
    options, mask = options_of(choice, name, axes), None
    wrong = shape[1:], (*shape, 1), (2**40,) * axes, "34", None, 3
    given = choice.of(Argument([shape, list(shape), np.array(shape, int)], *wrong))
    if name == "detr" and choice.given():
        shape = tuple(choice.integer(0, 4) for _ in range(choice.integer(0, 2))) + shape
        mask = choice.rng().random(shape) < 0.7
        wrong = [mask.astype(int), mask[..., 0] if mask.ndim == 2 and mask.size else "x", np.ma.masked_array(mask)]
        mask = options["mask"] = choice.of(Argument([mask, mask.tolist() if mask.size else mask, mask.view(Subclass)], *wrong))
        given = choice.one([None, shape]) if not choice.fault(6) else given
        choice.valid = choice.valid and not options.get("normalize") and hasattr(type(options.get("first", 0)), "__index__")
    if choice.given():
        order = sorted(range(axes), key=lambda _: choice.integer(0, 9))
        names = GRIDS[name].axes and GRIDS[name].axes[axes]
        order = "".join(names[i] for i in order) if names and choice.given(2) else order
        orders = [order, tuple(order)] if isinstance(order, list) else [order]
        options["order"] = choice.of(Argument(orders, *("", "hh", (0, 9), 3)))
    if "eps" in options or "first" in options or "offset" in options:
        choice.valid = False  # as the last coordinate may be 0 with these
    kind, out, block = choice.one(DTYPES), None, None
    if choice.given():
        out, block = memory(choice, (*shape, dim + choice.fault(12)), kind, "table")
        options["out"] = out if not choice.fault(12) else choice.one(HOSTILE)()
    else:
        options["dtype"] = choice.of(Argument([kind, np.dtype(kind)], *DTYPE_ERRORS))
    options |= choice.some(6, threads=THREADS)
    convention = choice.of(Argument([name], "vit", None, 3))
    width = choice.of(Argument([dim], 0, -4, dim + 1, *HUGE, *NO_INTEGER))
    names = ("shape", "coordinates", "size", *GRIDS[name].extras)
    got = choice.outcome(posenc.grid, given, width, convention=convention, **options, inputs=[block, held(mask)], names=names)
    if got is REFUSED:
        return
    assert "out" not in options or options["out"] is None or got is options["out"]
    check_grid(choice, got, name, given, operator.index(width), options)


def check_grid(choice, got, name, shape, dim, options):
    mask = options.get("mask")
    mask = None if mask is None else np.asarray(mask)
    shape = tuple(operator.index(n) for n in shape) if mask is None else mask.shape
    assert got.shape == (*shape, dim)
    if not got.size:
        return
    axes = len(shape) if mask is None else 2
    each = [
        {option: plain(option, options.get(option, default), axis) for option, default in FORMULAS[name][4].items()}
        for axis in range(axes)
    ]
    order = options.get("order")
    if isinstance(order, Iterator):
        order = (1, 0)  # that of `HOSTILE`, now at its end
    if order is not None:
        order = [GRIDS[name].axes[axes].index(i) if isinstance(i, str) else operator.index(i) for i in order]
    columns = cells(name, dim, axes, order, each[0].get("interleave_sin_cos"))
    for _ in range(2):
        index, column = tuple(choice.integer(0, n - 1) for n in shape), choice.integer(0, dim - 1)
        want = 0.0
        if column < len(columns):
            axis, k, n, is_cosine = columns[column]
            with np.errstate(all="ignore"):
                points = coordinates(name, shape, len(shape) - axes + axis, each[axis], mask)
            point = np.broadcast_to(points, shape)[index]
            want = entry(point, FORMULAS[name][1](k, n, each[axis]), is_cosine, got.dtype.name)
        check_entry(got[index][column], want, (name, shape, dim, index, column))


def plain(option, value, axis):
    """An option of an axis as the formulas take it."""
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        value = value[axis]
    if value is None or option in ("normalize", "interleave_sin_cos"):
        return value
    is_integer = option == "first" and hasattr(type(value), "__index__")
    return operator.index(value) if is_integer else float(value)


# ---- schedules ---------------------------------------------------------------------------------------------------------

FACTORS = Argument([0.3, 1.0, 1, 1.7, 4.0, 8, np.float32(40)], *(0.0, -2, np.nan, np.inf, "2", None, True, 1e308, 1e-300))
LENGTHS = Argument(integers(2, 5000), 0, -1, 2**53 + 1, 2**63, *NO_INTEGER)
TURNS = Argument([32.0, 1, 1.0, 4.0, 0.5, 1e4], *(0.0, -1, "1", None, 1e308, np.nan))
PARTS = Argument([1.0, 0.5, 0.25, np.float32(0.75)], *(0.0, 1.5, -1, None, "1", np.nan))
HEADS = {
    "base": Argument([10000.0, 500000.0, 1e6, 100, np.float32(7.5)], *(0.0, -1.0, "1", None, np.inf, 1e300, True)),
    "partial_rotary_factor": PARTS,
}
AMPLITUDES = Argument([1.25, 0.3, -1, 2], *(0.0, "1", np.nan, 1j))
MSCALES = Argument([0.707, 1, 1.3, 0.0], *("1", np.inf, [1.0], np.ones(2)))
ARGUMENTS = {  # after dim, and keywords
    "default": ((), {}),
    "linear": ((FACTORS,), {}),
    "ntk": ((FACTORS,), {}),
    "dynamic": ((FACTORS, LENGTHS), {"length": LENGTHS}),
    "yarn": (
        (FACTORS, LENGTHS),
        {
            "beta_fast": TURNS,
            "beta_slow": TURNS,
            "attention_factor": AMPLITUDES,
            "mscale": MSCALES,
            "mscale_all_dim": MSCALES,
            "truncate": FLAGS,
        },
    ),
    "longrope": ((None, None, LENGTHS), {"length": LENGTHS, "factor": FACTORS, "attention_factor": AMPLITUDES}),
    "llama3": ((FACTORS, LENGTHS), {"low_freq_factor": TURNS, "high_freq_factor": TURNS}),
    "proportional": ((), {"factor": FACTORS}),
}


def drawn(choice, name):
    """Arguments of a schedule."""
    dim = choice.one([2, 4, 6, 10, 64, choice.integer(1, 70)])
    positional, named = ARGUMENTS[name]
    keywords = choice.some(3, **HEADS, **named)
    part = keywords.get("partial_rotary_factor", 1.0)
    part = float(part) if isinstance(part, float | np.floating) and 0 < part <= 1 else 1.0
    width = int(dim * part)
    n = -(-width // 2)
    right = [[1.0 + k / 37 for k in range(n)], np.arange(1.0, n + 1), tuple(range(1, n + 1))]
    lists = Argument(right, [1.0], [], [[1.0]], None, [0.0] * n)
    arguments = [choice.of(lists if argument is None else argument) for argument in positional]
    if width < 1 or (name in ("ntk", "dynamic") and width <= 2) or (name == "proportional" and dim % 2):
        choice.valid = False
    if name == "longrope" and "factor" not in keywords and "attention_factor" not in keywords:
        choice.valid = False
    if name == "llama3" and ("low_freq_factor" in keywords or "high_freq_factor" in keywords):
        choice.valid = False  # as they may be the same
    if "mscale" in keywords and "mscale_all_dim" in keywords:
        choice.valid = False  # their quotient may be by 0
    if name == "dynamic" and not (isinstance(arguments[0], int | float) and arguments[0] >= 1.0):
        choice.valid = False  # what it stretches by may be negative
    return choice.of(Argument([dim], 0, -2, *NO_INTEGER)), arguments, keywords


def expected(name, dim, arguments, keywords):
    """Frequencies and amplitude of the formula, for arguments that were found right."""
    plainly = {key: simple(value) for key, value in keywords.items()}
    values = [simple(value) for value in arguments]
    if name == "proportional":
        return proportional(operator.index(dim), **plainly)
    base, part = plainly.pop("base", 10000.0), plainly.pop("partial_rotary_factor", 1.0)
    d = int(operator.index(dim) * part)
    plainly = {key: value for key, value in plainly.items() if value is not None}
    return SCHEDULES[name](d, base, waves(d, base), *values, **plainly)


def simple(value):
    """As a formula takes it."""
    if value is None or isinstance(value, bool | np.bool_):
        return value
    if np.ndim(value):
        return np.asarray(value).astype(float).tolist()
    return operator.index(value) if hasattr(type(value), "__index__") else float(value)


def check_schedule(got, want, about):
    values, amplitude = want
    assert [w.hex() for w in got.frequencies.values.tolist()] == [float(w).hex() for w in values], about
    assert got.amplitude == amplitude, about


def schedules(choice):
    name = choice.one(list(ARGUMENTS))
    dim, arguments, keywords = drawn(choice, name)
    names = ("rotated", "frequency is out of range", "amplitude")
    got = choice.outcome(getattr(rope, name), dim, *arguments, **keywords, names=names)
    if got is REFUSED or len(got.frequencies) > 10**4:
        return
    assert type(got) is rope.Schedule
    check_schedule(got, expected(name, dim, arguments, keywords), (name, dim, arguments, keywords))
    layout = choice.of(Argument(["concatenated", "interleaved"], "halves", None, 1))
    made = choice.outcome(got.encoding, *([layout] if choice.given(2) else []))
    if made is not REFUSED:
        assert made._rows.frequencies == got.frequencies
        assert (made.amplitude, made.cos_first, made.dim) == (got.amplitude, True, 2 * len(got.frequencies))


# ---- configurations ----------------------------------------------------------------------------------------------------

NESTED = ("full_attention", "sliding_attention")
KNOWN = {"rope_type", "type", "rope_theta", "rope_scaling", "rope_parameters", "head_dim", "hidden_size", "num_attention_heads"}
KNOWN |= {"max_position_embeddings", "rope_local_base_freq", "original_max_position_embeddings", "rotary_dim", "rotary_pct"}
KNOWN |= {"short_mscale", "long_mscale", "qk_rope_head_dim", "n_embd", "n_head", "kv_channels", "rotary_emb_base"}


class Config:
    def __init__(self, values):
        self._values = values

    def to_dict(self):
        return self._values


def configurations(choice):
    name = choice.one(["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"])
    dim, arguments, keywords = drawn(choice, name)
    want = None
    try:
        want = getattr(rope, name)(dim, *arguments, **keywords)
    except Exception:  # `schedules` says whether it should
        choice.valid = False
    named = dict(zip(positional_names(name), arguments, strict=True)) | keywords
    length, model = named.pop("length", None), {}
    if name == "llama3":
        named = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, **named}
    if "max_position_embeddings" in named:
        model["max_position_embeddings"] = named.pop("max_position_embeddings")
    named[choice.one(["rope_type", "type"])] = "su" if name == "longrope" and choice.given() else name
    head = {"dim": dim}
    if choice.given(2):
        model["head_dim"], head = dim, {}
    if "base" in named:
        (named if choice.given(2) else model)["rope_theta"] = named.pop("base")
    if choice.given(6):  # what the schedule does not read
        named[choice.one(["unknown", "\ud800", "vocab_size"])] = choice.one([1, None, "x", np.ones(2), [1], 10**5000])
    layers = {}
    if choice.given(6) and name != "longrope":
        other = {"rope_type": "default"}
        named, layers = {NESTED[0]: named, NESTED[1]: other}, {"layer_type": NESTED[0]}
    place = choice.one(["rope_scaling", "rope_parameters", *([] if model else [None])])
    config = named | model if place is None else {**model, place: named}
    if choice.fault(2):
        want, inner = None, choice.one([config, *(value for value in config.values() if isinstance(value, dict))])
        key = choice.one([*inner, *sorted(KNOWN), *NESTED])
        if choice.given(4):
            inner.pop(key, None)
        else:
            inner[key] = choice.one(HOSTILE)()
    if choice.fault(12):
        want, config = None, choice.one(HOSTILE)()
    if choice.fault(12):
        want, layers = None, {"layer_type": choice.one(HOSTILE)()}
    if choice.fault(12):
        want, head = None, {"dim": choice.one(HOSTILE)()}
    if choice.fault(12):
        want, length = None, choice.one(HOSTILE)()
    how = {**head, **layers} | ({} if length is None else {"length": length})
    names = {"config", "rotated", "frequency is out of range", "amplitude", *KNOWN, *parameters_of(name)}
    got = choice.outcome(rope.from_config, Config(config) if choice.given(4) else config, **how, names=names)
    if got is REFUSED:
        return
    assert type(got) is rope.Schedule
    if want is not None:
        assert got == want


def positional_names(name):
    original = "original_max_position_embeddings"
    if name == "longrope":
        return "short_factor", "long_factor", original
    return ("factor", "max_position_embeddings" if name == "dynamic" else original)[: len(ARGUMENTS[name][0])]


def parameters_of(name):
    return {*positional_names(name), *ARGUMENTS[name][1], *HEADS, "factor"}


# ---- caches ------------------------------------------------------------------------------------------------------------

LAYOUTS = ["split", "halves", "pairs", "row", "stacked", "complex"]
MADE = [rope.default(10), rope.yarn(8, 40.0, 4096, base=500.0), rope.linear(6, 2.0)]
MADE += [rope.proportional(8, partial_rotary_factor=0.5)]
NO_SCHEDULES = [None, 8, tuple(MADE[0]), rope.Schedule(None), rope.Schedule(MADE[0].frequencies, "1"), rope.Schedule(3, 0.0)]


def caches(choice):
    length, schedule, layout = choice.integer(0, 60), choice.one(MADE), choice.one(LAYOUTS)
    kind = choice.one(DTYPES if layout != "complex" else ["float32", "float64"])
    keywords = choice.some(2, start=STARTS, threads=THREADS, dtype=Argument([kind, np.dtype(kind)], *DTYPE_ERRORS, "float16"))
    first = choice.of(Argument([length], -1, *HUGE, *NO_INTEGER))
    second = choice.of(Argument([schedule], *NO_SCHEDULES))
    layout = choice.of(Argument([layout], "rows", None, 1))
    got = choice.outcome(rope.cache, first, second, layout=layout, **keywords, names=("frequencies", "amplitude"))
    if got is REFUSED:
        return
    dtype = _arrays.checked_dtype(keywords.get("dtype"), None)
    start = operator.index(keywords.get("start", 0))
    sines, cosines = second.encoding().sincos([start + i for i in range(operator.index(first))], dtype=dtype)
    arrays = got if isinstance(got, tuple) else [got]
    for array, want in zip(arrays, laid_out(layout, cosines, sines), strict=True):
        assert (array.shape, array.dtype) == (want.shape, want.dtype)
        assert array.tobytes() == want.tobytes()


test_grid = any_arguments(grid)
test_schedules = any_arguments(schedules)
test_configurations = any_arguments(configurations)
test_caches = any_arguments(caches)
