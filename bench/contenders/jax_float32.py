"""JAX on the CPU, compiled, in its default dtype."""

import math
from collections.abc import Callable
from functools import cache

TITLE = "JAX, float32, jit"
NEEDS = ("jax",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Compiled for each shape when it is called first; ``dim`` is even."""
    return compiled(length, dim)(start)


@cache
def compiled(length: int, dim: int) -> Callable[[int], object]:
    """The function of ``start``, which waits for its result."""
    import jax
    import jax.numpy as jnp

    def rows(start: object) -> object:
        frequencies = jnp.exp(jnp.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        angles = (jnp.arange(length) + start)[:, None] * frequencies
        return jnp.stack([jnp.sin(angles), jnp.cos(angles)], -1).reshape(length, dim)

    with jax.default_device(jax.devices("cpu")[0]):
        function = jax.jit(rows)
    return lambda start: function(start).block_until_ready()
