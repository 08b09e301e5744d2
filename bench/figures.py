"""The figures of the sweeps, by Matplotlib: the same bytes from the same numbers and versions."""

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Points = list[dict[str, Any]]

#: Colours that those who see few colours tell apart (Okabe and Ito), and a marker for each.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7", "#0072B2", "#999999")
MARKERS = "osD^vP*X"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "posenc",
    "svg.fonttype": "path",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
SIZE = (8.0, 4.6)  # inches; 800 pixels wide at 100 dots an inch


def write(sweeps: dict[str, Any], titles: dict[str, str], folder: Path) -> list[Path]:
    """Each figure as SVG and PNG."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("matplotlib is not installed; figures need it: pip install 'posenc[plot]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    known = {sweep["name"]: sweep["points"] for sweep in sweeps["sweeps"]}
    with matplotlib.rc_context(STYLE):
        for name, figure in FIGURES.items():
            drawn = figure(known, titles)
            for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
                written.append(folder / f"bench_{name}.{kind}")
                drawn.savefig(written[-1], **options)
    return written


def speed(sweeps: dict[str, Points], titles: dict[str, str]) -> Any:
    """Speed against size, under the roof that memory sets."""
    figure, axes = empty("size of the new table", "GB/s written")
    points = sweeps["length"]
    roof = roof_of(points)
    axes.fill_between(*roof, 1e-4, color="#F0F0F0", zorder=0)
    axes.plot(*roof, color="#777777", linewidth=2.5, linestyle="--", label="memory: fill of a new array", zorder=1)
    for name, own, style in lines(points):
        axes.plot([p["bytes"] for p in own], [p["bytes"] / p["seconds"] / 1e9 for p in own], label=titles[name], **style)
    axes.set_xscale("log", base=2)
    at = [1 << k for k in range(11, 32, 4)]
    axes.set_xticks(at, ["2 KiB", "32 KiB", "512 KiB", "8 MiB", "128 MiB", "2 GiB"])
    lowest = min(p["bytes"] / p["seconds"] / 1e9 for p in points if p["bytes"] > 1 << 15)
    axes.set_ylim(bottom=lowest / 3)
    axes.set_title("Speed against size: float32 tables, 512 wide", loc="left")
    return legend(figure, axes)


def error(sweeps: dict[str, Points], titles: dict[str, str]) -> Any:
    """Largest error against position. Contenders whose errors are about the same share a line and are named together."""
    figure, axes = empty("position", "largest error of 16 rows of 64")
    for names, own, style in families(sweeps["error"]):
        label = "\n".join(titles[name] for name in names)
        axes.plot([p["x"] for p in own], [p["error"] for p in own], label=label, **style)
    axes.axhline(2.0**-25, color="#777777", linestyle="--", linewidth=1, zorder=1)
    axes.annotate("half an ulp of float32 just below 1", (1, 2.0**-25), (0, -14), textcoords="offset points", fontsize=9)
    axes.set_ylim(bottom=8e-9)
    axes.set_xscale("log")
    axes.set_title("Error against position", loc="left")
    return legend(figure, axes)


def cost(sweeps: dict[str, Points], titles: dict[str, str]) -> Any:
    """Cost of an entry as the work grows: called again and again, and called first."""
    figure, axes = empty("entries of the new table", "ns per entry")
    cold = {name: own for name, own, _ in lines(sweeps["cold"])}
    for name, own, style in lines(sweeps["length"]):
        if name in cold:
            axes.plot(*per_entry(own), label=titles[name], **style)
            axes.plot(*per_entry(cold[name]), label=f"{titles[name]}, first call", **style | {"linestyle": ":", "alpha": 0.8})
    axes.set_xscale("log")
    axes.set_title("Cost of an entry: float32 tables, 512 wide", loc="left")
    return legend(figure, axes)


FIGURES: dict[str, Callable[[dict[str, Points], dict[str, str]], Any]] = {"speed": speed, "error": error, "cost": cost}


def empty(x: str, y: str) -> tuple[Any, Any]:
    """A figure, and its axes with a logarithmic height."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE)
    axes = figure.add_subplot()
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def legend(figure: Any, axes: Any) -> Any:
    """The figure, with its legend beside it."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9.5, handlelength=2.4)
    return figure


def lines(points: Points) -> Iterable[tuple[str, Points, dict[str, Any]]]:
    """Each contender's points, and how its line is drawn; posenc's is the widest."""
    names = dict.fromkeys(point["contender"] for point in points)
    for name, colour, marker in zip(names, itertools.cycle(COLOURS), itertools.cycle(MARKERS), strict=False):
        is_ours = name == "posenc_table"
        style = {
            "color": colour,
            "marker": marker,
            "markersize": 5,
            "linewidth": 2.5 if is_ours else 1.5,
            "zorder": 3 + is_ours,
        }
        yield name, [point for point in points if point["contender"] == name], style


def families(points: Points) -> list[tuple[list[str], Points, dict[str, Any]]]:
    """The contenders whose errors, where both have some, are nowhere twice as large as the other's."""
    found: list[tuple[list[str], Points, dict[str, Any]]] = []
    for name, own, style in sorted(lines(points), key=lambda line: -len(line[1])):
        errors = {point["x"]: point["error"] for point in own}
        for names, theirs, _ in found:
            both = [(errors[point["x"]], point["error"]) for point in theirs if point["x"] in errors]
            if all(a <= 2 * b and b <= 2 * a for a, b in both):
                names.append(name)
                break
        else:
            found.append(([name], own, style))
    return found


def roof_of(points: Points) -> tuple[list[int], list[float]]:
    """Bytes, and the best GB/s of a filled new array of that size in any contender's process."""
    best: dict[int, float] = {}
    for point in points:
        best[point["bytes"]] = max(best.get(point["bytes"], 0.0), point["bytes"] / point["fill"] / 1e9)
    sizes = sorted(best)
    return sizes, [best[size] for size in sizes]


def per_entry(points: Points) -> tuple[list[float], list[float]]:
    """Entries, and ns of each."""
    entries = [point["bytes"] / 4 for point in points]
    return entries, [point["seconds"] * 1e9 / count for point, count in zip(points, entries, strict=True)]
