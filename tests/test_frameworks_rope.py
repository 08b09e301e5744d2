"""Rotary schedules and caches against those of transformers and diffusers, within what these lose in float32.

A frequency is there 1 / pow(base, float32(2 k / d)). The exponent, below 1, is rounded, which moves the power by
ln(base) 2**-24 of it; pow is within an ulp, and at most six operations follow, by factors and on ramps. `lost` is
(ln(base) + 8) 2**-24 of the value and, where waves are not all stretched alike, of twice the wave as it was, since ramps go
from the one to the other. Angles, sines and cosines lose what `frameworks.bound` says, with 2**-21 for the operations on
frequencies. Amplitudes are float64 there too. Another schedule is off by 1000 times that
(`test_another_schedule_would_show`).
"""

import itertools
import math

import numpy as np
import pytest
from frameworks import EMBEDDINGS, bound, called, close, hf, quietly, real

from posenc import rope

LENGTH = 100
SHORT, LONG = [1.0 + k / 37 for k in range(32)], [1.03 * 1.09**k for k in range(32)]
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
LONGROPE = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 64}


def lost(schedule, base=10000.0):
    """What frequencies may be off by."""
    ours = schedule.frequencies.values
    waves = np.geomspace(1.0, float(base) ** -(1.0 - 1.0 / len(ours)), len(ours))
    ramped = (ours / waves).min() < 0.999 * (ours / waves)[0]
    return (math.log(base) + 8.0) * 2**-24 * (ours + 2 * waves * ramped)


def agree(theirs, schedule, base=10000.0):
    close(np.asarray(theirs, np.float64), schedule.frequencies.values, lost(schedule, base))


# ---- transformers' functions -------------------------------------------------------------------------------------------

# parameters, base, length, other keywords of LlamaConfig, ours; heads are 64 wide
FUNCTIONS = [
    ({"rope_type": "linear", "factor": 2.0}, 10000.0, None, {}, rope.linear(64, 2.0)),
    ({"rope_type": "linear", "factor": 0.3}, 5e5, None, {}, rope.linear(64, 0.3, base=5e5)),
    *[
        (
            {"rope_type": "dynamic", "factor": factor},
            base,
            length,
            {"max_position_embeddings": 2048},
            rope.dynamic(64, factor, 2048, length=length, base=base),
        )
        for factor, base, length in [(2.0, 10000.0, None), (2.0, 1e6, 100), (4.0, 10000.0, 2200), (4.0, 5e5, 9999)]
    ],
    (YARN, 10000.0, None, {}, rope.yarn(64, 40.0, 4096)),
    ({**YARN, "truncate": False}, 150000.0, None, {}, rope.yarn(64, 40.0, 4096, base=150000.0, truncate=False)),
    ({**YARN, "factor": 0.7}, 10000.0, None, {}, rope.yarn(64, 0.7, 4096)),
    (
        {**YARN, "beta_fast": 9, "beta_slow": 2.5},
        1e6,
        None,
        {},
        rope.yarn(64, 40.0, 4096, beta_fast=9, beta_slow=2.5, base=1e6),
    ),
    ({**YARN, "beta_fast": 700, "beta_slow": 700}, 10000.0, None, {}, rope.yarn(64, 40, 4096, beta_fast=700, beta_slow=700)),
    *[
        ({**YARN, **scales}, 10000.0, None, {}, rope.yarn(64, 40.0, 4096, **scales))
        for scales in [
            {"mscale": 0.707, "mscale_all_dim": 1.0},
            {"mscale": 0.707},
            {"mscale_all_dim": 0.707},
            {"mscale": 0.0, "mscale_all_dim": 1.0},
            {"mscale": 2.0, "mscale_all_dim": 1.0, "attention_factor": 0.7},
        ]
    ],
    ({**YARN, "factor": None}, 10000.0, None, {"max_position_embeddings": 30000}, rope.yarn(64, 30000 / 4096, 4096)),
    *[
        ({**LONGROPE, **more}, 10000.0, length, {}, rope.longrope(64, SHORT, LONG, 64, length=length, **more))
        for length in [None, 64, 65]
        for more in [{"factor": 32.0}, {"factor": 0.5}, {"factor": 1.0}, {"attention_factor": 1.25}]
    ],
    (
        {**LONGROPE, "factor": None},
        10000.0,
        65,
        {"max_position_embeddings": 2000},
        rope.longrope(64, SHORT, LONG, 64, length=65, factor=2000 / 64),
    ),
    ({"rope_type": "llama3", **LLAMA3}, 5e5, None, {}, rope.llama3(64, 8.0, 8192, base=5e5)),
    ({"rope_type": "llama3", **LLAMA3, "factor": 32.0}, 5e5, None, {}, rope.llama3(64, 32.0, 8192, base=5e5)),
    (
        {"rope_type": "llama3", **LLAMA3, "low_freq_factor": 0.5, "high_freq_factor": 7.3},
        10000.0,
        None,
        {},
        rope.llama3(64, 8.0, 8192, low_freq_factor=0.5, high_freq_factor=7.3),
    ),
    (
        {"rope_type": "proportional", "partial_rotary_factor": 0.25},
        1e6,
        None,
        {},
        rope.proportional(64, base=1e6, partial_rotary_factor=0.25),
    ),
    (
        {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.7},
        10000.0,
        None,
        {},
        rope.proportional(64, factor=2.0, partial_rotary_factor=0.7),
    ),
    (
        {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.35},  # 22 of 64
        10000.0,
        None,
        {},
        rope.linear(64, 2.0, partial_rotary_factor=0.35),
    ),
]


