"""House rules: what keeps the code as it is meant to be."""

import ast
import importlib
import inspect
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest

import posenc
from posenc import _exact

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "posenc"

#: Each module imports only from those before it.
LEVELS = [
    {"_version", "_core", "_check", "_exact", "_cache", "_columns", "_phases"},
    {"_load"},
    {"_foreign"},
    {"frequencies", "_threads"},
    {"_arrays", "_config", "_positions"},
    {"_sums"},
    {"_rows"},
    {"_pairs"},
    {"_encoding"},
    {"_functions", "_counting", "conventions", "schemes", "_schedules", "_match"},
    {"arrow"},
    {"_axes", "_recipes"},
    {"plot"},
    {"dask"},
    {"_grids", "_naming", "_rope_config"},
    {"_grid", "_identify_sequence", "_torch_ops", "rope"},
    {"_identify_grid", "_torch_arguments"},
    {"_identify", "_torch_batches"},
    {"torch"},
    {"__init__"},
    {"_files", "_cli_options"},
    {"_cli_plot", "_cli_show", "_cli_verify", "_cli_write"},
    {"_cli"},
    {"__main__"},
]


def imported(path):
    """Modules of posenc that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "posenc":
            if node.module == "posenc":
                yield from (
                    alias.name if (SOURCE / f"{alias.name}.py").exists() or alias.name == "_core" else "__init__"
                    for alias in node.names
                )
            else:
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from ("__init__" for alias in node.names if alias.name.split(".")[0] == "posenc")


@pytest.mark.skipif(not SOURCE.exists(), reason="no source tree beside the tests")
def test_imports_point_downward():
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    files = sorted(SOURCE.glob("*.py"))
    assert {path.stem for path in files} | {"_core"} == set(level)
    for path in files:
        for name in imported(path):
            assert level[name] < level[path.stem], f"{path.name} imports {name}"


@pytest.mark.skipif(not SOURCE.exists(), reason="no source tree beside the tests")
def test_constants_are_what_their_generator_prints():
    pytest.importorskip("mpmath", reason="the generator of constants.h needs mpmath")
    make_constants = importlib.import_module("make_constants")
    assert "\n".join(make_constants.header()) + "\n" == (SOURCE / "kernel" / "constants.h").read_text()


def test_stored_digits_are_what_their_generator_computes():
    assert _exact._constants(_exact._STEP) == _exact._FIRST
    pi, log_2 = oracle.as_fraction(oracle.two_pi()) / 2, oracle.as_fraction(oracle.log_2())
    for digits, truth in zip(_exact._constants(1024), (pi, log_2), strict=True):
        assert abs(Fraction(digits, 2**1024) - truth) < Fraction(1, 2 ** (oracle.BITS - 4))


@pytest.mark.parametrize("bits", [300, 512, 700, 3000])
def test_constants_are_within_two_units(bits):
    for constant in (_exact.pi, _exact.log_2):
        assert abs(constant(bits) - (constant(bits + 600) >> 600)) <= 2


@pytest.mark.skipif(not SOURCE.exists(), reason="no source tree beside the tests")
def test_kernels_are_one_name_and_one_include():
    for path in SOURCE.glob("kernel/kernel_*.c"):
        code = [line for line in path.read_text().splitlines() if line and not line.startswith(("#if", "#else", "#endif"))]
        assert all(line == '#include "add.h"' or "posenc_kernel posenc_kernel_" in line for line in code), path
    for path in SOURCE.glob("kernel/*.[ch]"):
        assert "#pragma omp" not in path.read_text()
        assert "Python.h" not in path.read_text()


def test_public_names_are_documented_and_typed():
    for name in posenc.__all__:
        thing = getattr(posenc, name)
        if name in (
            "CONVENTIONS",
            "GRIDS",
            "Convention",
            "GridConvention",
            "Match",
            "__version__",
            "frequencies",
            "plot",
            "rope",
            "schemes",
        ):
            continue
        assert ">>> " in thing.__doc__, name
        assert thing.__doc__.split("\n")[0].endswith("."), name
        signature = inspect.signature(thing)
        assert all(p.annotation is not p.empty for p in signature.parameters.values()), name
    assert (Path(posenc.__file__).parent / "py.typed").exists()


def test_names_that_are_imported_when_they_are_asked_for():
    code = (
        "import sys, posenc\n"
        "later = {'posenc.rope', 'posenc._grid', 'posenc.conventions', 'posenc.schemes', 'posenc.plot', 'matplotlib'}\n"
        "assert not later & set(sys.modules)\n"
        "assert set(posenc.__all__) <= set(dir(posenc))\n"
        "assert all(getattr(posenc, name) is getattr(posenc, name) for name in posenc.__all__)\n"
        "from posenc import *\n"
        "assert rope is sys.modules['posenc.rope'] and grid is posenc.grid\n"
        "posenc.nothing"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr.endswith("AttributeError: module 'posenc' has no attribute 'nothing'\n"), ended.stderr


def test_too_large_requests_fail_cleanly():
    for length, dim in ((2**62, 4), (2**40, 2**20), (sys.maxsize, 1)):
        with pytest.raises(MemoryError):
            posenc.table(length, dim, dtype=np.float64)
