"""Arguments at the door: each function returns the value in its plain type, or names the parameter in its error."""

import math
import operator
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, SupportsFloat, SupportsIndex, cast

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def shown(value: Any) -> str:
    """``repr``, cut where it is long; of what has none, as an int of thousands of digits, the type."""
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} without a repr>"
    return text if len(text) <= 1000 else f"{text[:500]} ... {text[-100:]}"


def integer(name: str, value: Any, *, least: int = INT64_MIN, most: int = INT64_MAX) -> int:
    """An int in [least, most]; anything with ``__index__`` will do, but a bool."""
    if type(value) is not int:
        kind = type(value)
        if isinstance(value, bool) or kind.__name__ in ("bool", "bool_") or not hasattr(kind, "__index__"):
            raise TypeError(f"{name} must be an integer, not {kind.__name__} {shown(value)}")
        try:
            value = operator.index(cast(SupportsIndex, value))
        except TypeError:
            raise TypeError(f"{name} must be an integer, not {kind.__name__} {shown(value)}") from None
    if not least <= value <= most:
        if value < least:
            limit = f"at least {least}" if least != INT64_MIN else "an int64"
        else:
            limit = f"at most {most}" if most != INT64_MAX else "an int64"
        raise ValueError(f"{name} is {shown(value)}; it must be {limit}")
    return cast(int, value)


def real(name: str, value: Any) -> float:
    """A finite float, exactly the value given; Python's and NumPy's reals, but no bool."""
    kind = type(value)
    if kind is not float:
        if isinstance(value, bool) or not isinstance(value, Real) or kind.__name__ in ("bool_", "longdouble", "timedelta64"):
            raise TypeError(f"{name} must be a real number, not {kind.__name__} {shown(value)}")
        try:
            converted = float(cast(SupportsFloat, value))
        except OverflowError:
            raise ValueError(f"{name} is {shown(value)}; it must be a number that float64 holds") from None
        if converted != value and value == value:
            raise ValueError(f"{name} is {shown(value)}; it must be a number that float64 holds exactly")
        value = converted
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be finite")
    return cast(float, value)


def positive(name: str, value: Any) -> float:
    """A finite float above 0."""
    number = real(name, value)
    if not number > 0.0:
        raise ValueError(f"{name} is {number!r}; it must be positive")
    return number


def is_masked(array: Any) -> bool:
    """Whether it is a masked array, without the import of numpy.ma, which takes milliseconds."""
    ma = sys.modules.get("numpy.ma")
    return isinstance(array, getattr(ma, "MaskedArray", ()))


def choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the strings."""
    if not isinstance(value, str):
        kind, known = type(value).__name__, ", ".join(map(repr, choices))
        raise TypeError(f"{name} must be a str, one of {known}, not {kind} {shown(value)}")
    if value not in choices:
        raise ValueError(f"{name} is {shown(value)}; it must be one of {', '.join(map(repr, choices))}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """A bool, Python's or NumPy's."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__} {shown(value)}")
    return bool(value)
