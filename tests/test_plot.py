"""Pictures: what is drawn is what posenc computes; labels, axes, errors; the files of the command line."""

import inspect
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import posenc
from posenc import _axes, _cli, _cli_plot, _recipes, plot

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pictures are not looked at")
pyplot = pytest.importorskip("matplotlib.pyplot")
Axes, Figure = pyplot.Axes, pyplot.Figure
matplotlib.use("agg")

# the lowest Matplotlib calls names that the newest pyparsing has deprecated
pytestmark = pytest.mark.filterwarnings(r"ignore:'\w+' .*deprecated:DeprecationWarning")

E = posenc.Encoding
ENCODING = E(10, base=500.0, layout="concatenated", cos_first=True, amplitude=2.5, first=3)

#: Each picture: a call that takes ax, or axes for the last.
PICTURES = {
    "heatmap": lambda **ax: plot.heatmap(16, 40, **ax),
    "similarity": lambda **ax: plot.similarity(16, range(-20, 21), **ax),
    "projected_similarity": lambda **ax: plot.projected_similarity(16, range(-20, 21), **ax),
    "waves": lambda **ax: plot.waves(16, 40, **ax),
    "recipe_error": lambda **ax: plot.recipe_error(16, range(1, 40), **ax),
    "schemes": lambda **ax: plot.schemes(**ax),
}
ALONE = [name for name in PICTURES if name != "schemes"]


def new_ax():
    """Axes of a figure that pyplot does not know."""
    return Figure().subplots()