@pytest.mark.parametrize(("parameters", "base", "length", "more", "ours"), FUNCTIONS)
def test_functions(parameters, base, length, more, ours):
    functions = real("transformers.modeling_rope_utils", "rotary schedules")
    config = llama({**parameters, "rope_theta": base}, **more)
    theirs, amplitude = quietly(functions.ROPE_INIT_FUNCTIONS[parameters["rope_type"]], config, seq_len=length)
    agree(theirs, ours, base)
    assert abs(amplitude - ours.amplitude) <= 2**-51
    assert rope.from_config(config, length=length) == ours


def test_another_schedule_would_show():
    """Each of those above differs from all others and the default, in amplitude or in a frequency, but for the same numbers."""
    made = [(ours, base) for _, base, _, _, ours in FUNCTIONS]
    made += [(rope.default(64, base=base), base) for base in {base for _, base in made}]
    for (one, base), (other, _) in itertools.combinations(made, 2):
        if len(one.frequencies) == len(other.frequencies) and abs(one.amplitude - other.amplitude) < 1e-3:
            apart = np.abs(one.frequencies.values - other.frequencies.values)
            assert (apart > 1000 * lost(one, base)).any() or not apart.any(), (one, other)


# ---- models of transformers --------------------------------------------------------------------------------------------


def llama(parameters, **more):
    module = real(hf("llama"), "rotary schedules of configurations")
    return quietly(module.LlamaConfig, hidden_size=128, num_attention_heads=2, rope_parameters=dict(parameters), **more)


