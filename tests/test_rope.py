"""Rotary schedules and caches by bits: MPFR's logarithms, powers, sines and cosines, float64 operations as they are stated."""

import decimal
import itertools
import math
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from conftest import NATIVE
from test_same_bits import CONTROLS

import posenc
from posenc import _exact, _pairs, _rows, _threads, rope

gmpy2 = pytest.importorskip("gmpy2", reason="logarithms and powers are compared with MPFR")


# ---- the formulas of CONVENTIONS.md, one float64 operation after the other ---------------------------------------------


def power(base, numerator, denominator):
    """Base**(numerator / denominator), the nearest float64."""
    return oracle.rounded(oracle.power(base, numerator, denominator), "float64")


def ln(x):
    """The nearest float64."""
    with gmpy2.context(oracle.WIDE):
        return oracle.rounded(gmpy2.log(gmpy2.mpfr(x)), "float64")


def waves(d, base):
    return [power(base, -2 * k, d) for k in range(-(-d // 2))]


# of the rotated width d, the base and the waves of both, and a schedule's own arguments: its frequencies and amplitude


def linear(d, base, w, factor):
    return [x / factor for x in w], 1.0


def ntk(d, base, w, factor):
    return waves(d, base * power(factor, d, d - 2)), 1.0


def dynamic(d, base, w, factor, longest, *, length=None):
    return ntk(d, base, w, factor * max(length or 0, longest) / longest - (factor - 1.0))


def yarn(d, base, w, factor, original, *, beta_fast=32.0, beta_slow=1.0, truncate=True, attention_factor=None, **mscales):
    low, high = (d * ln(original / (2.0 * math.pi * turns)) / (2.0 * ln(base)) for turns in (beta_fast, beta_slow))
    low, high = (math.floor(low), math.ceil(high)) if truncate else (low, high)
    low, high = max(low, 0), min(high, d - 1)
    high = high + 0.001 if low == high else high
    ramps = [min(max((k - low) / (high - low), 0.0), 1.0) for k in range(len(w))]
    values = [x / factor * ramp + x * (1.0 - ramp) for x, ramp in zip(w, ramps, strict=True)]
    if attention_factor is not None:
        return values, attention_factor
    scales = mscales.get("mscale"), mscales.get("mscale_all_dim")
    above, below = (0.1 * scale * ln(max(factor, 1.0)) + 1.0 for scale in (scales if all(scales) else (1.0, 0.0)))
    return values, above / below


def longrope(d, base, w, short, long, original, *, length=None, factor=None, attention_factor=None):
    values = [x / by for x, by in zip(w, long if length is not None and length > original else short, strict=True)]
    if attention_factor is not None:
        return values, attention_factor
    return values, math.sqrt(1.0 + ln(factor) / ln(original)) if factor > 1.0 else 1.0


def llama3(d, base, w, factor, original, *, low_freq_factor=1.0, high_freq_factor=4.0):
    values = []
    for x in w:
        wavelength = 2.0 * math.pi / x
        smooth = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)
        if wavelength > original / low_freq_factor:
            values.append(x / factor)
        elif wavelength < original / high_freq_factor:
            values.append(x)
        else:
            values.append((1.0 - smooth) * x / factor + smooth * x)
    return values, 1.0


FORMULAS = {"default": lambda d, base, w: (w, 1.0), "linear": linear, "ntk": ntk, "dynamic": dynamic, "yarn": yarn}
FORMULAS |= {"longrope": longrope, "llama3": llama3}


def proportional(dim, *, factor=1.0, base=10000.0, partial_rotary_factor=1.0):
    kept = int(partial_rotary_factor * dim // 2)
    return [x / factor if k < kept else 0.0 for k, x in enumerate(waves(dim, base))], 1.0


def check(name, dim, *arguments, base=10000.0, partial_rotary_factor=1.0, **keywords):
    """The schedule's bits are the formula's; returns it."""
    head = {"base": base, "partial_rotary_factor": partial_rotary_factor}
    schedule = getattr(rope, name)(dim, *arguments, **head, **keywords)
    if name == "proportional":
        values, amplitude = proportional(dim, **head, **keywords)
    else:
        d = int(dim * partial_rotary_factor)
        values, amplitude = FORMULAS[name](d, base, waves(d, base), *arguments, **keywords)
    pairs = zip([w.hex() for w in schedule.frequencies.values.tolist()], [w.hex() for w in values], strict=True)
    wrong = [(k, got, want) for k, (got, want) in enumerate(pairs) if got != want]
    about = name, dim, arguments, head, keywords
    assert not wrong, f"{about}: k, got, want {wrong[:5]}"
    assert schedule.amplitude.hex() == amplitude.hex(), about
    return schedule


# ---- schedules against them --------------------------------------------------------------------------------------------

SHORT, LONG = [1.0 + k / 37 for k in range(48)], [1.03 * 1.09**k for k in range(48)]
MODELS = {  # name: schedule, arguments, keywords
    "LLaMA 3.1 8B": ("llama3", (128, 8.0, 8192), {"base": 500000.0}),
    "LLaMA 3.2 1B": ("llama3", (64, 32.0, 8192), {"base": 500000.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}),
    "Qwen2.5 128k": ("yarn", (128, 4.0, 32768), {"base": 1e6}),
    "DeepSeek-V2": ("yarn", (64, 40, 4096), {"mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}),
    "DeepSeek-V3": ("yarn", (64, 40, 4096), {"mscale": 1.0, "mscale_all_dim": 1.0}),
    "Phi-3-mini-128k, short": ("longrope", (96, SHORT, LONG, 4096), {"factor": 32.0, "length": 4096}),
    "Phi-3-mini-128k, long": ("longrope", (96, SHORT, LONG, 4096), {"factor": 32.0, "length": 4097}),
    "gpt-oss": ("yarn", (64, 32.0, 4096), {"base": 150000.0, "truncate": False}),
    "CodeLlama": ("default", (128,), {"base": 1e6}),
    "LLaMA, 2 times": ("linear", (128, 2.0), {}),
    "Gemma 4": ("proportional", (512,), {"base": 1e6, "partial_rotary_factor": 0.25}),
    "GPT-NeoX 20B": ("default", (96,), {"partial_rotary_factor": 0.25}),
    "StableLM, dynamic": ("dynamic", (80, 4.0, 4096), {"length": 20000, "partial_rotary_factor": 0.25}),
    "ntk": ("ntk", (128, 8.0), {}),
}
DIMS = [2, 3, 4, 6, 7, 10, 64, 80, 96, 127, 128, 256]
BASES = [10000.0, 500000.0, 1e6, 150000.0]
FACTORS = [0.3, 0.5, 1.0, 1, 1.7, 4.0, 8, 40.0]
PARTS = [1.0, 0.5, 0.25, 0.7]  # 10 * 0.7 and others are odd


def sweep(*axes):
    """Combinations of everything, but with dims and bases, which cost, going round."""
    ring = itertools.cycle(itertools.product(DIMS, BASES, PARTS))
    for combination in itertools.product(*axes):
        for dim, base, part in itertools.islice(ring, 11):  # 11 and the 192 of the ring have no common divisor
            if int(dim * part):
                yield dim, {"base": base, "partial_rotary_factor": part}, combination


@pytest.mark.parametrize("model", MODELS)
def test_models(model):
    name, arguments, keywords = MODELS[model]
    check(name, *arguments, **keywords)


def test_default():
    for dim, base, part in itertools.product(DIMS, BASES, PARTS):
        if int(dim * part):
            schedule = check("default", dim, base=base, partial_rotary_factor=part)
            assert schedule.frequencies == posenc.frequencies.paper(int(dim * part), base)  # the real numbers, not float64


def test_linear_ntk_and_dynamic():
    for dim, head, (factor,) in sweep(FACTORS):
        check("linear", dim, factor, **head)
        if int(dim * head["partial_rotary_factor"]) > 2:
            check("ntk", dim, factor, **head)
            for longest, length in [(2048, None), (2048, 1), (2048, 2048), (2048, 2049), (3001, 77777)]:
                check("dynamic", dim, factor, longest, length=length, **head)


def test_yarn():
    turns = [(32.0, 1.0), (32, 1), (8.0, 2.5), (1.0, 32.0), (1e4, 0.01), (3.0, 3.0)]
    for dim, head, (factor, original, (fast, slow), truncate) in sweep(FACTORS, [4096, 3001], turns, [True, False]):
        check("yarn", dim, factor, original, beta_fast=fast, beta_slow=slow, truncate=truncate, **head)
    within = 4096 / (2.0 * math.pi) * 10000.0 ** (-2 * (19 - 0.0005) / 64)  # k = 19 is half way up the step
    for truncate, turns, kept in [(True, 700.0, 1), (False, 3.0, 19), (False, within, 19)]:  # low = high: a step
        schedule = check("yarn", 64, 4.0, 4096, beta_fast=turns, beta_slow=turns, truncate=truncate)
        assert (schedule.frequencies.values == rope.default(64).frequencies.values).sum() == kept


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.1, 4, 40.0, 64.5])
def test_yarn_amplitudes(factor):
    for mscale, all_dim in itertools.product([None, 0.0, 0.707, 1, 1.3], repeat=2):
        check("yarn", 8, factor, 4096, mscale=mscale, mscale_all_dim=all_dim)
        assert check("yarn", 8, factor, 4096, mscale=mscale, mscale_all_dim=all_dim, attention_factor=0.3).amplitude == 0.3


def test_longrope():
    originals = itertools.product([2, 4096, 3001], [None, -1, 0, 1, 10**6])
    for dim, head, (factor, (original, more)) in sweep(FACTORS, originals):
        length = None if more is None else original + more
        n = -(-int(dim * head["partial_rotary_factor"]) // 2)
        lists = [1.0 + k / 37 for k in range(n)], [0.7 + k / 3 for k in range(n)]
        schedule = check("longrope", dim, *lists, original, length=length, factor=factor, **head)
        assert (schedule.frequencies.values[0] == 1.0) == (more is None or more <= 0)  # which of the lists
        check("longrope", dim, *map(np.array, lists), original, length=length, attention_factor=1.25, **head)
        check("longrope", dim, *lists, original, length=length, factor=factor, attention_factor=1.25, **head)


def test_llama3():
    turns = [(1.0, 4.0), (1, 2), (0.5, 7.3), (4.0, 1.0)]
    for dim, head, (factor, original, (low, high)) in sweep(FACTORS, [8192, 3001], turns):
        check("llama3", dim, factor, original, low_freq_factor=low, high_freq_factor=high, **head)


def test_llama3_at_its_boundaries():
    """A wave exactly as long as L / low or L / high, or next to that."""
    met = 0
    for w in waves(64, 500000.0)[4:]:
        wavelength = 2.0 * math.pi / w
        for turns in (8192 / wavelength, math.nextafter(8192 / wavelength, 0), math.nextafter(8192 / wavelength, 9e9)):
            check("llama3", 64, 8.0, 8192, low_freq_factor=turns, high_freq_factor=3.0 * turns, base=500000.0)
            check("llama3", 64, 8.0, 8192, low_freq_factor=turns / 3.0, high_freq_factor=turns, base=500000.0)
            met += wavelength == 8192 / turns
    assert met > 20


def test_proportional():
    for dim, head, (factor,) in sweep(FACTORS):
        check("proportional", dim + dim % 2, factor=factor, **head)


# ---- functions of their arguments alone --------------------------------------------------------------------------------


def every():
    """Each model's schedule, made now."""
    return {model: getattr(rope, name)(*arguments, **keywords) for model, (name, arguments, keywords) in MODELS.items()}


def exact(schedule):
    """Its frequencies, as the oracle takes them."""
    if schedule == rope.default(2 * len(schedule.frequencies)):
        return [oracle.power(10000.0, -k, len(schedule.frequencies)) for k in range(len(schedule.frequencies))]
    return [gmpy2.mpq(w) for w in schedule.frequencies.values.tolist()]


def bits(schedules):
    return [(schedule.frequencies.values.tobytes(), schedule.amplitude.hex()) for schedule in schedules]


def forget():
    posenc.clear_cache()
    _exact.log.cache_clear()


@pytest.mark.parametrize("between", [lambda: None, forget])
def test_the_order_of_calls_does_not_matter(between):
    lengths = [10, 100_000, 2048, 10, 4096, 4097, 100_000, 4096]
    makers = [
        lambda n: rope.dynamic(64, 2.0, 2048, length=n),
        lambda n: rope.longrope(96, SHORT, LONG, 4096, length=n, factor=32.0),
        lambda n: rope.from_config(
            {"head_dim": 64, "max_position_embeddings": 2048, "rope_scaling": {"type": "dynamic", "factor": 2}}, length=n
        ),
    ]
    for maker in makers:
        forwards = {}
        for n in lengths:
            between()
            schedule = maker(n)
            assert forwards.setdefault(n, schedule) == schedule
            assert bits([forwards[n]]) == bits([schedule])
            assert rope.cache(9, schedule, layout="row").tobytes() == rope.cache(9, forwards[n], layout="row").tobytes()
        assert len(set(bits(forwards.values()))) in (2, 4)  # short and long, or one for each length above 2048
    assert rope.dynamic(64, 2.0, 2048, length=10) == rope.dynamic(64, 2.0, 2048)


def test_schedules_are_values():
    first, second = every(), every()
    assert first == second
    assert list(map(hash, first.values())) == list(map(hash, second.values()))
    assert len(set(first.values())) == len(MODELS) - 1  # DeepSeek-V2 and V3 have the same
    for schedule in first.values():
        again = pickle.loads(pickle.dumps(schedule))
        assert again == schedule
        assert type(again) is rope.Schedule
        assert bits([again]) == bits([schedule])
        assert eval(repr(schedule), vars(posenc) | {"Schedule": rope.Schedule}) == schedule
        assert schedule != schedule._replace(amplitude=0.5)
    with pytest.raises(AttributeError):
        schedule.amplitude = 2.0


@pytest.mark.parametrize("layout", ["concatenated", "interleaved"])
@pytest.mark.parametrize("model", ["DeepSeek-V2", "gpt-oss", "LLaMA 3.2 1B", "GPT-NeoX 20B"])
def test_rotation(model, layout):
    """The formula of RoPE by MPFR's sines and cosines; the tail of a wider head stays."""
    schedule = every()[model]
    encoding, n = schedule.encoding(layout), len(schedule.frequencies)
    x = np.random.default_rng(1).normal(size=(2, 5, 2 * n + 6))
    positions = [0, 1, 7, -3, 100_000]
    first, second = (slice(0, n), slice(n, 2 * n)) if layout == "concatenated" else (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    both = oracle.entries(
        *(positions, range(2 * n), 2 * n),
        frequencies=exact(schedule),
        layout="concatenated",
        amplitude=schedule.amplitude,
        dtype="float64",
    )
    sines, cosines = both[:, :n], both[:, n:]
    want = x.copy()
    want[..., first] = x[..., first] * cosines - x[..., second] * sines
    want[..., second] = x[..., second] * cosines + x[..., first] * sines
    got = encoding.rotate(x, positions)
    assert got.tobytes() == want.tobytes()
    assert got[..., 2 * n :].tobytes() == x[..., 2 * n :].tobytes()
    assert encoding == posenc.Encoding(
        2 * n, frequencies=schedule.frequencies, amplitude=schedule.amplitude, layout=layout, cos_first=True
    )
    assert schedule.encoding() == schedule.encoding("concatenated")


RATIO = {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 3001}  # 100000 / 3001 is not a float64


def everything():
    """All that computes: schedules, a configuration's quotient, a cache."""
    made = every()
    configured = rope.from_config({"head_dim": 16, "max_position_embeddings": 100_000, "rope_scaling": RATIO})
    return bits([*made.values(), configured]), rope.cache(30, made["DeepSeek-V2"], layout="row", dtype="float64").tobytes()


@pytest.mark.parametrize("setting", CONTROLS)
def test_callers_rounding_mode(setting, drivers):
    driver, want = drivers(NATIVE), everything()
    forget()
    before = driver.control(CONTROLS[setting])
    try:
        got = everything()
    finally:
        during = driver.control(before)
    assert got == want
    assert during & ~0x3F == CONTROLS[setting]  # but for x86's sticky flags


def test_callers_decimal_context_and_numpy_errors():
    want = everything()
    forget()
    context = decimal.Context(prec=1, rounding=decimal.ROUND_UP, traps=[decimal.Inexact, decimal.Rounded])
    with decimal.localcontext(context), np.errstate(all="raise"):
        assert everything() == want
        rope.linear(8, 2.0**100, base=2.0**99)  # waves up to 2**-175


# ---- cache -------------------------------------------------------------------------------------------------------------


def laid_out(layout, cosines, sines):
    """The arrays that a layout has, from (length, n) each."""
    if layout in ("split", "halves", "pairs"):
        make = {"split": lambda x: x, "halves": lambda x: np.concatenate([x, x], -1), "pairs": lambda x: np.repeat(x, 2, -1)}
        return [make[layout](cosines), make[layout](sines)]
    if layout == "row":
        return [np.concatenate([cosines, sines], -1)]
    stacked = np.stack([cosines, sines], -1)
    return [stacked if layout == "stacked" else stacked.view({4: "c8", 8: "c16"}[sines.itemsize])[..., 0]]


LAYOUTS = ["split", "halves", "pairs", "row", "stacked", "complex"]
SCHEDULES = [rope.default(10), rope.yarn(8, 40.0, 4096, base=500.0), rope.proportional(8, partial_rotary_factor=0.5)]


def check_cache(length, schedule, layout, dtype, start=0, **keywords):
    got = rope.cache(length, schedule, layout=layout, start=start, dtype=dtype, **keywords)
    sines, cosines = schedule.encoding().sincos(range(start, start + length), dtype=dtype)
    want = laid_out(layout, cosines, sines)
    arrays = list(got) if isinstance(got, tuple) else [got]
    assert [(a.shape, a.dtype, a.flags.c_contiguous) for a in arrays] == [(a.shape, a.dtype, True) for a in want]
    assert [a.tobytes() for a in arrays] == [a.tobytes() for a in want]
    return arrays


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cache(layout, dtype, kernel):
    if layout == "complex" and dtype not in ("float32", "float64"):
        return  # test_other_errors
    for schedule, start, length in itertools.product(SCHEDULES, (0, -20, 131072, 2**62, -(2**62)), (1, 40)):
        arrays = check_cache(length, schedule, layout, dtype, start)
        rows, n = sorted({0, length // 2, length - 1}), len(schedule.frequencies)
        judged = oracle.entries(
            *([start + row for row in rows], range(2 * n), 2 * n),
            frequencies=exact(schedule),
            layout="concatenated",
            cos_first=True,
            amplitude=schedule.amplitude,
            dtype=dtype,
        )
        for array, want in zip(arrays, laid_out(layout, judged[:, :n], judged[:, n:]), strict=True):
            assert array[rows].tobytes() == want.tobytes(), (schedule, start, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("start", [0, 5, -(2**63), 2**63 - 1])
def test_empty_caches_and_ends_of_int64(layout, start):
    check_cache(0, SCHEDULES[0], layout, "float32", start)
    check_cache(1, SCHEDULES[0], layout, "float32", start)


def test_cache_arguments_by_default():
    for layout in LAYOUTS:
        got, want = (rope.cache(3, SCHEDULES[1], layout=layout, **more) for more in ({}, {"start": 0, "dtype": "float32"}))
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
        assert np.asarray(got).dtype == ("complex64" if layout == "complex" else "float32")


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cache_with_threads(layout, threads, dtype, monkeypatch):
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(_rows, "SLICE_BYTES", 1)
    if layout != "complex" or dtype in ("float32", "float64"):
        check_cache(700, rope.yarn(64, 40.0, 4096), layout, dtype, -9, threads=threads)


@pytest.mark.parametrize("duplicate", [None, "halves", "pairs"])
@pytest.mark.parametrize("bounds", [{"accurate_bound": 1.0}, {"fast_bound": math.inf, "accurate_bound": 0.5}], ids=str)
def test_exact_arithmetic_settles_with_the_right_frequency(duplicate, bounds, dtype, kernel, monkeypatch):
    """With bounds wider than an entry, whatever is in doubt is left to it."""
    schedule = rope.yarn(10, 40.0, 300, base=50.0)
    encoding = schedule.encoding()
    sines, cosines = encoding.sincos(range(-3, 37), dtype=dtype, duplicate=duplicate)
    settled, exact = [], _rows.Rows.entry

    def counted(*arguments):
        settled.append(arguments)
        return exact(*arguments)

    monkeypatch.setattr(_rows.Rows, "entry", counted)
    rows = _pairs.concatenated(encoding._rows, duplicate=duplicate)
    every_bound = {"fast_bound": math.inf, **bounds}
    got = np.empty((2, *sines.shape), sines.dtype)
    rows.write(got[0], -3, 1, second=got[1], **every_bound)
    assert [part.tobytes() for part in got] == [sines.tobytes(), cosines.tobytes()]
    assert len(settled) == 39 * 2 * sines.shape[1]  # all but position 0
    whole = np.empty((40, rows.dim), sines.dtype)
    rows.write(whole, -3, 1, **every_bound)
    assert whole.tobytes() == np.concatenate([sines, cosines], 1).tobytes()


# ---- configurations ----------------------------------------------------------------------------------------------------

HEADS = {"hidden_size": 4096, "num_attention_heads": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
DEEPSEEK = {"type": "yarn", "factor": 40, "mscale": 0.7, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}
DYNAMIC = {"max_position_embeddings": 2048, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
PHI3 = {"hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072}
PHI3 |= {"original_max_position_embeddings": 4096}
LISTS = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG}
MOE = {**LISTS, "short_mscale": 1.25, "long_mscale": 1.5, "original_max_position_embeddings": 4096}
NESTED = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
V4, V5 = "rope_scaling", "rope_parameters"
SHORTER, LONGER = (rope.longrope(96, SHORT, LONG, 4096, factor=32.0, length=length) for length in (4096, 4097))
PROPORTIONAL = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}
CONFIGS = {  # name: configuration, keywords, what it means
    "nothing": ({}, {"dim": 8}, rope.default(8)),
    "heads": (HEADS, {}, rope.default(128)),
    "head_dim": ({**HEADS, "head_dim": 64}, {}, rope.default(64)),
    "head_dim None": ({**HEADS, "head_dim": None}, {}, rope.default(128)),
    "dim": ({**HEADS, "head_dim": 64}, {"dim": 32}, rope.default(32)),
    "CodeLlama": ({**HEADS, V4: None, "rope_theta": 1000000}, {}, rope.default(128, base=1e6)),
    "linear, 4": ({**HEADS, V4: {"type": "linear", "factor": 2.0}}, {}, rope.linear(128, 2.0)),
    "linear, 5": ({**HEADS, V5: {"rope_type": "linear", "factor": 2, "rope_theta": 5e5}}, {}, rope.linear(128, 2.0, base=5e5)),
    "linear, alone, 4": ({"type": "linear", "factor": 4.0}, {"dim": 64}, rope.linear(64, 4.0)),
    "linear, alone, 5": ({"rope_type": "linear", "factor": 4, "rope_theta": 5e5}, {"dim": 8}, rope.linear(8, 4.0, base=5e5)),
    "dynamic": ({**HEADS, **DYNAMIC}, {"length": 5000}, rope.dynamic(128, 2.0, 2048, length=5000)),
    "dynamic, no length": ({**HEADS, **DYNAMIC}, {}, rope.dynamic(128, 2.0, 2048)),
    "LLaMA 3.1": (
        {**HEADS, "rope_theta": 5e5, "max_position_embeddings": 9999, V4: {**LLAMA3, "original_max_position_embeddings": 8192}},
        {},
        rope.llama3(128, 8.0, 8192, base=5e5, low_freq_factor=2.0),
    ),
    "llama3, no original length": (
        {**HEADS, "max_position_embeddings": 9999, V5: LLAMA3},
        {},
        rope.llama3(128, 8.0, 9999, low_freq_factor=2.0),
    ),
    "Qwen2.5": ({**HEADS, "rope_theta": 1e6, V4: YARN}, {}, rope.yarn(128, 4.0, 4096, base=1e6)),
    "yarn, no original length": (
        {**HEADS, "max_position_embeddings": 2048, V4: {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8}},
        {},
        rope.yarn(128, 4.0, 2048, beta_fast=8.0),
    ),
    "yarn, attention_factor": (
        {**YARN, "attention_factor": 0.5, "beta_slow": None, "beta_fast": 9},
        {"dim": 8},
        rope.yarn(8, 4.0, 4096, attention_factor=0.5, beta_fast=9.0),
    ),
    "gpt-oss": (
        {**HEADS, "head_dim": 64, "rope_theta": 150000, V4: {**YARN, "truncate": False, "beta_slow": 2}},
        {},
        rope.yarn(64, 4.0, 4096, base=150000.0, truncate=False, beta_slow=2.0),
    ),
    "DeepSeek-V3": (
        {**HEADS, "qk_rope_head_dim": 64, "v_head_dim": 128, V4: DEEPSEEK},
        {},
        rope.yarn(64, 40.0, 4096, mscale=0.7, mscale_all_dim=1.0),
    ),
    "DeepSeek-V3, factor None": (
        {**HEADS, "head_dim": 64, "max_position_embeddings": 163840, V5: {**DEEPSEEK, "factor": None}},
        {},
        rope.yarn(64, 40.0, 4096, mscale=0.7, mscale_all_dim=1.0),
    ),
    "Phi-3": ({**PHI3, V4: LISTS}, {}, SHORTER),
    "Phi-3, short": ({**PHI3, V4: LISTS}, {"length": 4096}, SHORTER),
    "Phi-3, long": ({**PHI3, V4: LISTS}, {"length": 4097}, LONGER),
    "Phi-3, su": ({**PHI3, V4: {**LISTS, "rope_type": None, "type": "su"}}, {"length": 4097}, LONGER),
    "Phi-3, beside first": ({**PHI3, V5: {**LISTS, "original_max_position_embeddings": 5}}, {"length": 4096}, SHORTER),
    "Phi-4-mini": (
        {**PHI3, "partial_rotary_factor": 0.75, "hidden_size": 4096, V4: LISTS},
        {},
        rope.longrope(128, SHORT, LONG, 4096, factor=32.0, partial_rotary_factor=0.75),
    ),
    "longrope, attention_factor": ({**PHI3, V5: {**LISTS, "attention_factor": 1.5}}, {}, SHORTER._replace(amplitude=1.5)),
    "Phi-3.5-MoE": (MOE, {"dim": 96}, SHORTER._replace(amplitude=1.25)),
    "Phi-3.5-MoE, short": (MOE, {"dim": 96, "length": 4096}, SHORTER._replace(amplitude=1.25)),
    "Phi-3.5-MoE, long": ({**PHI3, V4: MOE}, {"length": 4097}, LONGER._replace(amplitude=1.5)),
    "nested": ({"head_dim": 256, V5: NESTED}, {"layer_type": "full_attention"}, rope.linear(256, 8.0, base=1e6)),
    "nested, other": ({"head_dim": 256, V5: NESTED}, {"layer_type": "sliding_attention"}, rope.default(256)),
    "nested, alone": (NESTED, {"dim": 8, "layer_type": "full_attention"}, rope.linear(8, 8.0, base=1e6)),
    "Gemma 4": ({"head_dim": 512, V5: PROPORTIONAL}, {}, rope.proportional(512, base=1e6, partial_rotary_factor=0.25)),
    "proportional, factor": ({"rope_type": "proportional", "factor": 2.0}, {"dim": 8}, rope.proportional(8, factor=2.0)),
    "NeoX": (
        {**HEADS, "hidden_size": 3072, "rotary_pct": 0.25, "rotary_emb_base": 5000},
        {},
        rope.default(96, base=5000.0, partial_rotary_factor=0.25),
    ),
    "NeoX, 5": ({**HEADS, V5: {"rope_type": "default", "partial_rotary_factor": 0.25}}, {}, rope.default(32)),
    "GPT-J": ({"n_embd": 4096, "n_head": 16, "rotary_dim": 64}, {}, rope.default(64)),
    "GPT-J, all": ({"n_embd": 4096, "n_head": 16, "rotary_dim": None}, {}, rope.default(256)),
    "Qwen2-VL": ({**HEADS, V4: {"type": "mrope", "mrope_section": [16, 24, 24]}}, {}, rope.default(128)),
    "both types": ({**HEADS, V4: {"type": "mrope", "rope_type": "default"}}, {}, rope.default(128)),
    "foreign keys": ({**HEADS, V4: {"type": "linear", "factor": 2.0, "mscale": "x"}}, {}, rope.linear(128, 2.0)),
    "an object": (SimpleNamespace(to_dict=lambda: {**HEADS, "rope_theta": 5e5}), {}, rope.default(128, base=5e5)),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_from_config(name):
    config, keywords, want = CONFIGS[name]
    before = repr(config)
    assert rope.from_config(config, **keywords) == want
    assert repr(config) == before
    assert bits([rope.from_config(config, **keywords)]) == bits([want])


# ---- arguments ---------------------------------------------------------------------------------------------------------

ONES = [1.0] * 4
HUGE = 2**53 + 1
# name: a call that is right
RIGHT = {
    "default": ((8,), {}),
    "linear": ((8, 2.0), {}),
    "ntk": ((8, 2.0), {}),
    "dynamic": ((8, 2.0, 2048), {}),
    "yarn": ((8, 2.0, 2048), {}),
    "longrope": ((8, ONES, ONES, 2048), {"factor": 2.0}),
    "llama3": ((8, 2.0, 2048), {}),
    "proportional": ((8,), {"factor": 1.0}),
    **{f"cache {layout}": ((2, SCHEDULES[0]), {"layout": layout}) for layout in LAYOUTS},
    "from_config": (({"head_dim": 8},), {}),
    "from_config longrope": (({"head_dim": 96, V4: MOE},), {"length": 5}),
}
LENGTH_ERRORS = [
    (0, "is 0; it must be at least 1"),
    (HUGE, f"is {HUGE}; it must be at most"),
    (8.0, "must be an integer, not fl"),
]
LIST_ERRORS = [
    (ONES[:3], "has 3 numbers.*must have 4"),
    ([*ONES, 1.0], "has 5 numbers.*must have 4"),
    ([1.0, 0.0, 1.0, 1.0], "positive"),
    ([1.0, 1.0, 1.0, -1.0], "positive"),
    ([1.0, math.nan, 1.0, 1.0], "nan"),
    ([ONES], r"shape \(1, 4\)"),
    (["1"] * 4, "real numbers"),
    (None, "real numbers"),
]


def alone(kind, **keys):
    return {"rope_type": kind, **keys}


# functions, the number or name of an argument, the values that are wrong there, each with what the error says
WRONG = [
    (
        list(RIGHT)[:8],
        0,
        [(0, "dim is 0; it must be at least 1"), (8.0, "dim must be an integer"), (True, "dim must be an int")],
    ),
    (
        list(RIGHT)[:8],
        "base",
        [(-1.0, "base is -1.0; it must be positive"), (math.inf, "base is inf"), ("1", "base must be a r")],
    ),
    (
        list(RIGHT)[:8],
        "partial_rotary_factor",
        [
            (0.0, "partial_rotary_factor is 0.0; it must be above 0"),
            (1.5, "is 1.5; it must be .* at most 1"),
            (None, "real num"),
        ],
    ),
    (["default", "yarn", "longrope"], "partial_rotary_factor", [(0.1, "partial_rotary_factor is 0.1 and dim 8; together")]),
    (
        ["linear", "ntk", "dynamic", "yarn", "llama3"],
        1,
        [
            (0.0, "factor is 0.0; it must be positive"),
            (-2, "factor is -2.0"),
            (math.nan, "factor is nan"),
            ("2", "factor must be a "),
        ],
    ),
    (["dynamic"], 2, [(value, f"max_position_embeddings {message}") for value, message in LENGTH_ERRORS]),
    (["yarn", "llama3"], 2, [(value, f"original_max_position_embeddings {message}") for value, message in LENGTH_ERRORS]),
    (["longrope"], 3, [(value, f"original_max_position_embeddings {message}") for value, message in LENGTH_ERRORS]),
    (["dynamic", "longrope"], "length", [(value, f"length {message}") for value, message in LENGTH_ERRORS]),
    (
        ["proportional", "longrope"],
        "factor",
        [(0.0, "factor is 0.0; it must be positive"), ("2", "factor must be a real number")],
    ),
    (["default"], "base", [(1e300, r"base=1e\+300\): the smallest frequency would be")]),
    (["ntk", "dynamic"], 0, [(2, "dim is 2, as far as it is rotated; it must be above 2")]),
    (["ntk"], 1, [(1e300, "factor"), (1e-300, "factor")]),  # their powers are no float64
    (["dynamic"], 1, [(1e308, "factor")]),
    (
        ["linear"],
        1,
        [(1e70, "factor is 1e\\+70; it must be positive"), (1e-310, "factor is 1e-310; it must be positive")],
    ),
    (["yarn"], "base", [(1.0, "base is 1.0; it must not be 1 here")]),
    (
        ["yarn"],
        "beta_fast",
        [(0.0, "beta_fast is 0.0; it must be positive"), (1e-320, "beta_fast"), ("1", "beta_fast must be a")],
    ),
    (["yarn"], "beta_slow", [(-1, "beta_slow is -1.0; it must be positive"), (None, "beta_slow must be a real number")]),
    (["yarn"], "truncate", [(1, "truncate must be a bool, not int 1")]),
    (
        ["yarn"],
        "attention_factor",
        [(0.0, "attention_factor is 0.0; it must not be 0"), ("1", "attention_factor must be a real number")],
    ),
    (["longrope"], "attention_factor", [(math.nan, "attention_factor is nan; it must be finite")]),
    (["longrope"], "factor", [(None, "factor and attention_factor are both None; give one")]),
    (["longrope"], 1, [(value, f"short_factor.*{message}") for value, message in LIST_ERRORS]),
    (["longrope"], 2, [(value, f"long_factor.*{message}") for value, message in LIST_ERRORS]),
    (["longrope"], 3, [(1, "original_max_position_embeddings is 1; it must be above 1")]),
    (
        ["llama3"],
        "low_freq_factor",
        [(4.0, "low_freq_factor and high_freq_factor are both 4.0"), (0.0, "low_freq_factor is 0.0")],
    ),
    (
        ["llama3"],
        "high_freq_factor",
        [(None, "high_freq_factor must be a real number"), (-1.0, "high_freq_factor is -1.0; it mu")],
    ),
    (list(RIGHT)[8:14], 0, [(-1, "length is -1; it must be at least 0"), (2.0, "length must be an integer, not float 2.0")]),
    (
        list(RIGHT)[8:14],
        1,
        [(8, "schedule must be a Schedule"), (tuple(SCHEDULES[0]), "schedule must be a Schedule.*not tuple")],
    ),
    (list(RIGHT)[8:14], 1, [(SCHEDULES[0]._replace(amplitude=1e39), r"amplitude is 1e\+39; it overflows float32")]),
    (list(RIGHT)[8:14], 0, [(2**61, "bytes, which cannot be allocated")]),
    (
        list(RIGHT)[8:14],
        "start",
        [
            (0.5, "start must be an integer, not float"),
            (2**63 - 1, "start is .* and length 2; the last"),
            (-(2**63) - 1, "int64"),
        ],
    ),
    (
        list(RIGHT)[8:14],
        "dtype",
        [("int32", "dtype is 'int32'; it must be float32"), ("complex64", "dtype is 'complex64'; it")],
    ),
    (
        list(RIGHT)[8:14],
        "threads",
        [(0, "threads is 0; it must be at least 1"), (True, "threads must be an integer, not bool")],
    ),
    (
        ["cache row"],
        "layout",
        [("rows", "layout is 'rows'; it must be one of 'split', 'halves', 'p"), (None, "layout must be a str")],
    ),
    (
        ["from_config longrope"],
        "length",
        [("9", "length must be an integer, not str '9'"), (0, "length is 0; it must be at le")],
    ),
    (["from_config"], "dim", [("8", "dim must be an integer, not str '8'"), (0, "dim is 0; it must be at least 1")]),
    (
        ["from_config"],
        0,
        [
            (5, r"config must be a mapping or have to_dict\(\), not int"),
            ({}, "config has no hidden_size nor n_embd"),
            ({"hidden_size": 64}, "config has no num_attention_heads nor n_head"),
            ({"hidden_size": 64, "num_attention_heads": 0}, "num_attention_heads"),
            ({"hidden_size": "64", "num_attention_heads": 2}, "hidden_size"),
            ({"head_dim": 8, V4: "linear"}, "rope_scaling"),
            (
                {"head_dim": 8, V5: NESTED},
                "layer_type is None; config has a schedule for each of full_attention, sliding_attention",
            ),
            ({"head_dim": 8, V4: alone("ntk")}, "rope_type is 'ntk'; it must be one of default, mrope, linear, dynamic"),
            ({"head_dim": 8, V4: alone("linear")}, "config has no factor"),
            ({"head_dim": 8, V4: alone("linear", factor="2")}, "factor must be a real number"),
            ({"head_dim": 8, V4: alone("dynamic", factor=2.0)}, "config has no max_position_embeddings"),
            ({"head_dim": 8, V4: alone("yarn", factor=2.0)}, "no original_max_position_embeddings nor max_position_embeddings"),
            ({"head_dim": 8, V4: {**YARN, "factor": None}}, "config has no max_position_embeddings"),
            (
                {"head_dim": 8, V4: alone("yarn", original_max_position_embeddings=0), "max_position_embeddings": 9},
                "original_max_position_embeddings is 0; it must be at least 1",
            ),
            ({"head_dim": 96, V4: {**MOE, "long_factor": None}}, "config has no long_factor"),
            ({"head_dim": 8, V4: {**LLAMA3, "low_freq_factor": None}, **PHI3}, "config has no low_freq_factor"),
        ],
    ),
]
ERRORS = [(name, argument, value, message) for names, argument, cases in WRONG for name in names for value, message in cases]
#: What is said of a wrong type.
OF_TYPE = "must be an? (int|real|r|bool|str|Sch|a$|$)|must be a$|real num|give one|mapping|dtype is|^hidden_size|^rope_scaling"


@pytest.mark.parametrize(("name", "argument", "value", "message"), ERRORS)
def test_errors(name, argument, value, message):
    arguments, keywords = RIGHT[name]
    function = getattr(rope, name.split()[0])
    function(*arguments, **keywords)
    if isinstance(argument, int):
        arguments = (*arguments[:argument], value, *arguments[argument + 1 :])
    else:
        keywords = {**keywords, argument: value}
    error = MemoryError if "bytes" in message else TypeError if re.search(OF_TYPE, message) else ValueError
    with pytest.raises(error, match=message):
        function(*arguments, **keywords)


def test_other_errors():
    for dtype in ("float16", "bfloat16"):
        with pytest.raises(TypeError, match=f"dtype is '{dtype}'; with layout='complex' it must be float32 or float64"):
            rope.cache(3, SCHEDULES[0], layout="complex", dtype=dtype)
    with pytest.raises(ValueError, match="layout is 'halves'"):
        SCHEDULES[0].encoding("halves")
    for mscales, error, message in [
        (("1", 1.0), TypeError, "mscale must be a real number"),
        ((1.0, math.inf), ValueError, "mscale_all_dim is inf; it must be finite"),
        ((1.0, -10.0 / math.log(2.0)), ValueError, "amplitude|mscale_all_dim"),  # a quotient by 0
    ]:
        with pytest.raises(error, match=message):
            rope.yarn(8, 2.0, 2048, mscale=mscales[0], mscale_all_dim=mscales[1])
    with pytest.raises(ValueError, match="layer_type is 'x'; config has a schedule for each of"):
        rope.from_config({"head_dim": 8, V5: NESTED}, layer_type="x")


def test_more_turns_than_float64_has():
    """In a process of its own: the logarithm of 0 once went on for ever."""
    code = "from posenc import rope; rope.yarn(8, 2.0, 2048, beta_fast=1e308)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "ValueError: beta_fast is 1e+308" in ended.stderr
