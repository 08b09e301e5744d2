"""The rotary schedule that a model's configuration asks for: `posenc.rope.from_config`."""

from collections.abc import Mapping
from typing import Any

from posenc import _check
from posenc._load import core
from posenc._schedules import Schedule, default, dynamic, linear, llama3, longrope, proportional, yarn


def from_config(
    config: Mapping[str, Any] | Any, *, dim: int | None = None, length: int | None = None, layer_type: str | None = None
) -> Schedule:
    """The schedule that a configuration of Hugging Face's transformers asks for.

    Parameters
    ----------
    config : mapping, or object with ``to_dict()``
        A model's configuration, as in its config.json, of transformers 4 or 5, or its ``rope_scaling`` or ``rope_parameters``
        alone. Keys that its type of schedule has not are ignored, as there.
    dim : int, optional
        Width of a head. By default the configuration's ``qk_rope_head_dim``, ``head_dim`` or hidden_size /
        num_attention_heads.
    length : int, optional
        That of the text, for "dynamic" and "longrope"; see there for what None means.
    layer_type : str, optional
        Which of the layers' schedules, if the configuration has several.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        If something is missing or not as the schedule's function wants it, or the type is unknown.

    Examples
    --------
    >>> import posenc
    >>> config = {
    ...     "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072, "rope_theta": 500000.0,
    ...     "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    ...                      "original_max_position_embeddings": 8192},
    ... }
    >>> schedule = posenc.rope.from_config(config)
    >>> schedule == posenc.rope.llama3(128, 8.0, 8192, base=500000.0)
    True
    """
    return _Reader(config, dim, layer_type).schedule(length)


_LOCAL = "rope_local_base_freq"  # of Gemma 3, before a schedule for each type of layer was said so


