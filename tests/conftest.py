"""Options and fixtures of all tests."""

import ctypes
import shutil
import signal
import subprocess
import sysconfig
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from kernel_flags import constant

import posenc
from posenc import _cli_write
from posenc._load import core

SOURCES = Path(__file__).parent.parent / "src" / "posenc" / "kernel"
NATIVE = "neon" if "neon" in core.KERNELS else "baseline"
ALL_KERNELS = [NATIVE] if NATIVE == "neon" else ["baseline", "avx2", "avx512"]


ALL_DTYPES = ["float32", "float64", "float16", "bfloat16"]
DTYPES = ALL_DTYPES if find_spec("ml_dtypes") else ALL_DTYPES[:3]
if "bfloat16" in DTYPES:
    import_module("ml_dtypes")  # makes NumPy know the name


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="run the tests of 10**8 and more entries too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--exhaustive"):
        for item in items:
            if "exhaustive" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="10**8 entries and more: --exhaustive runs it"))


@pytest.fixture(params=ALL_DTYPES)
def dtype(request):
    """Each dtype in turn; bfloat16 is skipped where its package is missing."""
    if request.param not in DTYPES:
        pytest.skip("bfloat16 needs ml_dtypes, which is not installed")
    return request.param


@pytest.fixture(params=ALL_KERNELS)
def kernel(request):
    """Each kernel of this platform in turn; those that this machine cannot run are skipped."""
    if request.param not in core.KERNELS:
        pytest.skip(f"this machine does not run the {request.param} kernel")
    before = core.kernel()
    core.use_kernel(request.param)
    posenc.clear_cache()
    yield request.param
    core.use_kernel(before)
    posenc.clear_cache()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=[1, 50, 1000, 16 << 20])
def slice_bytes(request, monkeypatch):
    """Bytes that the command line writes at once."""
    monkeypatch.setattr(_cli_write, "_SLICE_BYTES", request.param)
    return request.param


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where it is ignored, as in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Driver:
    """kernel_driver.c: the kernels' values before they are rounded."""

    def __init__(self, library):
        self._library = library
        library.driver_control.restype = ctypes.c_uint64
        library.driver_control.argtypes = [ctypes.c_uint64]

    def blocks(self, turns, amplitude, start, blocks):
        """below, above, high, low, bound of the fast path, each (rows, 2 n)."""
        n = turns.shape[1]
        arrays = [np.empty((32 * blocks, 2 * n)) for _ in range(5)]
        status = self._library.driver_blocks(
            ctypes.c_ssize_t(n),
            _pointer(turns),
            ctypes.c_double(amplitude),
            ctypes.c_int64(start),
            ctypes.c_ssize_t(blocks),
            *map(_pointer, arrays),
        )
        assert status == 0
        return arrays

    def direct(self, turns, position):
        """sin high, sin low, cos high, cos low of the accurate path, each (n,)."""
        n = turns.shape[1]
        arrays = [np.empty(n) for _ in range(4)]
        self._library.driver_direct(ctypes.c_ssize_t(n), _pointer(turns), ctypes.c_int64(position), *map(_pointer, arrays))
        return arrays

    def control(self, word):
        """Set this thread's floating-point control word; returns the one before."""
        return self._library.driver_control(word)


def _pointer(array):
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


def build_driver(name, folder):
    """The `Driver` compiled for a kernel's instruction set; None where that cannot be done."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or shutil.which("cc")
    if compiler is None or not SOURCES.exists():
        return None
    library = folder / f"driver_{name}.so"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-fPIC", "-shared", *constant("GNU_ISA").get(name, []), f"-I{SOURCES}"]
    source = Path(__file__).parent / "kernel_driver.c"
    subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm"], check=True)
    return Driver(ctypes.CDLL(str(library)))


@pytest.fixture(scope="session")
def drivers(tmp_path_factory):
    """A function from a kernel's name to its `Driver`."""
    folder = tmp_path_factory.mktemp("driver")

    @lru_cache
    def driver(name):
        built = build_driver(name, folder)
        if built is None:
            pytest.skip("no C compiler or no kernel sources here: the kernels' unrounded values cannot be looked at")
        return built

    return driver


@pytest.fixture
def driver(kernel, drivers):
    """The `Driver` of the kernel in use."""
    return drivers(kernel)
