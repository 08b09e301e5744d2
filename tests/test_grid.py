"""Grids: each convention against exact witnesses and its formula in MPFR; how they are written; arguments."""

import functools
import itertools
import math
import os
from fractions import Fraction

import numpy as np
import oracle
import pytest
from conftest import DTYPES
from test_same_bits import CONTROLS

import posenc
from posenc import GRIDS, _arrays, _grid, _rows, _threads, frequencies
from posenc._load import core

gmpy2 = pytest.importorskip("gmpy2", reason="grids are compared with MPFR")

# ---- the formulas, slowly --------------------------------------------------------------------------------------------


def by_paper(k, n, o):
    return oracle.power(o["base"], -2 * k, 2 * n)


def by_shift(shift, k, n, o):
    return oracle.power(o["base"], -k, max(n - shift, 1))


def by_timescales(k, n, o):
    """(1 / min) (min / max)**(k / (n - 1))."""
    steps = max(n - 1, 1)
    with gmpy2.context(oracle.WIDE):
        return oracle.power(o["min_timescale"], k - steps, steps) * oracle.power(o["max_timescale"], -k, steps)


BASE, QUARTER = {"base": 10000}, lambda d, axes, axis: d // 4
SCALED = {"first": 0, "scale": 1}
NORMALIZE = {"normalize": False, "scale": None, "eps": 1e-6, "offset": 0}
#: Pairs of an axis, by dim, the number of axes, the axis; the k-th frequency of n; axes in the order of columns; how sines and
#: cosines stand in them; options.
FORMULAS = {
    "detr": (QUARTER, by_paper, (0, 1), "pairs", {"first": 1, **BASE, **NORMALIZE}),
    "mae": (
        *(QUARTER, functools.partial(by_shift, 0), (1, 0), "halves"),
        {"first": 0, **BASE, "base_size": None, "interpolation_scale": 1},
    ),
    "simplevit": (QUARTER, functools.partial(by_shift, 1), (1, 0), "halves", {**SCALED, **BASE}),
    "timm": (
        *(QUARTER, functools.partial(by_shift, 0), (0, 1), "apart"),
        {**SCALED, **BASE, "interleave_sin_cos": False},
    ),
    "tensor2tensor": (
        *(lambda d, axes, axis: d // (2 * axes), by_timescales, (0, 1, 2, 3), "halves"),
        {**SCALED, "min_timescale": 1, "max_timescale": 10000},
    ),
    "multidim": (lambda d, axes, axis: math.ceil(d / axes / 2), by_paper, (0, 1, 2), "pairs", {**SCALED, **BASE}),
    "video": (
        *(lambda d, axes, axis: d * (3 if axis else 2) // 16, functools.partial(by_shift, 0), (0, 2, 1), "halves"),
        {"first": 0, **BASE, "spatial_interpolation_scale": 1, "temporal_interpolation_scale": 1},
    ),
}


def cells(name, dim, axes, order=None, interleave=False):
    """Axis, k, n, and whether it is the cosine, of each column but those of zeros."""
    pairs, _, usual, layout, _ = FORMULAS[name]
    order = [axis for axis in usual if axis < axes] if order is None else order
    found = [(axis, k, pairs(dim, axes, axis), c) for axis in order for k in range(pairs(dim, axes, axis)) for c in (0, 1)]
    if layout != "pairs":  # sorted is stable
        found.sort(key=lambda cell: (order.index(cell[0]), cell[3]) if layout == "halves" or interleave else cell[3])
    return found[:dim]


def coordinates(name, shape, axis, o, mask):
    """Along an axis, or of each point of a mask: integers, or float64 by the stated operations."""
    size, first = shape[axis], o["first"]
    if mask is None:
        counts = np.array([np.float64(i) + first if isinstance(first, float) else first + i for i in range(size)], object)
        counts = counts.reshape([size if i == axis else 1 for i in range(len(shape))])
    else:
        counts = np.cumsum(mask.astype(object), axis=axis) + (first - 1)
    floats = counts.astype(np.float64)
    if name == "detr" and o["normalize"]:
        scale = 2 * math.pi if o["scale"] is None else o["scale"]
        return (floats + o["offset"]) / (floats.take([-1] * min(size, 1), axis) + o["eps"]) * scale
    if name == "mae" and o["base_size"] is not None:
        return floats / (size / o["base_size"]) / o["interpolation_scale"]
    divisor = {
        "mae": "interpolation_scale",
        "video": "spatial_interpolation_scale" if axis else "temporal_interpolation_scale",
    }.get(name)
    if divisor:
        return counts if o[divisor] == 1 else floats / o[divisor]
    return counts if name == "detr" or o["scale"] == 1 else floats * o["scale"]


def entry(point, frequency, cosine, dtype):
    return 0.0 if point == 0 and not cosine else oracle.rounded(oracle.sin_cos(Fraction(point), frequency)[cosine], dtype)


def reference(name, shape, dim, dtype, *, order=None, mask=None, **given):
    shape, axes = (shape, len(shape)) if mask is None else (mask.shape, 2)
    each = [
        {
            key: value[axis] if isinstance(value, tuple | list) else value
            for key, value in {**FORMULAS[name][4], **given}.items()
        }
        for axis in range(axes)
    ]
    if isinstance(order, str):
        order = [GRIDS[name].axes[axes].index(letter) for letter in order]
    points = [coordinates(name, shape, len(shape) - axes + axis, each[axis], mask) for axis in range(axes)]
    out = np.zeros((*shape, dim), dtype)
    for column, (axis, k, n, cosine) in enumerate(cells(name, dim, axes, order, given.get("interleave_sin_cos"))):
        frequency = FORMULAS[name][1](k, n, each[axis])
        entries = [entry(point, frequency, cosine, dtype) for point in points[axis].ravel()]
        out[..., column] = np.array(entries, dtype).reshape(points[axis].shape)
    return out


def check(got, want, *about):
    """The same bits; else the first entries that differ are named."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    points, dim = list(np.ndindex(want.shape[:-1])), want.shape[-1]
    wrong = oracle.mismatches(got.reshape(-1, dim), want.reshape(-1, dim), points, range(dim), about)
    assert not wrong, "\n".join(wrong)


# ---- conventions -----------------------------------------------------------------------------------------------------

#: The nearest float64 to each entry at a point, computed with MPFR.
WITNESSES = [
    (
        *("detr", (3, 4), (1, 2)),
        "0.90929742682568171 -0.41614683654714241 0.01999866669333308 0.99980000666657776 0.14112000805986721 "
        "-0.98999249660044542 0.02999550020249566 0.99955003374898754",
    ),
    (
        *("mae", (3, 4), (1, 2)),
        "0.90929742682568171 0.01999866669333308 -0.41614683654714241 0.99980000666657776 0.8414709848078965 "
        "0.0099998333341666645 0.54030230586813977 0.99995000041666526",
    ),
    (
        *("simplevit", (3, 4), (1, 2)),
        "0.90929742682568171 0.00019999999866666666 -0.41614683654714241 0.99999998000000012 0.8414709848078965 "
        "9.999999983333333e-05 0.54030230586813977 0.99999999500000003",
    ),
    (
        *("timm", (3, 4), (1, 2)),
        "0.8414709848078965 0.0099998333341666645 0.90929742682568171 0.01999866669333308 0.54030230586813977 "
        "0.99995000041666526 -0.41614683654714241 0.99980000666657776",
    ),
    (
        *("tensor2tensor", (3, 4), (1, 2)),
        "0.8414709848078965 9.999999983333333e-05 0.54030230586813977 0.99999999500000003 0.90929742682568171 "
        "0.00019999999866666666 -0.41614683654714241 0.99999998000000012 0",
    ),
    (
        *("multidim", (2, 3, 4), (1, 2, 3)),
        "0.8414709848078965 0.54030230586813977 0.0099998333341666645 0.99995000041666526 0.90929742682568171 "
        "-0.41614683654714241 0.01999866669333308",
    ),
    (
        *("video", (2, 3, 4), (1, 2, 3)),
        "0.8414709848078965 0.0099998333341666645 0.54030230586813977 0.99995000041666526 0.14112000805986721 "
        "0.13879810108005053 0.006463259070189643 -0.98999249660044542 0.990320699135675 0.99997911292296082 "
        "0.90929742682568171 0.092698500778727225 0.0043088560467428117 -0.41614683654714241 0.99569422412373987 "
        "0.99999071683669571",
    ),
]


def test_every_convention_has_a_witness_and_a_formula_here():
    assert {name for name, *_ in WITNESSES} == set(FORMULAS) == set(GRIDS)
    for name, (*_, options) in FORMULAS.items():
        assert set(options) == set(GRIDS[name].extras) - {"mask"}
        assert GRIDS[name].source in repr(GRIDS[name])
        assert GRIDS[name].users in repr(GRIDS[name])


@pytest.mark.parametrize(("name", "shape", "point", "row"), WITNESSES)
def test_witnesses(name, shape, point, row):
    want = [float(value) for value in row.split()]
    assert posenc.grid(shape, len(want), convention=name, dtype="float64")[point].tolist() == want
    assert reference(name, shape, len(want), "float64")[point].tolist() == want


def test_height_and_width():
    """Token 1 of MAE's grid is one to the right, and another axis comes first in each convention, as a 3x4 grid shows."""
    assert posenc.grid((2, 2), 4, convention="mae", dtype="float64")[0, 1].tolist() == [math.sin(1), math.cos(1), 0.0, 1.0]
    for name, columns, options in (
        *(("detr", "yx", {}), ("mae", "wh", {}), ("simplevit", "xy", {})),
        *(("timm", "hw", {"interleave_sin_cos": True}), ("multidim", "xy", {})),
    ):
        got = posenc.grid((3, 4), 8, convention=name, **options)
        for letter, part in zip(columns, (got[..., :4], got[..., 4:]), strict=True):
            axis = GRIDS[name].axes[2].index(letter)
            along = part.swapaxes(0, axis)
            assert (along == along[:, :1]).all()
            assert len(np.unique(along[:, 0], axis=0)) == (3, 4)[axis]
        assert (got == posenc.grid((3, 4), 8, convention=name, order=columns, **options)).all()


HOLES = np.random.default_rng(1).random((2, 1, 4, 5)) < 0.7
HOLES[0, 0, :, 2] = HOLES[1, 0, 3] = False
CASES = [
    *[("detr", (3, 4), 12, options) for options in ({"base": 20}, {"base": (100.0, 7)}, {"order": "xy"}, {"order": (1, 0)})],
    *[("detr", (3, 4), 12, {"first": first}) for first in (0, -2, (-2, 10**6), 0.25, (0.25, 2**62), -(2**63))],
    ("detr", (3, 4), 12, {"normalize": True}),
    ("detr", (3, 4), 12, {"normalize": True, "first": (-7, 2.5), "eps": 0.1, "order": "xy"}),
    ("detr", (3, 4), 12, {"normalize": True, "offset": -0.5, "eps": (1e-3, 0), "scale": (None, 100.0), "base": (50.0, 7)}),
    *[("detr", None, 12, {"mask": mask}) for mask in (HOLES, HOLES[1], HOLES[1, 0], HOLES[..., :0, :], HOLES[:0])],
    ("detr", None, 12, {"mask": HOLES, "first": (0, -5), "order": "xy", "base": (50.0, 7)}),
    ("detr", None, 12, {"mask": HOLES, "normalize": True, "first": 3}),
    ("detr", None, 12, {"mask": HOLES, "normalize": True, "offset": (-0.5, 0.25), "eps": 1e-3, "scale": (4.0, None)}),
    *[("mae", (3, 4), 12, options) for options in ({"base": 20}, {"base": [20.5, 7]}, {"order": "hw"}, {"order": (0, 1)})],
    *[("mae", (3, 4), 12, {"first": first}) for first in (5, -2, (-2, 10**6), 0.25, (0.25, 2**62), -(2**63))],
    *[("mae", (3, 4), 12, {"base_size": base_size}) for base_size in (16, (None, 5), (7.5, 3))],
    ("mae", (3, 7), 12, {"base_size": (11, 0.3), "first": 5}),
    ("mae", (3, 4), 12, {"interpolation_scale": (0.7, 2)}),
    ("mae", (3, 4), 12, {"interpolation_scale": 3, "base_size": 16, "first": -1, "base": (50.0, 7), "order": "hw"}),
    *[("simplevit", (3, 4), 12, options) for options in ({"scale": 0.3}, {"scale": (1, -0.25)}, {"order": "yx"})],
    ("simplevit", (3, 4), 4, {"first": (2**62, 0.5), "base": (50.0, 7)}),
    *[("timm", (3, 4), 12, {"interleave_sin_cos": True, "order": order}) for order in ("hw", "wh")],
    ("timm", (3, 4), 12, {"scale": (0.3, 1), "order": "wh", "base": (50.0, 7), "first": (1, 2**62)}),
    *[("tensor2tensor", (2, 3, 1, 4)[-n:], dim, {}) for n in (1, 2, 3, 4) for dim in range(2 * n, 4 * n + 3)],
    ("tensor2tensor", (3, 4), 13, {"min_timescale": (2.0, 0.3), "max_timescale": 500, "order": (1, 0)}),
    ("tensor2tensor", (3, 4), 5, {"min_timescale": 3, "max_timescale": (2, 1e6), "scale": (1.5, 0), "first": -3}),
    *[("multidim", (2, 4, 3)[-n:], dim, {}) for n in (1, 2, 3) for dim in range(1, 4 * n + 6)],
    *[("multidim", (2, 4, 3), dim, {"order": "zxy", "base": (9, 50.0, 7), "scale": 0.5}) for dim in (5, 7, 12)],
    *[("video", (2, 3, 4), 32, {"order": order}) for order in ("thw", (2, 0, 1))],
    ("video", (2, 3, 4), 16, {"spatial_interpolation_scale": 1.875, "temporal_interpolation_scale": 0.7}),
    ("video", (2, 3, 4), 16, {"spatial_interpolation_scale": 3, "first": (5, 0.5, -1), "base": (9, 50.0, 7)}),
]


@pytest.mark.parametrize(("name", "shape", "dim", "options"), CASES, ids=range(len(CASES)))
def test_options(name, shape, dim, options, dtype, kernel):
    got = posenc.grid(shape, dim, convention=name, dtype=dtype, **options)
    check(got, reference(name, shape, dim, dtype, **options), name, shape, options)


def test_random():
    hypothesis = pytest.importorskip("hypothesis", reason="the grids are chosen by hypothesis")
    st = hypothesis.strategies
    numbers = {
        "first": [*range(-3, 4), 2**40, 0.5, -1e-3, 1e10],
        "scale": [1, 0.3, -2.0, 0],
        "eps": [1e-6, 0.1],
        "offset": [-0.5, 0.25],
        "interleave_sin_cos": [True],
        "normalize": [True],
    }
    shared = ("normalize", "interleave_sin_cos", "spatial_interpolation_scale", "temporal_interpolation_scale")

    @hypothesis.settings(
        max_examples=max(1, int(os.environ.get("POSENC_EXAMPLES", "5500")) // 10),
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def run(data):
        name, dtype = data.draw(st.sampled_from(list(FORMULAS))), data.draw(st.sampled_from(DTYPES))
        axes = data.draw(st.sampled_from(list(GRIDS[name].axes or range(1, 5))))
        shape = tuple(data.draw(st.lists(st.integers(0, 5 if axes < 4 else 2), min_size=axes, max_size=axes)))
        least = 2 * axes if name == "tensor2tensor" else GRIDS[name].multiple
        dim = data.draw(st.integers(least, least + 30)) // GRIDS[name].multiple * GRIDS[name].multiple
        options = {}
        for option in FORMULAS[name][4]:
            if data.draw(st.integers(0, 2)) == 0:
                value = st.sampled_from(numbers.get(option, [10000.0, 100, 0.5, 1.0, 7.25]))
                each = st.tuples(*[value] * axes)
                options[option] = data.draw(value if option in shared else value | each)
        if name == "detr" and not options.get("normalize"):
            options = {key: value for key, value in options.items() if key not in NORMALIZE}
        order = data.draw(st.none() | st.permutations(range(axes)))
        if order is not None:
            names = GRIDS[name].axes and GRIDS[name].axes[axes]
            options["order"] = "".join(names[i] for i in order) if names and data.draw(st.booleans()) else order
        got = posenc.grid(shape, dim, convention=name, dtype=dtype, **options)
        check(got, reference(name, shape, dim, dtype, **options), name, shape, options)

    run()


# ---- how they are written --------------------------------------------------------------------------------------------

SIZES = {"tensor2tensor": ((3, 40, 50), 23), "multidim": ((3, 40, 50), 23), "video": ((3, 40, 50), 32)}


def broadcasted(name, shape, dim, dtype):
    """The grid by the sines and cosines of each axis."""
    out, shift = np.zeros((*shape, dim), dtype), 1 if name in ("simplevit", "tensor2tensor") else 0
    parts = {}
    for column, (axis, k, n, cosine) in enumerate(cells(name, dim, len(shape))):
        if axis not in parts:
            points = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]) + (name == "detr")
            parts[axis] = posenc.sincos(points, 2 * n, dtype=dtype, frequencies=frequencies.shifted(2 * n, shift))
        out[..., column] = parts[axis][cosine][..., k]
    return out


@pytest.mark.parametrize("name", FORMULAS)
def test_large_grids(name, dtype, kernel):
    for shape, dim in (((2, 40, 300), 64) if name in SIZES else ((40, 300), 64), SIZES.get(name, ((700, 3), 24))):
        check(posenc.grid(shape, dim, convention=name, dtype=dtype), broadcasted(name, shape, dim, dtype), name)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("slices", [False, True])
def test_threads_streams_and_slices(threads, stream, slices, dtype, kernel, monkeypatch):
    wanted = {name: broadcasted(name, *SIZES.get(name, ((30, 50), 24)), dtype) for name in FORMULAS}
    masked = posenc.grid(None, 12, convention="detr", mask=HOLES, dtype=dtype)
    monkeypatch.setattr(_threads, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(_arrays, "STREAM_FROM", 0 if stream else math.inf)
    for module in (_grid, _rows) if slices else ():
        monkeypatch.setattr(module, "SLICE_BYTES", 1)
    for name, want in wanted.items():
        *shape, dim = want.shape
        for out in (None, np.empty_like(want)):  # new arrays are never streamed
            check(posenc.grid(shape, dim, convention=name, dtype=dtype, threads=threads, out=out), want, name)
    out = np.empty_like(masked)
    check(posenc.grid(None, 12, convention="detr", mask=HOLES, threads=threads, out=out), masked)


def test_copies_are_streamed_into_old_memory(monkeypatch):
    monkeypatch.setattr(_arrays, "STREAM_FROM", 1000)
    seen = []
    monkeypatch.setattr(core, "spread", lambda *arguments: seen.append(arguments[-1]))
    for out in (None, np.empty((3, 40, 8), np.float32), np.empty((3, 4, 8), np.float32)):
        posenc.grid((3, 40) if out is None else out.shape[:2], 8, convention="mae", out=out)
    assert seen == [False, True, False]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("stream", [False, True])
def test_outputs_in_any_memory(name, stream, dtype, monkeypatch):
    monkeypatch.setattr(_arrays, "STREAM_FROM", 0 if stream else math.inf)
    shape, dim = ((2, 3, 5), 16) if name in SIZES else ((3, 5), 16)
    want, axes = broadcasted(name, shape, dim, dtype), len(shape)
    for steps in itertools.product((1, 2, -1), repeat=axes):
        for order in itertools.permutations(range(axes)):
            whole = np.full([abs(steps[i]) * shape[i] for i in order] + [dim + 5], 7, dtype)
            inside = (*(slice(None, None, steps[i]) for i in order), slice(2, 2 + dim))
            view = whole[inside].transpose(*np.argsort(order), axes)
            assert posenc.grid(shape, dim, convention=name, out=view) is view
            check(view, want, name, steps, order)
            whole[inside] = 7
            assert (whole == 7).all()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_masks_with_outputs_in_any_memory(order, dtype):
    want = reference("detr", None, 8, dtype, mask=HOLES, normalize=True)
    view = np.empty([2 * HOLES.shape[i] for i in order] + [11], dtype)[::2, 1::2, ::2, ::2, :8].transpose(*np.argsort(order), 4)
    mask = np.asfortranarray(HOLES)
    assert posenc.grid(HOLES.shape, 8, convention="detr", mask=mask, normalize=True, out=view) is view
    check(view, want, order)


ENVIRONMENTS = {
    "counted": ("detr", (3, 4), {}),
    "masked": ("detr", None, {"mask": HOLES, "normalize": True, "offset": -0.5}),
    "normalized": ("detr", (3, 4), {"normalize": True, "scale": (None, 1.1), "first": 0.1}),
    "interpolated": ("mae", (3, 7), {"base_size": 0.3, "interpolation_scale": (0.7, 1.9), "first": 2**53 // 7}),
    "scaled": ("timm", (3, 4), {"scale": 0.3, "first": 0.7}),
    "timescales": ("tensor2tensor", (3, 4), {"min_timescale": 0.3}),
    "subnormal": ("timm", (3, 4), {"scale": 1e-310}),
    "subnormal first": ("simplevit", (1, 4), {"first": (1e-310, 1)}),
}


@pytest.mark.parametrize("setting", CONTROLS)
@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_callers_floating_point_environment(setting, case, dtype, driver):
    """The bits do not depend on it, coordinates included, and it is as it was after the call."""
    name, shape, options = ENVIRONMENTS[case]
    want = reference(name, shape, 16, dtype, **options)
    out = np.empty_like(want)
    posenc.clear_cache()
    before = driver.control(CONTROLS[setting])
    try:
        posenc.grid(shape, 16, convention=name, out=out, **options)
    finally:
        during = driver.control(before)
    check(out, want, setting)
    assert during & ~0x3F == CONTROLS[setting]  # but the exception flags


# ---- arguments -------------------------------------------------------------------------------------------------------

MASK = np.ones((3, 4), bool)
DETR, SEEN = {"convention": "detr"}, {"convention": "detr", "shape": None, "mask": MASK}
T2T, VIDEO = {"convention": "tensor2tensor"}, {"convention": "video", "shape": (1, 3, 4), "dim": 16, "out": None}
TIMM, MULTIDIM = {"convention": "timm"}, {"convention": "multidim"}
NORMAL = {**DETR, "normalize": True}
OUT = np.zeros((3, 4, 8), np.float32)
ERRORS = [
    *[({"shape": shape}, TypeError, "shape must be a sequence of integers, not") for shape in ("34", b"34", 12, None)],
    ({"shape": np.array(3)}, TypeError, "shape must be a sequence of integers, not ndarray"),
    ({"shape": (3.0, 4)}, TypeError, r"shape\[0\] must be an integer, not float 3\.0"),
    ({"shape": (3, True)}, TypeError, r"shape\[1\] must be an integer, not bool True"),
    ({"shape": np.ma.masked_array([3, 4], [False, True])}, TypeError, r"shape\[1\] must be an integer, not Masked"),
    ({"shape": (-1, 4)}, ValueError, r"shape\[0\] is -1; it must be at least 0"),
    ({"shape": (2**63, 4)}, ValueError, r"shape\[0\] is 9223372036854775808; it must be an int64"),
    *[({"shape": shape}, ValueError, r"shape is \(.*\); for 'mae' it must have 2 axes") for shape in ((), (3,), (3, 4, 5))],
    ({**MULTIDIM, "shape": (1, 2, 3, 4)}, ValueError, r"shape is \(1, 2, 3, 4\); for 'multidim' it must have 1 or 2 or 3 axes"),
    ({**VIDEO, "shape": (3, 4)}, ValueError, r"shape is \(3, 4\); for 'video' it must have 3 axes"),
    ({**T2T, "shape": ()}, ValueError, "shape has 0 axes; it must have 1 to 63"),
    ({**T2T, "shape": (1,) * 64, "dim": 128}, ValueError, "shape has 64 axes; it must have 1 to 63"),
    *[({"dim": dim}, TypeError, "dim must be an integer, not") for dim in (8.0, True, "8", None)],
    *[({"dim": dim}, ValueError, f"dim is {dim}; it must be at least 1") for dim in (0, -4)],
    *[({"dim": dim}, ValueError, f"dim is {dim}; for 'mae' it must be a multiple of 4") for dim in (2, 6, 9)],
    ({**VIDEO, "dim": 24}, ValueError, "dim is 24; for 'video' it must be a multiple of 16"),
    ({**T2T, "dim": 3}, ValueError, "dim is 3 and shape has 2 axes; for 'tensor2tensor' it must be at least twice as many"),
    ({"convention": "vit"}, ValueError, "convention is 'vit'; it must be one of 'detr', 'mae', "),
    *[({"convention": name}, TypeError, "convention must be a str, one of 'detr', 'mae', ") for name in (None, 3, [])],
    ({"temperature": 3}, TypeError, "temperature is no extra of 'mae'; it has first, base, base_size, interpolation_scale"),
    *[({name: 1}, TypeError, f"{name} is no extra of 'mae'") for name in ("scale", "normalize", "mask", "min_timescale")],
    *[
        ({"base": base}, TypeError, "base must be a real number, not")
        for base in ("10", None, True, (3.0, "4"), np.ones((2, 2)))
    ],
    ({"base": np.ma.masked_array([1.0, 2.0], [False, True])}, TypeError, "base must be a real number, not Masked"),
    *[({"base": base}, ValueError, r"base is (0|-1)\.0; it must be positive") for base in (0, -1.0, (3, -1))],
    ({"base": math.nan}, ValueError, "base is nan; it must be finite"),
    *[({"base": base}, ValueError, "base is .*; it must be one number, or 2, one for each") for base in ((), [1.0], (1, 2, 3))],
    ({"base": 1e300}, ValueError, "base=1e\\+300.*: the smallest frequency would be"),
    ({"first": "0"}, TypeError, "first must be a real number, not str"),
    ({"first": True}, TypeError, "first must be an integer, not bool"),
    *[({"first": first}, ValueError, f"first is {first}; it must be") for first in (2**63, -(2**63) - 1, math.inf)],
    ({"first": 2**63 - 3}, ValueError, f"first is {2**63 - 3}, and the axis has 4; its last coordinate must be an int64"),
    ({"first": (0.5, 2.0**53)}, ValueError, r"coordinates of axis 1\[2\] is 9007199254740994\.0; .* at most 2\*\*53"),
    ({"first": 2**62, "base": 1e-3}, ValueError, "the farthest position is 46116860184273879.. from 0"),
    *[({name: 0}, ValueError, rf"{name} is 0\.0; it must be positive") for name in ("base_size", "interpolation_scale")],
    ({"base_size": (None, -3)}, ValueError, r"base_size is -3\.0; it must be positive"),
    ({"base_size": 1e300, "interpolation_scale": 1e-300}, ValueError, r"coordinates of axis 1\[1\] is inf; it must be finite"),
    ({**TIMM, "scale": math.nan}, ValueError, "scale is nan; it must be finite"),
    ({**TIMM, "scale": None}, TypeError, "scale must be a real number"),
    ({**TIMM, "scale": 2.0**53}, ValueError, r"coordinates of axis 0\[2\] is 1\.8\d*e\+16; it must be finite"),
    *[
        ({**TIMM, "interleave_sin_cos": flag}, TypeError, "interleave_sin_cos must be a bool, not")
        for flag in (1, (True, False))
    ],
    *[
        ({"order": order}, ValueError, r"order is .*; for 'mae' it must be 'hw' or \(0, 1\), in any order")
        for order in ("", "h", "hh", "xy", "HW", (0, 2), (-1, 0), (0,), ())
    ],
    *[({"order": order}, TypeError, "order is .*; for 'mae' it must be 'hw' or") for order in (3, (0.0, 1.0), ["h", "w"])],
    ({**T2T, "order": "hw"}, ValueError, r"order is 'hw'; for 'tensor2tensor' it must be \(0, 1\), in any order"),
    *[
        (
            {**SEEN, "mask": mask},
            TypeError,
            "mask (has dtype .*; it must be booleans, True where the image|is a masked array)",
        )
        for mask in (MASK.astype(int), "x", np.ma.masked_array(MASK), MASK.astype(object))
    ],
    ({**SEEN, "mask": MASK[0]}, ValueError, r"mask has shape \(4,\); it must be \(\.\.\., height, width\)"),
    ({**SEEN, "mask": [[True], [True, False]]}, ValueError, "mask"),
    *[({**SEEN, "shape": shape}, ValueError, r"shape is .* and mask has shape \(3, 4\)") for shape in ((4, 3), (1, 3, 4))],
    ({**SEEN, "shape": "34"}, TypeError, "shape must be a sequence of integers"),
    ({**SEEN, "first": 0.5}, TypeError, "first must be an integer, not float"),
    *[({**SEEN, "first": first}, ValueError, "first is") for first in (2**63 - 1, -(2**63))],
    ({**DETR, "normalize": 1}, TypeError, "normalize must be a bool"),
    *[
        ({**DETR, name: 2.0}, ValueError, r"scale, eps and offset are \(.*2\.0.*\), and normalize False")
        for name in ("scale", "eps", "offset")
    ],
    ({**NORMAL, "eps": "a"}, TypeError, "eps must be a real number"),
    ({**NORMAL, "eps": -3.0}, ValueError, r"coordinates of axis 0\[0\] is inf; it must be finite"),
    (
        {**NORMAL, "shape": None, "mask": ~MASK, "eps": 0.0},
        ValueError,
        r"coordinates of axis 0\[0, 0\] is nan; it must be finite",
    ),
    ({**VIDEO, "spatial_interpolation_scale": (1, 2, 3)}, TypeError, "spatial_interpolation_scale must be a real number"),
    ({**VIDEO, "temporal_interpolation_scale": 0}, ValueError, r"temporal_interpolation_scale is 0\.0; it must be positive"),
    *[
        ({**T2T, name: -1.0}, ValueError, rf"{name} is -1\.0; it must be positive")
        for name in ("min_timescale", "max_timescale")
    ],
    ({"dtype": "int32"}, TypeError, "dtype is 'int32'; it must be float32, float64"),
    ({"dtype": "float64"}, TypeError, "dtype is float64 and out has dtype float32; they must agree"),
    ({"threads": 0}, ValueError, "threads is 0"),
    ({"threads": True}, TypeError, "threads must be an integer"),
    ({"out": OUT.tolist()}, TypeError, "out must be an ndarray, or floats with a buffer or __dlpack__, not list"),
    *[
        ({"out": out}, TypeError, "out has dtype .*; it must be float32, float64")
        for out in (OUT.astype(int), OUT.astype(">f4"))
    ],
    *[({"out": OUT.reshape(shape)}, ValueError, r"out has shape .*; it must be \(3, 4, 8\)") for shape in ((4, 3, 8), (12, 8))],
    ({"out": np.broadcast_to(OUT[:1], OUT.shape)}, ValueError, "out is read-only"),
    ({"out": np.zeros((3, 4, 16), np.float32)[..., ::2]}, ValueError, "out has strides .*; its last axis must be contiguous"),
    ({"out": np.zeros((3, 8, 4), np.float32).swapaxes(1, 2)}, ValueError, "out has strides .*; its last axis must be cont"),
    ({"out": np.lib.stride_tricks.as_strided(OUT, OUT.shape, (32, 16, 4))}, ValueError, "out has strides .*; its rows overlap"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), ERRORS)
def test_errors(arguments, error, message):
    """They name the parameter, the value, and what would be right, and nothing has been written."""
    call = {"shape": (3, 4), "dim": 8, "convention": "mae", "out": np.full((3, 4, 8), 7, np.float32), **arguments}
    before = np.array(call["out"])
    with pytest.raises(error, match=message):
        posenc.grid(**call)
    assert (np.array(call["out"]) == before).all()


@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**62, 2**62), (2**45, 4)])
@pytest.mark.parametrize("options", [{}, {"scale": 0.5}], ids=str)
def test_huge_grids(shape, options):
    with pytest.raises(MemoryError, match="cannot be allocated"):
        posenc.grid(shape, 8, convention="timm", **options)


def test_what_shapes_and_options_may_be():
    want = posenc.grid((3, 4), 8, convention="mae", base=(100.0, 20.0), first=(0, 2)).tobytes()
    for shape in ([3, 4], np.array([3, 4]), (np.int64(3), np.uint8(4))):
        options = {"base": [100, np.float32(20)], "first": np.array([0, 2])}
        assert posenc.grid(shape, np.int64(8), convention="mae", **options).tobytes() == want
    assert posenc.grid([3, 4], 8, convention="detr", mask=MASK.tolist()).shape == (3, 4, 8)
    want = posenc.grid((3, 4), 8, convention="mae").tobytes()
    for order in ([1, 0], np.array([1, 0]), (i for i in (1, 0)), "wh"):
        assert posenc.grid((3, 4), 8, convention="mae", order=order).tobytes() == want


def test_empty_and_single_grids(dtype):
    for name in FORMULAS:
        axes = max(GRIDS[name].axes or [3])
        for shape in (
            (0,) * axes,
            (1,) * axes,
            *(tuple(n * (i != axis) for i in range(axes)) for axis in range(axes) for n in (1, 9)),
        ):
            check(posenc.grid(shape, 16, convention=name, dtype=dtype), broadcasted(name, shape, 16, dtype), name)
