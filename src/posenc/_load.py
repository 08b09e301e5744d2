"""Loads the compiled core: how OpenMP's idle threads wait is settled before, which kernel runs after."""

import os

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")

# OpenMP's threads spin by default while they have no work, which holds up the next call when cores are few or shared.
# The runtime reads its variables once, when it is loaded or first asked, so that is when they are set, and only then.
_theirs = [f"{name}={os.environ[name]}" for name in _WAITING if name in os.environ]
if not _theirs:
    os.environ["OMP_WAIT_POLICY"] = "passive"
try:
    from posenc import _core as core

    core.openmp_threads()
finally:
    if not _theirs:
        del os.environ["OMP_WAIT_POLICY"]

#: How idle threads wait: passively, unless the user's variables say otherwise or another package had loaded the runtime before.
WAIT_POLICY = " ".join(_theirs) or "passive"

KERNEL_VARIABLE = "POSENC_KERNEL"
_wanted = os.environ.get(KERNEL_VARIABLE)
if _wanted:
    if _wanted not in core.KERNELS:
        raise ImportError(f"{KERNEL_VARIABLE} is {_wanted!r}; the kernels that run here are {', '.join(core.KERNELS)}")
    core.use_kernel(_wanted)

__all__ = ["KERNEL_VARIABLE", "WAIT_POLICY", "core"]