HEADS = {"hidden_size": 128, "num_attention_heads": 2}
HALF = {"short_factor": SHORT[:16], "long_factor": LONG[:16]}
DEEPSEEK = {"type": "yarn", "factor": 40, "mscale": 0.7, "mscale_all_dim": 1.0, "beta_fast": 32, "beta_slow": 1}
V4 = "rope_scaling"
# model, prefix of the classes, keywords of the configuration as in config.json, of from_config
MODELS = {
    "LLaMA": ("llama", "Llama", HEADS, {}),
    "CodeLlama": ("llama", "Llama", {**HEADS, "rope_theta": 1e6, "head_dim": 32}, {}),
    "LLaMA, linear": ("llama", "Llama", {**HEADS, V4: {"type": "linear", "factor": 2.0}}, {}),
    "LLaMA 3.1": ("llama", "Llama", {**HEADS, "rope_theta": 5e5, V4: {"rope_type": "llama3", **LLAMA3}}, {}),
    "LLaMA, yarn of its length": (
        "llama",
        "Llama",
        {**HEADS, "max_position_embeddings": 3000, V4: {"rope_type": "yarn", "factor": 4.0}},
        {},
    ),
    "Qwen2": ("qwen2", "Qwen2", {**HEADS, "rope_theta": 1e6}, {}),
    "Qwen2.5, yarn": ("qwen2", "Qwen2", {**HEADS, "rope_theta": 1e6, V4: {**YARN, "factor": 4.0}}, {}),
    "Qwen2-VL": ("qwen2_vl", "Qwen2VL", {**HEADS, V4: {"type": "mrope", "mrope_section": [8, 12, 12]}}, {}),
    "Mistral": ("mistral", "Mistral", {**HEADS, "rope_theta": 1e6, "head_dim": 128}, {}),
    "Phi": ("phi", "Phi", {**HEADS, "partial_rotary_factor": 0.4}, {}),
    "Phi-3": (
        "phi3",
        "Phi3",
        {**HEADS, "original_max_position_embeddings": 64, V4: {"type": "longrope", "short_factor": SHORT, "long_factor": LONG}},
        {},
    ),
    "Phi-3, su": (
        "phi3",
        "Phi3",
        {**HEADS, "original_max_position_embeddings": 64, V4: {**LONGROPE, "rope_type": "su"}},
        {},
    ),
    "Phi-4-mini": (
        "phi3",
        "Phi3",
        {**HEADS, "partial_rotary_factor": 0.5, "original_max_position_embeddings": 64, V4: {"type": "longrope", **HALF}},
        {},
    ),
    "DeepSeek-V3": (
        "deepseek_v3",
        "DeepseekV3",
        {"qk_rope_head_dim": 32, "max_position_embeddings": 163840, V4: {**DEEPSEEK, "original_max_position_embeddings": 4096}},
        {},
    ),
    "DeepSeek-V3, no factor": (
        "deepseek_v3",
        "DeepseekV3",
        {"max_position_embeddings": 163840, V4: {**DEEPSEEK, "original_max_position_embeddings": 4096, "factor": None}},
        {},
    ),
    "gpt-oss": ("gpt_oss", "GptOss", {}, {}),
    "Gemma 2": ("gemma2", "Gemma2", {}, {}),
    "Gemma 3": ("gemma3", "Gemma3", {"rope_theta": 1e6, V4: {"rope_type": "linear", "factor": 8.0}}, {}),
    "Gemma 4": ("gemma4", "Gemma4", {"num_hidden_layers": 6}, {"full_attention": {"dim": 512}}),
    "GPT-NeoX": ("gpt_neox", "GPTNeoX", {**HEADS, "rotary_pct": 0.5, "rotary_emb_base": 5000}, {}),
    "GLM 4": ("glm4", "Glm4", {}, {}),
    "StableLM": ("stablelm", "StableLm", {**HEADS, "partial_rotary_factor": 0.25}, {}),
    "MiniMax-M2": ("minimax_m2", "MiniMaxM2", {}, {}),
    "ModernBERT": ("modernbert", "ModernBert", {}, {}),
    "Ministral 3": ("ministral3", "Ministral3", {}, {}),
    "Qwen3-Next": ("qwen3_next", "Qwen3Next", {}, {}),
    "Phi-3.5-MoE": (
        "phimoe",
        "Phimoe",
        {**HEADS, V4: {**LONGROPE, "type": "longrope", "short_mscale": 1.25, "long_mscale": 1.5}},
        {},
    ),
}