def same(got, want):
    """The very same numbers."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


def refused(error, message, call, *arguments, **keywords):
    """The error in these words, before anything is drawn."""
    with mock.patch.object(_axes, "axes", side_effect=AssertionError("drawn")), pytest.raises(error) as info:
        call(*arguments, **keywords)
    assert message in str(info.value)


# ---- axes, figures, state --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALONE)
def test_ax_is_drawn_on_and_returned(name):
    ax = new_ax()
    assert PICTURES[name](ax=ax) is ax
    assert ax.has_data()
    assert pyplot.get_fignums() == []


def test_axes_are_drawn_on_and_returned():
    given = Figure().subplots(1, 5)
    got = plot.schemes(axes=list(given))
    assert [a is b for a, b in zip(got, given, strict=True)] == [True] * 5
    assert plot.schemes(axes=np.array(Figure().subplots(5))).shape == (5,)


@pytest.mark.parametrize("name", PICTURES)
def test_without_ax_a_figure_of_pyplot_is_made_and_no_setting_changed(name):
    before = dict(matplotlib.rcParams)
    assert pyplot.get_fignums() == []
    try:
        drawn = PICTURES[name]()
        axes = np.ravel(np.array(drawn, object))
        assert pyplot.get_fignums() == [axes[0].figure.number]
        assert tuple(axes[0].figure.get_size_inches()) == _axes.SIZES[name]
        axes[0].figure.savefig(io.BytesIO(), dpi=50)
        assert isinstance(drawn, np.ndarray) == (name == "schemes")
    finally:
        pyplot.close("all")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", PICTURES)
def test_labels_are_there_and_apart(name):
    """Each axis says what it is; no tick label, title or text lies upon another, and all are within the figure."""
    figure = Figure(figsize=_axes.SIZES[name], layout="constrained", dpi=100)
    axes = figure.subplots(1, 5) if name == "schemes" else [figure.subplots()]
    PICTURES[name](**{"axes": axes} if name == "schemes" else {"ax": axes[0]})
    figure.savefig(io.BytesIO(), dpi=100)
    assert all(ax.get_xlabel() and (ax.get_title() or ax.get_title("left")) for ax in axes)
    assert axes[0].get_ylabel()
    texts = [(text.get_text(), text.get_window_extent()) for ax in figure.axes for text in drawn_texts(ax)]
    assert len(texts) > 5
    for i, (text, box) in enumerate(texts):
        assert min(*box.p0, *(figure.bbox.p1 - box.p1)) >= 0, text
        for other, there in texts[:i]:
            assert not box.overlaps(there), (text, other)


def drawn_texts(ax):
    """Titles, labels, texts, and the labels of ticks within the limits."""
    texts = [ax.title, ax._left_title, ax._right_title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        texts += [label for tick in ticks for label in (tick.label1, tick.label2)]
    return [text for text in texts if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("wrong", [3, "ax", Figure(), [], np.zeros(2)], ids=lambda value: type(value).__name__)
def test_what_is_no_ax(name, wrong):
    with pytest.raises(TypeError, match=r"^ax must be a Matplotlib Axes, not "):
        PICTURES[name](ax=wrong)


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_other_than_five_axes(count):
    axes = [new_ax() for _ in range(count)]
    with pytest.raises(TypeError, match=r"^axes must be 5 Matplotlib Axes, not "):
        plot.schemes(axes=axes)
    assert not any(ax.has_data() for ax in axes)


def test_without_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import posenc\n"
        "calls = posenc.plot.heatmap, posenc.plot.similarity, posenc.plot.projected_similarity, posenc.plot.waves\n"
        "for call in (*(lambda f=f: f(4) for f in calls), posenc.plot.schemes, lambda: posenc.plot.recipe_error(4)):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        assert str(error) == 'pictures need the package matplotlib: pip install \"posenc[plot]\"', error\n"
        "    else:\n"
        "        raise AssertionError('drawn')\n"
        "from posenc import _cli\n"
        "sys.exit(_cli.main(['plot', 'waves', '-o', 'x.png']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    message = 'posenc: pictures need the package matplotlib: pip install "posenc[plot]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_public_names():
    functions = {
        name
        for name, thing in inspect.getmembers(plot, inspect.isfunction)
        if thing.__module__ == plot.__name__ and not name.startswith("_")
    }
    assert plot.__all__ == sorted(functions) == sorted(_axes.SIZES) == sorted(PICTURES)
    for name in functions:
        for section in ("Parameters", "Returns", "Raises", "Examples"):
            assert f"\n{section}\n{'-' * len(section)}\n" in inspect.getdoc(getattr(plot, name)), (name, section)


# ---- heatmap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [1, 7, 128, np.int8(6), ENCODING], ids=str)
@pytest.mark.parametrize(("length", "start"), [(1, None), (128, None), (30, -10), (5, 2**60)])
def test_heatmap(encoding, length, start):
    e = encoding if isinstance(encoding, E) else E(encoding)
    ax = plot.heatmap(encoding, length, start=start, ax=new_ax())
    [image] = ax.images
    same(image.get_array().data, e.table(length, start=start))
    first = e.first if start is None else start
    assert image.get_clim() == (-e.amplitude, e.amplitude)
    left, right, bottom, top = image.get_extent()
    assert (left, right) == (-0.5, e.dim - 0.5)
    if start == 2**60:
        assert (top, bottom, ax.get_ylabel()) == (-0.5, length - 0.5, f"position - {start}")
    else:
        assert (top, bottom, ax.get_ylabel()) == (first - 0.5, first + length - 0.5, "position")
    assert ax.get_xlabel() == f"dimension ({'all cos, then all sin' if e is ENCODING else 'sin, cos, sin, cos, …'})"
    assert f"d = {e.dim}" in ax.get_title()
    bar = image.colorbar.ax
    assert bar.get_ylabel() == "value"
    assert bar.get_ylim() == image.get_clim()


def test_heatmap_without_a_length():
    assert plot.heatmap(6, ax=new_ax()).images[0].get_array().shape == (128, 6)


# ---- similarity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [2, 64, ENCODING], ids=str)
@pytest.mark.parametrize(
    "offsets",
    [None, range(-5, 6), range(4), [0.5, -0.5, 3, -7], [9], [3, 3, -3, 1, 1], np.arange(-9, 2, dtype=np.int8)],
    ids=str,
)
def test_similarity(encoding, offsets):
    e = encoding if isinstance(encoding, E) else E(encoding)
    k = np.arange(-128, 129) if offsets is None else np.array(offsets)
    ax = plot.similarity(encoding, offsets, ax=new_ax())
    values = e.similarity(k)
    curve, decay, *marks = ax.lines
    same(curve.get_xdata().astype(k.dtype), k)
    same(curve.get_ydata(), values)
    assert decay.get_xdata().tolist() == sorted(k.tolist())
    for at, largest in zip(decay.get_xdata(), decay.get_ydata(), strict=True):
        assert largest == max(v for v, other in zip(values, k, strict=True) if abs(int(other * 2)) >= abs(int(at * 2)))
    mirrored = {abs(v) for v in k.tolist() if v and -v in k.tolist()}
    assert len(marks) == bool(mirrored)
    for mark in marks:
        low, high = mark.get_xdata()
        assert -low == high
        assert high in mirrored
        same(mark.get_ydata(), e.similarity([low, high]))
        assert mark.get_ydata()[0] == mark.get_ydata()[1]
        assert f"±{high:g}" in mark.get_label()
    assert "not normalised" in ax.get_ylabel()
    assert "positions" in ax.get_xlabel()
    assert len(ax.get_legend().get_texts()) == 2 + len(marks)


# ---- projected_similarity --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [2, 64, ENCODING], ids=str)
@pytest.mark.parametrize(("position", "draws", "seed"), [(256, 4, 0), (0, 1, 7), (-3, 9, 2**62)])
def test_projected_similarity(encoding, position, draws, seed):
    e = encoding if isinstance(encoding, E) else E(encoding)
    k = range(-30, 31)
    ax = plot.projected_similarity(encoding, k, position=position, draws=draws, seed=seed, ax=new_ax())
    *projected, bare = ax.lines
    values = e.similarity(k)
    same(bare.get_ydata(), values / np.abs(values).max())
    assert len(projected) == draws
    assert bare.get_linewidth() > max(line.get_linewidth() for line in projected)
    generator = np.random.default_rng(seed)
    rows = e.encode(range(position - 30, position + 31), dtype="float64")
    for line in projected:
        query, key = generator.normal(0.0, e.dim**-0.5, (2, e.dim, e.dim))
        want = np.einsum("i,ji,jl,kl->k", rows[30], query, key, rows, optimize=True)  # PE_t^T W_Q^T W_K PE_(t+k)
        np.testing.assert_allclose(line.get_ydata(), want / np.abs(want).max(), rtol=0, atol=1e-12)  # sums in another order
        assert np.abs(line.get_ydata()).max() == 1.0
    assert str(position) in ax.get_title()


def test_projections_lose_the_distance():
    """No draw is symmetric, and few have their largest value at 0, where the bare dot product has it."""
    *projected, bare = plot.projected_similarity(64, draws=50, ax=new_ax()).lines
    assert bare.get_ydata().argmax() == 128
    same(bare.get_ydata(), bare.get_ydata()[::-1])
    for line in projected:
        assert np.abs(line.get_ydata() - line.get_ydata()[::-1]).max() > 0.1
    assert sum(line.get_ydata().argmax() == 128 for line in projected) <= 5


def test_projections_are_those_of_the_seed():
    lines = [plot.projected_similarity(16, seed=seed, ax=new_ax()).lines for seed in (0, 0, 1)]
    for first, again, other in zip(*lines, strict=True):
        same(first.get_ydata(), again.get_ydata())
        assert (first.get_ydata() == other.get_ydata()).all() == (first is lines[0][-1])


# ---- waves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 200, 1500])
@pytest.mark.parametrize(
    ("encoding", "pairs", "chosen"),
    [
        (2, None, [0]),
        (7, None, [0, 1, 2, 3]),
        (128, None, [0, 9, 18, 27, 36, 45, 54, 63]),
        (ENCODING, [4, 0], [4, 0]),
        (ENCODING, range(2, 4), [2, 3]),
        (32, np.array([15]), [15]),
    ],
    ids=str,
)
def test_waves(encoding, length, pairs, chosen):
    e = encoding if isinstance(encoding, E) else E(encoding)
    ax = plot.waves(encoding, length, pairs=pairs, ax=new_ax())
    points = np.linspace(e.first, e.first + length - 1, max(1024, length))
    sines = e.replace(amplitude=1.0).encode(points, dtype="float64")
    columns = [e.dim // 2 + k if e is ENCODING else 2 * k for k in chosen]
    waves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for i, (wave, column) in enumerate(zip(waves, columns, strict=True)):
        same(wave.get_xdata(), points)
        same(wave.get_ydata(), 0.4 * sines[:, column] - i)
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"k = {k}" for k in chosen]
    for text, k in zip(ax.texts, chosen, strict=True):
        assert float(text.get_text().replace(",", "")) == pytest.approx(e.wavelengths[k], rel=0.005)  # three digits
    assert ax.get_title("right") == "wavelength (positions)"


@pytest.mark.parametrize(
    ("value", "text"), [(6.283185, "6.28"), (999.4, "999"), (14900.2, "14,900"), (2e12, "2e+12"), (np.inf, "∞"), (-30.0, "-30")]
)
def test_numbers(value, text):
    assert _axes.number(value) == text


# ---- schemes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "dim"), [(16, 8), (1, 1), (8, 3), (100, 10)])
def test_schemes(length, dim):
    axes = plot.schemes(length, dim, axes=Figure().subplots(1, 5))
    images = [ax.images[0] for ax in axes]
    wants = (
        posenc.schemes.integer(length)[:, None],
        posenc.schemes.unit_interval(length)[:, None],
        posenc.schemes.binary(length, dim),
        posenc.schemes.sine(length, dim, octaves=True),
        posenc.table(length, dim),
    )
    for image, want in zip(images, wants, strict=True):
        same(image.get_array().data, want)
        assert image.get_clim() == (-1.0, 1.0)
    names = ("integer", r"unit\ interval", "binary", "sine", r"sine\ and\ cosine")
    assert [ax.get_title().split("$")[1] for ax in axes] == [f"\\mathbf{{{name}}}" for name in names]
    assert all(len(ax.get_title().split("\n")) == 3 for ax in axes)
    written = [[text.get_text() for text in ax.texts] for ax in axes]
    if length <= 32:
        assert written[0] == [str(i) for i in range(1, length + 1)]
        assert written[1] == [f"{v:.2f}" for v in wants[1][:, 0]]
        assert written[2] == [str(bit) for bit in wants[2].ravel()]
        assert written[3:] == [[], []]
    else:
        assert written == [[]] * 5


# ---- recipe_error ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 5, 64])
def test_recipe_error(dim):
    positions = np.array([1, 2, 999, 10**7, 2**40])
    ax = plot.recipe_error(dim, positions, ax=new_ax())
    assert [line.get_label() for line in ax.lines] == list(_recipes.USUAL)
    truth = posenc.encode(positions, dim, dtype="float64")
    for line, recipe in zip(ax.lines, _recipes.USUAL.values(), strict=True):
        same(line.get_xdata(), positions)
        same(line.get_ydata(), np.abs(np.float64(recipe(positions, dim)) - truth).max(axis=1))
    assert ax.lines[3].get_ydata().max() <= 2.0**-25
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert len(ax.get_legend().get_texts()) == 5


def test_recipes_are_those_of_which_they_have_the_name():
    """The order of their errors before 10**7; dtypes; the last is posenc's own."""
    p = np.arange(10**7 - 50, 10**7)
    rows = [recipe(p, 64) for recipe in _recipes.USUAL.values()]
    assert {row.dtype for row in rows} == {np.dtype(np.float32)}
    same(rows[3], posenc.encode(p, 64))
    errors = [_recipes.errors("", recipe, p, 64) for recipe in _recipes.USUAL.values()]
    assert errors[0].mean() > errors[1].mean() > 0.1
    assert errors[2].max() < 2.0**-24
    assert errors[3].max() <= 2.0**-25