class _Reader:
    """A configuration: its rotary parameters, and around them the model's."""

    def __init__(self, config: Any, dim: int | None, layer_type: str | None) -> None:
        config = config.to_dict() if hasattr(config, "to_dict") else config
        if not isinstance(config, Mapping):
            raise TypeError(f"config must be a mapping or have to_dict(), not {type(config).__name__}")
        self._model: Mapping[str, Any] = config
        self._dim = dim
        if layer_type is not None and not isinstance(layer_type, str):
            raise TypeError(f"layer_type must be a str, not {type(layer_type).__name__} {_check.shown(layer_type)}")
        rope = config if _is_alone(config) else _rotary(config)
        layers = {name: value for name, value in rope.items() if isinstance(value, Mapping)}
        self._is_nested = bool(layers)
        if not layers and config.get(_LOCAL) is not None:
            layers = {"full_attention": rope, "sliding_attention": {"rope_theta": config[_LOCAL]}}
        if layers and layer_type not in layers:
            known = ", ".join(map(_named, layers))
            raise ValueError(f"layer_type is {layer_type!r}; config has a schedule for each of {known}")
        self._rope: Mapping[str, Any] = rope if layer_type is None else layers.get(layer_type, rope)

    def _find(self, *names: str) -> Any:
        """The first of these that is there, in the rotary parameters or else around them."""
        found = (where[name] for name in names for where in (self._rope, self._model) if where.get(name) is not None)
        return next(found, None)

    def _needed(self, *names: str) -> Any:
        value = self._find(*names)
        if value is None:
            raise ValueError(f"config has no {' nor '.join(names)}, which its schedule needs")
        return value

    def _some(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := self._rope.get(name)) is not None}

    def _head(self) -> dict[str, Any]:
        """What all schedules want to know."""
        part = self._find("partial_rotary_factor", "rotary_pct")
        width = self._dim
        if width is None and self._find("qk_rope_head_dim") is not None:
            width, part = self._find("qk_rope_head_dim"), None  # what is rotated of a head, all of it
        if width is None and part is None:
            width = self._find("rotary_dim")
        if width is None:
            width = self._find("head_dim", "attention_head_dim", "kv_channels")
        if width is None:
            whole = _check.integer("hidden_size", self._needed("hidden_size", "n_embd"), least=1)
            width = whole // _check.integer("num_attention_heads", self._needed("num_attention_heads", "n_head"), least=1)
        head = {"dim": width, "base": self._find("rope_theta", "rotary_emb_base"), "partial_rotary_factor": part}
        return {name: value for name, value in head.items() if value is not None}

    def _original(self) -> int:
        name = "original_max_position_embeddings"
        # some keep it beside the rotary parameters, and mean it there
        beside = None if self._is_nested else self._model.get(name)
        return _check.integer(name, self._needed(name, "max_position_embeddings") if beside is None else beside, least=1)

    def _factor(self) -> float:
        factor = self._rope.get("factor")
        if factor is not None:
            return _check.real("factor", factor)
        longest = _check.integer("max_position_embeddings", self._needed("max_position_embeddings"), least=1)
        with core.DefaultArithmetic():
            return longest / self._original()

    def _yarn(self) -> dict[str, Any]:
        named = self._some("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate")
        return {"factor": self._factor(), "original_max_position_embeddings": self._original(), **named}

    def _longrope(self, length: int | None) -> dict[str, Any]:
        original = self._original()
        # Phi-3.5-MoE has an amplitude for each of the two lists
        mscale = self._rope.get("long_mscale" if length is not None and length > original else "short_mscale")
        amplitude = self._rope.get("attention_factor") if mscale is None else mscale
        return {
            **{name: self._needed(name) for name in ("short_factor", "long_factor")},
            **({"factor": self._factor()} if amplitude is None else {"attention_factor": amplitude}),
            "original_max_position_embeddings": original,
            "length": length,
        }

    def _llama3(self) -> dict[str, Any]:
        named = {name: self._needed(name) for name in ("factor", "low_freq_factor", "high_freq_factor")}
        return {"original_max_position_embeddings": self._original(), **named}

    def schedule(self, length: int | None) -> Schedule:
        if length is not None:
            length = _check.integer("length", length, least=1)
        name, kind = _said(self._rope, "rope_type", "type")
        kind = "default" if kind is None else kind
        if not isinstance(kind, str):
            raise TypeError(f"{name} must be a str, not {type(kind).__name__} {_check.shown(kind)}")
        head = self._head()
        if kind in ("default", "mrope"):
            return default(**head)
        if kind == "linear":
            return linear(factor=self._needed("factor"), **head)
        if kind == "dynamic":
            longest = self._needed("max_position_embeddings")
            return dynamic(factor=self._needed("factor"), max_position_embeddings=longest, length=length, **head)
        if kind == "yarn":
            return yarn(**self._yarn(), **head)
        if kind in ("longrope", "su"):
            return longrope(**self._longrope(length), **head)
        if kind == "llama3":
            return llama3(**self._llama3(), **head)
        if kind == "proportional":
            return proportional(**self._some("factor"), **head)
        known = "default, mrope, linear, dynamic, yarn, longrope, su, llama3, proportional"
        raise ValueError(f"rope_type is {_check.shown(kind)}; it must be one of {known}")


def _rotary(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rotary parameters of a model's configuration; none, if it says nothing of them."""
    name, rope = _said(config, "rope_parameters", "rope_scaling")
    if rope is not None and not isinstance(rope, Mapping):
        raise TypeError(f"{name} of config is {_check.shown(rope)}; it must be a mapping")
    return rope or {}


def _said(where: Mapping[str, Any], *names: str) -> tuple[str, Any]:
    """The first of these that is neither None nor empty, and its name; else the last, and None."""
    for name in names:
        value = where.get(name)
        if value is not None and not (isinstance(value, str | Mapping) and len(value) == 0):
            return name, value
    return names[-1], None


def _named(layer: Any) -> str:
    return layer if isinstance(layer, str) else _check.shown(layer)


def _is_alone(config: Mapping[str, Any]) -> bool:
    """Whether these are the rotary parameters, of all layers or of each type of them, and no model's configuration."""
    nested = bool(config) and all(isinstance(value, Mapping) for value in config.values())
    known = config.keys() & {"rope_parameters", "rope_scaling"}
    return not known and (nested or "rope_type" in config or "type" in config)