@pytest.mark.parametrize("model", MODELS)
def test_models(model):
    """Their modules' frequencies, of each type of layer, are those that from_config reads off their configuration."""
    name, prefix, keywords, dims = MODELS[model]
    module = real(hf(name), "from_config")
    kind = getattr(module, f"{prefix}TextConfig", None) or getattr(module, f"{prefix}Config")
    config = quietly(kind, **keywords)
    rotary = getattr(module, f"{prefix}TextRotaryEmbedding", None) or getattr(module, f"{prefix}RotaryEmbedding")
    rotary = quietly(rotary, config)
    found = {key: part for key, part in rotary.named_buffers() if key.endswith("inv_freq") and "original" not in key}
    assert found
    for key, theirs in found.items():
        layer = key.removesuffix("_inv_freq") if key != "inv_freq" else None
        ours = rope.from_config(config, layer_type=layer, **dims.get(layer, {}))
        base = (config.rope_parameters[layer] if layer else config.rope_parameters)["rope_theta"]
        agree(theirs, ours, base)
        if model != "Phi-3.5-MoE":  # its module takes others
            scaling = getattr(rotary, f"{layer}_attention_scaling" if layer else "attention_scaling")
            assert abs(scaling - ours.amplitude) <= 2**-51


def after(module, rotary, length):
    """Their frequencies, after a text of that length."""
    rotary(module.torch.empty(1), module.torch.arange(length)[None])
    return rotary.inv_freq


def test_a_short_text_after_a_long_one():
    module = real(hf("llama"), "dynamic schedules after texts of different lengths")
    config = llama({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}, max_position_embeddings=128)
    rotary = module.LlamaRotaryEmbedding(config)
    for length in [20, 128, 129, 400, 20, 300, 1000, 20]:
        agree(after(module, rotary, length), rope.from_config(config, length=length))


def test_texts_of_any_length_with_two_lists():
    module = real(hf("phi3"), "longrope by the length of the text")
    keywords = {"original_max_position_embeddings": 64, "max_position_embeddings": 2048}
    config = quietly(module.Phi3Config, **HEADS, **keywords, rope_parameters={**LONGROPE, "rope_theta": 10000.0})
    rotary = quietly(module.Phi3RotaryEmbedding, config)
    for length in [20, 64, 65, 500, 64, 20, 500]:
        ours = rope.from_config(config, length=length)
        agree(after(module, rotary, length), ours)
        assert ours == rope.longrope(64, SHORT, LONG, 64, length=length, factor=32.0)


# ---- caches ------------------------------------------------------------------------------------------------------------


def check_cache(theirs, schedule, layout):
    """Cosines and sines, or one array of theirs, by ours in float64."""
    ours = rope.cache(LENGTH, schedule, layout=layout, dtype="float64")
    for their, our in zip(theirs, ours, strict=True) if layout != "complex" else [(theirs, ours)]:
        angles = np.arange(LENGTH).reshape(-1, 1) * schedule.frequencies.values.max()
        close(called(np.asarray, their), our, schedule.amplitude * bound(angles, 2**-21))


@pytest.mark.parametrize(
    "parameters",
    [
        {"rope_type": "default"},
        {"rope_type": "linear", "factor": 2.0},
        {"rope_type": "llama3", **LLAMA3},
        YARN,
        {**LONGROPE, "factor": 32.0},
        {"rope_type": "dynamic", "factor": 2.0},
    ],
    ids=lambda parameters: parameters["rope_type"],
)
def test_llama_caches(parameters):
    module = real(hf("llama"), "caches with halves")
    config = llama({**parameters, "rope_theta": 10000.0}, max_position_embeddings=60)
    cosines, sines = module.LlamaRotaryEmbedding(config)(module.torch.empty(1), module.torch.arange(LENGTH)[None])
    schedule = rope.from_config(config, length=LENGTH)
    check_cache((cosines[0], sines[0]), schedule, "halves")
    assert schedule.frequencies != rope.default(64).frequencies or parameters["rope_type"] == "default"