def test_default_positions():
    x = plot.recipe_error(4, ax=new_ax()).lines[0].get_xdata()
    assert (x[0], x[-1], x.dtype) == (1, 10**7, np.int64)
    assert (np.diff(x) > 0).all()


def test_own_recipes():
    def zeros(positions, dim):
        positions[:] = 0  # its own copy
        return np.zeros((len(positions), dim))

    recipes = {"zeros": zeros, "ours": lambda p, d: posenc.encode(p, d).tolist(), "exact": lambda p, d: posenc.encode(p, d)}
    ax = plot.recipe_error(4, [3, 4], recipes=recipes, ax=new_ax())
    assert [line.get_label() for line in ax.lines] == list(recipes)
    truth = posenc.encode([3, 4], 4, dtype="float64")
    same(ax.lines[0].get_ydata(), np.abs(truth).max(axis=1))
    same(ax.lines[1].get_ydata(), np.abs(np.float64(posenc.encode([3, 4], 4)) - truth).max(axis=1))
    assert ax.lines[0].get_xdata().tolist() == [3, 4]


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [plot.heatmap, plot.similarity, plot.projected_similarity, plot.waves])
def test_what_is_no_encoding(call):
    for wrong in ("8", 8.0, None, True, [8]):
        refused(TypeError, f"encoding must be an Encoding or a width, not {type(wrong).__name__} {wrong!r}", call, wrong)
    refused(ValueError, "dim is 0; it must be at least 1", call, 0)


