"""The recorded bits, kernel_bits.txt: what the C driver prints here, and what the package writes.

``tests/check_kernels.sh`` has the driver print them elsewhere: another processor, C library or compiler.
"""

import importlib
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import SOURCES
from kernel_flags import SETUP, constant, flags

import posenc
from posenc import frequencies
from posenc._load import core

HERE = Path(__file__).parent
RECORD = dict(line.rsplit(" ", 1) for line in (HERE / "kernel_bits.txt").read_text().splitlines())
ODD, WORD = 6364136223846793005, 2**64

ENCODINGS = {
    "one": {"dim": 1},
    "two": {"dim": 2, "layout": "concatenated"},
    "odd": {"dim": 7},
    "odd-halves": {"dim": 7, "layout": "concatenated", "cos_first": True},
    "zero": {"dim": 7, "odd": "zero"},
    "zero-halves": {"dim": 67, "layout": "concatenated", "odd": "zero", "cos_first": True},
    "cos-first": {"dim": 128, "cos_first": True},
    "halves": {"dim": 130, "layout": "concatenated"},
    "wide": {"dim": 1030},
    "wide-zero": {"dim": 1101, "layout": "concatenated", "odd": "zero", "cos_first": True},
    "slow": {"dim": 16, "base": 1e30},
    "turns": {"dim": 18, "frequencies": frequencies.octaves(9, pi=True).scaled(2.0**-9)},
    "amplitude": {"dim": 10, "layout": "concatenated", "amplitude": -0.3},
    "small": {"dim": 16, "base": 1e8, "amplitude": 2.0**-17},
    "tiny": {"dim": 16, "base": 1e8, "amplitude": 1.5 * 2.0**-127, "cos_first": True},
    "faint": {"dim": 10, "amplitude": 1.5 * 2.0**-700},
}


@cache
def mixed(count):
    z = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(ODD)
    return (z ^ z >> np.uint64(32)) * np.uint64(ODD)


def is_here(count):
    return np.arange(count) % 3 != 1


def integers(count):
    sizes = [int(z) >> 1 + i * 7 % 60 for i, z in enumerate(mixed(count))]
    return np.array([1000 + i if i < 40 else size * (-1) ** i for i, size in enumerate(sizes)])


def reals(count):
    sizes = [(int(z) >> 11) * 2.0 ** -(i * 5 % 80) for i, z in enumerate(mixed(count))]
    return np.array([0.0 * (-1) ** i if i < 2 else size * (-1) ** i for i, size in enumerate(sizes)])


#: The positions, and whether some of them are left out.
POINTS = {
    "begin": (range(70), False),
    "before": (range(-300, 230), False),
    "few": (range(1000003, 1000008), False),
    "far": (range(2**53 - 20, 2**53 + 47), False),
    "last": (range(2**63 - 41, 2**63), False),
    "lowest": (range(-(2**63), -(2**63) + 40), False),
    "steps": (range(50, 50 - 7 * 33, -7), False),
    "leaps": (range(-(2**63), -(2**63) + 31 * (2**59 + 12345), 2**59 + 12345), False),
    "integers": (integers(90), False),
    "reals": (reals(40), False),
    "masked": (range(-17, 33), True),
    "masked-reals": (reals(25), True),
}


def make_x(shape, dtype):
    """Elements of a size in [2^-15, 2), or below in float16."""
    bits = mixed(int(np.prod(shape)))
    if dtype == "float64":
        words = bits & np.uint64(0xBFFF << 48 | 2**48 - 1) | np.uint64(0x3F << 56)
    elif dtype == "float32":
        words = (bits >> np.uint64(32)).astype(np.uint32) & np.uint32(0xBFFFFFFF) | np.uint32(0x38000000)
    else:
        words = (bits >> np.uint64(48)).astype(np.uint16) & np.uint16(0xBFFF) | np.uint16(0x3800 * (dtype == "bfloat16"))
    return words.view(dtype).reshape(shape)


@cache
def powers(count):
    """ODD to the power of count - 1, ..., 1, 0."""
    factors = np.full(count, ODD, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)[::-1].copy()


def hashed(array):
    """What the driver's ``hash`` says."""
    data = np.frombuffer(array.tobytes(), np.uint8)
    return f"{np.dot(data.astype(np.uint64), powers(len(data))):016x}"


def computed(name):
    """The result of a case by the package."""
    operation, encoding, points, dtype = name.split()
    encoding, (positions, masked) = posenc.Encoding(**ENCODINGS[encoding]), POINTS[points]
    if operation == "fill":
        return encoding.encode(positions, where=is_here(len(positions)) if masked else None, dtype=dtype)
    x = make_x((3, len(positions), encoding.dim + 3 * (operation == "rotate")), dtype)
    if operation == "rotate":
        return encoding.rotate(x, positions)
    return encoding.add(x, positions=positions, scale=0.7, where=is_here(3 * len(positions)).reshape(3, -1) if masked else None)


def groups():
    return sorted({tuple(name.split()[:2]) for name in RECORD})


@pytest.mark.parametrize(("operation", "encoding"), groups())
def test_package(operation, encoding, dtype, kernel):
    names = [name for name in RECORD if name.startswith(f"{operation} {encoding} ") and name.endswith(f" {dtype}")]
    assert names
    for name in names:
        assert hashed(computed(name)) == RECORD[name], name


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the driver prints: its lines and, apart, which kernels ran."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or shutil.which("cc")
    if compiler is None or not SOURCES.exists() or not SETUP.exists():
        pytest.skip("no C compiler or no kernel sources here: the C driver cannot be built")
    folder = tmp_path_factory.mktemp("kernel_bits")
    left_out = {f"kernel_{isa}" for isa in constant("GNU_ISA") if "baseline" not in core.KERNELS}
    objects = []
    for source in [*SOURCES.glob("*.c"), HERE / "kernel_bits.c"]:
        if source.stem not in left_out:
            objects.append(str(folder / f"{source.stem}.o"))
            subprocess.run([compiler, *flags(source), f"-I{SOURCES}", "-c", str(source), "-o", objects[-1]], check=True)
    program = str(folder / "kernel_bits")
    subprocess.run([compiler, *objects, "-o", program, "-lm", "-pthread"], check=True)
    return subprocess.run([program], capture_output=True, text=True)


def test_driver(printed):
    assert printed.stdout.splitlines() == [f"{name} {bits}" for name, bits in RECORD.items()]
    assert printed.returncode == 0


def test_driver_ran_the_kernels_that_run_here(printed):
    said = dict(line.removeprefix("kernel ").split(": ") for line in printed.stderr.splitlines())
    assert tuple(name for name, how in said.items() if how == "runs") == core.KERNELS


def test_series_are_what_their_generator_prints():
    pytest.importorskip("mpmath", reason="the generator of kernel_bits.h needs mpmath")
    make_kernel_bits = importlib.import_module("make_kernel_bits")
    assert "\n".join(make_kernel_bits.header()) + "\n" == (HERE / "kernel_bits.h").read_text()