def test_gpt_oss_caches():
    module = real(hf("gpt_oss"), "split caches")
    config = quietly(module.GptOssConfig)
    cosines, sines = module.GptOssRotaryEmbedding(config)(module.torch.empty(1), module.torch.arange(LENGTH)[None])
    check_cache((cosines[0], sines[0]), rope.from_config(config), "split")


def test_gptj_caches():
    module = real(hf("gptj"), "caches with pairs")
    config = quietly(module.GPTJConfig, n_embd=256, n_head=4, rotary_dim=48)
    sines, cosines = module.GPTJRotaryEmbedding(config)(module.torch.empty(1), module.torch.arange(LENGTH)[None])
    schedule = rope.from_config(config)
    assert schedule == rope.default(48)
    check_cache((cosines[0], sines[0]), schedule, "split")
    repeated = [part.repeat_interleave(2, -1)[0] for part in (cosines, sines)]  # as its apply_rotary_pos_emb does
    check_cache(repeated, schedule, "pairs")


@pytest.mark.parametrize(("linear", "ntk"), [(1.0, 1.0), (4.0, 1.0), (1.0, 8.0), (0.3, 2.5)])
def test_diffusers_caches(linear, ntk):
    module = real(EMBEDDINGS, "caches with pairs, with halves and of complex numbers")
    for dim, base in itertools.product([4, 6, 64], [10000.0, 256.0]):
        schedule = rope.linear(dim, linear, base=base * ntk)
        arguments = (module.get_1d_rotary_pos_embed, dim, LENGTH, base)
        factors = {"linear_factor": linear, "ntk_factor": ntk}
        check_cache(quietly(*arguments, **factors), schedule, "complex")
        check_cache(quietly(*arguments, **factors, use_real=True), schedule, "pairs")
        check_cache(quietly(*arguments, **factors, use_real=True, repeat_interleave_real=False), schedule, "halves")


# ---- where transformers differs ----------------------------------------------------------------------------------------


def test_dynamic_schedules_remember_there():
    """The longest text so far, as long as texts stay at or above max_position_embeddings. Ours depend on this text alone."""
    module = real(hf("llama"), "dynamic schedules, which are remembered there")
    config = llama({"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}, max_position_embeddings=128)
    rotary = module.LlamaRotaryEmbedding(config)
    for length, as_if in [(400, 400), (300, 400), (128, 400), (127, 127), (300, 300)]:
        theirs = after(module, rotary, length)
        agree(theirs, rope.from_config(config, length=as_if))
        if length != as_if:
            ours = rope.from_config(config, length=length)
            assert (np.abs(np.asarray(theirs) - ours.frequencies.values) > 1000 * lost(ours)).any()


def test_phimoe_has_no_long_texts_there():
    """Their amplitude is that of long texts, but with the frequencies of short ones; ours has both."""
    module = real(hf("phimoe"), "Phi-3.5-MoE, whose frequencies are always those of short texts there")
    scales = {"short_mscale": 1.25, "long_mscale": 1.5}
    config = quietly(module.PhimoeConfig, **HEADS, rope_parameters={**LONGROPE, **scales, "rope_theta": 10000.0})
    rotary = quietly(module.PhimoeRotaryEmbedding, config)
    cosines, sines = rotary(module.torch.empty(1), module.torch.arange(LENGTH)[None])
    check_cache((cosines[0], sines[0]), rope.longrope(64, SHORT, LONG, 64, attention_factor=1.5), "halves")
    assert rope.from_config(config, length=LENGTH) == rope.longrope(64, SHORT, LONG, 64, length=LENGTH, attention_factor=1.5)
    assert rope.from_config(config, length=64) == rope.longrope(64, SHORT, LONG, 64, attention_factor=1.25)