def test_errors():
    refused(ValueError, "length is 0; it must be at least 1", plot.heatmap, 4, 0)
    refused(TypeError, "length must be an integer", plot.heatmap, 4, 2.0)
    refused(ValueError, "the last position", plot.heatmap, 4, 2, start=2**63 - 1)
    refused(ValueError, "length is 1; it must be at least 2", plot.waves, 4, 1)
    refused(ValueError, "pairs[1] is 2; it must be at most 1", plot.waves, 4, pairs=[0, 2])
    refused(TypeError, "pairs[0] must be an integer", plot.waves, 4, pairs=[0.5])
    refused(TypeError, "pairs must be integers, not int 3", plot.waves, 4, pairs=3)
    refused(ValueError, "pairs is empty", plot.waves, 4, pairs=[])
    refused(ValueError, "it must have at least one pair", plot.waves, E(1, odd="zero"))
    refused(ValueError, "length is 0; it must be at least 1", plot.schemes, 0)
    refused(ValueError, "n must be at most 2**d, 8", plot.schemes, 9, 3)
    refused(ValueError, "it must be at most 200", plot.schemes, 9, 201)
    for call in (plot.similarity, plot.projected_similarity):
        refused(ValueError, "dim is 5 and odd='truncate'", call, 5)
        refused(ValueError, "offsets has shape (1, 1); it must have one axis", call, 4, [[1]])
        refused(ValueError, "offsets has shape (0,); it must have one axis, of at least one offset", call, 4, [])
        refused(ValueError, "offsets[1] is nan", call, 4, [0, np.nan])
        refused(ValueError, "offsets[0] is 4503599627370497; it must be at most 2**52 in size", call, 4, [2**52 + 1])
        refused(ValueError, "offsets[0] is -9223372036854775808; it must be at most 2**52 in size", call, 4, [-(2**63)])
        refused(TypeError, "offsets has dtype", call, 4, ["a"])
    refused(ValueError, "position is 4503599627370497; it must be at most", plot.projected_similarity, 4, position=2**52 + 1)
    refused(ValueError, "draws is 0; it must be at least 1", plot.projected_similarity, 4, draws=0)
    refused(ValueError, "seed is -1; it must be at least 0", plot.projected_similarity, 4, seed=-1)


