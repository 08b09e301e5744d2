"""The part of the build that pyproject.toml cannot say: each kernel has the compiler flags of its own instruction set.

The flags follow the target, never the processor of the machine that builds. OpenMP is asked for with POSENC_OPENMP:
1 (needed), 0 (left out) or auto (used if a probe compiles and links; the default; on macOS left out). POSENC_ABI3=1 builds
for the limited API of Python 3.11: one wheel for that version and later ones, without free threading.
"""

import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

KERNEL = "src/posenc/kernel"
ABI3 = os.environ.get("POSENC_ABI3") == "1"
TARGET_IS_X86_64 = sysconfig.get_platform().endswith(("x86_64", "amd64"))
# macOS saves AVX-512's registers only after their first use, which detection cannot see: there it is left out
X86_KERNELS = ["avx2"] if sys.platform == "darwin" else ["avx2", "avx512"]

GNU_FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
GNU_FLAGS += ["-Werror=implicit-function-declaration"]  # what a limited API lacks is an error, not a guess
GNU_ISA = {
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mfma", "-mf16c", "-mprefer-vector-width=512"],
}
MSVC_FLAGS = ["/std:c11", "/O2", "/fp:precise", "/we4013"]
MSVC_ISA = {"avx2": ["/arch:AVX2"], "avx512": ["/arch:AVX512"]}

OPENMP_PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"


class BuildKernels(build_ext):
    def build_extension(self, ext):
        msvc = self.compiler.compiler_type == "msvc"
        flags = MSVC_FLAGS if msvc else GNU_FLAGS
        isa_flags = MSVC_ISA if msvc else GNU_ISA
        for isa in X86_KERNELS if TARGET_IS_X86_64 else []:
            ext.extra_objects += self.compiler.compile(
                [f"{KERNEL}/kernel_{isa}.c"], output_dir=self.build_temp, extra_postargs=flags + isa_flags[isa]
            )
        openmp_compile, openmp_link = self.openmp_flags(msvc)
        ext.extra_compile_args = flags + openmp_compile
        ext.extra_link_args = openmp_link
        super().build_extension(ext)

    def openmp_flags(self, msvc):
        wish = os.environ.get("POSENC_OPENMP", "auto")
        if wish not in ("auto", "0", "1"):
            raise SystemExit(f"POSENC_OPENMP is {wish!r}; it must be auto, 0 or 1")
        if wish == "0" or (wish == "auto" and sys.platform == "darwin"):
            return [], []
        flags = (["/openmp"], []) if msvc else (["-fopenmp"], ["-fopenmp"])
        if self.links(OPENMP_PROBE, *flags):
            return flags
        if wish == "1":
            raise SystemExit("POSENC_OPENMP=1, but a program with OpenMP does not compile and link here")
        return [], []

    def links(self, program, compile_flags, link_flags):
        folder = tempfile.mkdtemp()
        try:
            source = Path(folder, "probe.c")
            source.write_text(program)
            objects = self.compiler.compile([str(source)], output_dir=folder, extra_postargs=compile_flags)
            users = shlex.split(os.environ.get("LDFLAGS", ""))  # heeded by what links the extension, but not by this
            self.compiler.link_executable(objects, "probe", output_dir=folder, extra_postargs=[*link_flags, *users])
        except (CompileError, LinkError):
            return False
        finally:
            shutil.rmtree(folder)
        return True


core = Extension(
    "posenc._core",
    sources=[
        "src/posenc/_core.pyx",
        *(f"{KERNEL}/{name}.c" for name in ("dispatch", "geometric", "spread", "kernel_baseline")),
    ],
    depends=[str(path) for path in Path(KERNEL).glob("*.[ch]")],
    include_dirs=[KERNEL],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if ABI3 else [],
    py_limited_api=ABI3,
)

setup(
    ext_modules=cythonize([core], build_dir="build/cython", compiler_directives={"language_level": 3}),
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
)
