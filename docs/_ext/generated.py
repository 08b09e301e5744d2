"""What pages take from the package when they are built, so that it is never stale.

A line ``<!-- generated: NAME -->`` of a page becomes what the function NAME here returns, as Markdown.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping

import posenc

MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)

ODD = {
    "truncate": "one column wider, the last one cut off",
    "zero": "one column narrower, then a column of zeros",
    "error": "refused",
}


# ---- conventions -----------------------------------------------------------------------------------------------------


def summary() -> str:
    """A table of all conventions."""
    rows = (f"| [`{name}`](#{name}) | {code(entry.source)} |" for name, entry in posenc.CONVENTIONS.items())
    return "\n".join(["| name | frequencies, row |", "|---|---|", *rows])


def conventions() -> str:
    """A section for each entry of `posenc.CONVENTIONS`."""
    return "\n".join(map(_convention, posenc.CONVENTIONS))


def _convention(name: str) -> str:
    entry = posenc.CONVENTIONS[name]
    encoding = posenc.convention(name, 4)
    row = "  ".join(f"{value:.5f}" for value in encoding.encode(1, dtype="float64"))
    settings = {
        "frequencies, row": code(entry.source),
        "used by": plain(entry.users),
        "odd widths": ODD[entry.odd],
        "a table begins at": str(encoding.first),
        "extras, defaults": extras(entry.extras),
        "position 1, width 4": code(row),
        "note": plain(entry.note),
    }
    return section(name, settings, f"heatmap({name!r})", f"Heat map of positions 0 to 63 of the convention {name} at width 32")


def grids() -> str:
    """A section for each entry of `posenc.GRIDS`."""
    return "\n".join(map(_grid, posenc.GRIDS))


def _grid(name: str) -> str:
    entry = posenc.GRIDS[name]
    counts = [f"{n} ({', '.join(names)})" for n, names in (entry.axes or {}).items()]
    settings = {
        "columns": code(entry.source),
        "used by": plain(entry.users),
        "axes": " or ".join(counts) or "any number",
        "order of columns": ", ".join(entry.order) if entry.order else "that of the axes",
        "widths": f"multiples of {entry.multiple}" if entry.multiple > 1 else "any",
        "extras, defaults": extras(entry.extras),
        "note": plain(entry.note),
    }
    alt = f"The channels of a grid of the convention {name}, each an image"
    return section(f"{name} (grid)", settings, f"channels({name!r})", alt)


def section(title: str, settings: Mapping[str, str], figure: str, alt: str) -> str:
    """A heading, a table, and a figure by a call of a function of ``figures``."""
    rows = [f"| {name} | {value} |" for name, value in settings.items() if value]
    prefix = re.sub(r"\W+", "-", f"conventions {title}").strip("-")
    plot = f".. plot::\n   :alt: {alt}\n   :filename-prefix: {prefix}\n\n   import figures\n   figures.{figure}"
    table = "\n".join(["{.settings}", "| | |", "|---|---|", *rows])
    return f"### {title}\n\n{table}\n\n```{{eval-rst}}\n{plot}\n```\n"


def extras(known: Mapping[str, object]) -> str:
    """Keywords and their defaults."""
    return ", ".join(code(f"{name}={value!r}") for name, value in known.items())


def code(text: str) -> str:
    """Inline code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def plain(text: str) -> str:
    """Text of a docstring in a cell of a table."""
    return re.sub(r"([*_|<>\\`\[\]])", r"\\\1", text)


# ---- the command line ------------------------------------------------------------------------------------------------


def command_line() -> str:
    """What ``python -m posenc --help`` prints, and each subcommand's."""
    overall = printed()
    names = re.findall(r"^    (\w[\w-]*)(?:  |$)", overall, re.MULTILINE)
    if "table" not in names:
        raise RuntimeError(f"no subcommands found in {overall!r}")
    return "\n".join([shown((), overall), *(f"## {name}\n\n{shown((name,), printed(name))}" for name in names)])


def printed(*subcommand: str) -> str:
    """The help of a subcommand, or the line that says which package it lacks here."""
    command = [sys.executable, "-m", "posenc", *subcommand, "--help"]
    environment = {**os.environ, "COLUMNS": "94", "NO_COLOR": "1", "PYTHON_COLORS": "0"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1) or not subcommand:
        ended.check_returncode()
    return ended.stdout or ended.stderr


def shown(subcommand: Iterable[str], text: str) -> str:
    """A command and what it printed."""
    return f"```console\n$ {' '.join(['python -m posenc', *subcommand, '--help'])}\n{text.rstrip()}\n```\n"


# ---- Sphinx ----------------------------------------------------------------------------------------------------------


def fill(app, docname, source):
    """Put what is generated in the place of its marks."""
    source[0] = MARK.sub(lambda mark: globals()[mark[1]](), source[0])


def setup(app):
    """Connect to Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