def test_errors_of_recipes():
    refused(ValueError, "dim is 0; it must be at least 1", plot.recipe_error, 0)
    refused(ValueError, "positions[1] is 0; it must be at least 1", plot.recipe_error, 4, [1, 0])
    refused(ValueError, "positions has shape (0,); it must have one axis, of at least one", plot.recipe_error, 4, [])
    refused(TypeError, "positions has fractions; it must be integers", plot.recipe_error, 4, [1.5])
    refused(TypeError, "recipes must be a mapping of names to functions, not list", plot.recipe_error, 4, recipes=[])
    refused(TypeError, "recipes must be a mapping of names to functions, not dict", plot.recipe_error, 4, recipes={"a": 3})
    refused(ValueError, "recipes is empty", plot.recipe_error, 4, recipes={})
    wrong = {"flat": lambda p, d: np.zeros(d)}
    message = "recipe 'flat' returned shape (4,) of float64; it must be (1, 4) of real numbers"
    refused(ValueError, message, plot.recipe_error, 4, [1], recipes=wrong)
    wrong = {"complex": lambda p, d: np.zeros((1, d), complex)}
    refused(ValueError, "returned shape (1, 4) of complex128", plot.recipe_error, 4, [1], recipes=wrong)


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error(capsys):
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("posenc: ")
    assert said.err.count("\n") == 1
    return said.err.removeprefix("posenc: ").rstrip("\n")


