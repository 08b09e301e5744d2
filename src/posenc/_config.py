"""What this build and process use."""

from typing import Any, Literal

from posenc import _check, _threads
from posenc._load import WAIT_POLICY, core
from posenc._version import __version__


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, Any] | None:
    """Show version, kernel, OpenMP and threads.

    Parameters
    ----------
    mode : {"stdout", "dicts"}, default "stdout"
        Print a line each, or return a dict.

    Returns
    -------
    dict or None
        With "dicts": ``version``; ``kernel`` in use and ``kernels`` that run here; ``openmp``, the version's date or None;
        ``wait_policy`` of OpenMP's idle threads; ``threads`` that a large call would use now.

    Raises
    ------
    TypeError, ValueError
        If ``mode`` is neither.

    Examples
    --------
    >>> import posenc
    >>> sorted(posenc.show_config("dicts"))
    ['kernel', 'kernels', 'openmp', 'threads', 'version', 'wait_policy']
    """
    mode = _check.choice("mode", mode, ("stdout", "dicts"))  # type: ignore[assignment]
    config = {
        "version": __version__,
        "kernel": core.kernel(),
        "kernels": core.KERNELS,
        "openmp": core.OPENMP or None,
        "wait_policy": WAIT_POLICY if core.OPENMP else None,
        "threads": _threads.for_work(None, _threads.PARALLEL_BYTES),
    }
    if mode == "dicts":
        return config
    for name, value in config.items():
        print(f"{name + ':':13}{value}")
    return None