@pytest.mark.parametrize("kind", _cli_plot._PICTURES)
def test_files(kind, workplace, capsys):
    """Each format is what its name says, twice the same bytes; no figure is left open, no setting changed."""
    before = dict(matplotlib.rcParams)
    for suffix in ("png", "SVG", "pdf"):
        for name in (f"a.{suffix}", f"b.{suffix}"):
            assert _cli.main(["plot", kind, "-o", name, "--dpi", "50", "--dim", "8"]) == 0
        made = Path(f"a.{suffix}").read_bytes()
        assert made == Path(f"b.{suffix}").read_bytes()
        said = capsys.readouterr()
        assert re.fullmatch(rf"({kind}, [\d.]+ x [\d.]+ (pixels|inches), {len(made)} bytes\n){{2}}", said.out)
        assert said.err == ""
    width, height = _axes.SIZES[kind.replace("-", "_")]
    assert pyplot.imread("a.png").shape == (round(50 * height), round(50 * width), 4)
    assert ET.parse("a.SVG").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert Path("a.pdf").read_bytes().startswith(b"%PDF-")
    assert len(list(workplace.iterdir())) == 6
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("argv", "function", "arguments", "keywords"),
    [
        (["heatmap"], "heatmap", (E(128),), {}),
        (
            ["heatmap", "--dim=6", "--length=9", "--start=-4", "--convention=whisper"],
            "heatmap",
            (posenc.convention("whisper", 6),),
            {"length": 9, "start": -4},
        ),
        (["similarity"], "similarity", (E(128), range(-128, 129)), {}),
        (["similarity", "--length", "5", "--dim", "4"], "similarity", (E(4), range(-5, 6)), {}),
        (["projected-similarity", "--length", "5"], "projected_similarity", (E(128), range(-5, 6)), {}),
        (["waves", "--length", "50"], "waves", (E(128),), {"length": 50}),
        (["schemes", "--dim", "4"], "schemes", (), {"dim": 4}),
        (["schemes", "--length", "4"], "schemes", (), {"dim": 8, "length": 4}),
        (["recipe-error"], "recipe_error", (64,), {}),
        (["recipe_error", "--dim", "5"], "recipe_error", (5,), {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options(argv, function, arguments, keywords, workplace):
    with mock.patch.object(plot, function, autospec=True) as drawn:
        assert _cli.main(["plot", *argv, "-o", "x.png"]) == 0
    [call] = drawn.mock_calls
    given = {name: value for name, value in call.kwargs.items() if name not in ("ax", "axes")}
    assert call.args == arguments
    assert given == keywords
    assert all(isinstance(ax, Axes) for ax in np.ravel(np.array(call.kwargs.get("ax", call.kwargs.get("axes")), object)))


def test_size(workplace, capsys):
    assert _cli.main(["plot", "waves", "-o", "x.png", "--width", "5", "--height", "3.5", "--dpi", "80"]) == 0
    assert pyplot.imread("x.png").shape == (280, 400, 4)
    assert capsys.readouterr().out.startswith("waves, 400 x 280 pixels, ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["heatmap", "-o", "x.jpg"], "output is 'x.jpg'; its name must end in .png, .svg, .pdf"),
        (["heatmap", "-o", "png"], "output is 'png'; its name must end in .png, .svg, .pdf"),
        (["heatmap", "-o", "x.png", "--width", "0"], "width is 0.0; it must be positive"),
        (["heatmap", "-o", "x.png", "--dpi", "nan"], "dpi is nan; it must be finite"),
        (
            ["heatmap", "-o", "x.png", "--dpi", "1e5"],
            "width is 7, height 4.5 and dpi 100000; they must make at most 10**8 pixels",
        ),
        (["heatmap", "-o", "x.png", "--width=.5", "--height=.5"], "width is 0.5 and height 0.5; the picture needs more inches"),
        (["waves", "-o", "x.png", "--start", "3"], "start is 3; waves has no such option"),
        (["schemes", "-o", "x.png", "--convention", "mlx"], "convention is 'mlx'; schemes has no such option"),
        (["recipe-error", "-o", "x.png", "--length", "3"], "length is 3; recipe-error has no such option"),
        (["similarity", "-o", "x.png", "--length", "0"], "length is 0; it must be at least 1"),
        (["similarity", "-o", "x.png", "--dim", "5"], "dim is 5 and odd='truncate'"),
        (["heatmap", "-o", "x.png", "--convention", "chair"], "name is 'chair'; it must be one of"),
        (["chair", "-o", "x.png"], "argument KIND: invalid choice: 'chair'"),
        (["heatmap"], "the following arguments are required: -o/--output"),
        (["heatmap", "-o", "missing/x.png"], "output is 'missing/x.png'; there is no directory"),
    ],
)
def test_bad_options(argv, message, workplace, capsys):
    assert _cli.main(["plot", *argv]) == 2
    assert message in error(capsys)
    assert list(workplace.iterdir()) == []


def test_only_force_replaces(workplace, capsys):
    Path("x.png").write_bytes(b"precious")
    assert _cli.main(["plot", "waves", "-o", "x.png"]) == 2
    assert error(capsys) == "output is 'x.png'; it exists, and only --force replaces it"
    assert Path("x.png").read_bytes() == b"precious"
    assert _cli.main(["plot", "waves", "-o", "x.png", "--force"]) == 0
    assert Path("x.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert [path.name for path in workplace.iterdir()] == ["x.png"]
