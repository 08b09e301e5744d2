"""`posenc.torch` with PyTorch, by bits: what it makes is what the core makes of the same numbers.

There is no other device here than the CPU. The code for others runs on the CPU's tensors when `elsewhere` says that the core
cannot read them.
"""

import copy
import importlib
import io
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import posenc

torch = pytest.importorskip("torch", reason="NOT TESTED: posenc.torch, as PyTorch is not installed")
pytest.importorskip("ml_dtypes", reason="NOT TESTED: posenc.torch, as ml_dtypes is not installed")
room = importlib.import_module("posenc.torch")
ops = importlib.import_module("posenc._torch_ops")

DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16"}
NAMES = [*posenc.CONVENTIONS]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
of_pytorch = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch uses what it deprecates


@pytest.fixture(params=["here", "elsewhere"])
def place(request):
    """On the CPU, and as if it were another device."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def here():
    return "here"


@pytest.fixture
def elsewhere(monkeypatch):
    monkeypatch.setattr(ops, "is_here", lambda tensor: False)
    monkeypatch.setattr(room, "is_here", lambda tensor: False)
    ops.TABLES.clear()
    yield "elsewhere"
    ops.TABLES.clear()


def given(*shape, dtype=torch.float32, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.to(dtype)


def array(tensor):
    """The tensor's numbers as the core takes them, by PyTorch's conversion to NumPy alone."""
    import ml_dtypes

    if tensor.dtype == torch.bfloat16:
        return tensor.detach().float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def same(tensor, expected):
    """A tensor and an array of the same shape, dtype and bits."""
    assert tuple(tensor.shape) == expected.shape
    assert DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")) == expected.dtype.name
    size = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    bits = np.ascontiguousarray(expected).view(f"i{tensor.element_size()}")
    np.testing.assert_array_equal(tensor.detach().contiguous().view(size).numpy(), bits)


# ---- the module ------------------------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("place")
def test_module_of_every_convention(name, dtype):
    encoding, x = posenc.convention(name, 8), given(2, 5, 8, dtype=dtype)
    module = room.PositionalEncoding(8, convention=name, scale=1.7)
    assert module.encoding == encoding
    same(module(x), encoding.add(array(x), scale=1.7))
    same(module(x, start=40), encoding.add(array(x), scale=1.7, start=40))


@each_dtype
@pytest.mark.parametrize("shape", [(3, 7, 6), (7, 6), (2, 3, 4, 6), (0, 5, 6), (2, 0, 6), (1, 1, 6)])
@pytest.mark.usefixtures("place")
def test_shapes(shape, dtype):
    x = given(*shape, dtype=dtype)
    same(room.PositionalEncoding(6)(x), posenc.add(array(x)))
    same(room.PositionalEncoding(6, batch_first=False)(x), posenc.add(array(x), axis=0))


@each_dtype
@pytest.mark.usefixtures("place")
def test_strides(dtype):
    x = given(6, 9, 8, dtype=dtype)
    for view in (x[::2, 1:7], x.transpose(0, 1), x[..., ::2], x[:, :1].expand(6, 4, 8), x.permute(2, 1, 0)[:, :, :4]):
        module = room.PositionalEncoding(view.shape[-1], scale=0.3)
        made = module(view)
        same(made, posenc.add(array(view), scale=0.3))
        assert made.is_contiguous()


@pytest.mark.parametrize("start", [0, 255, 256, 10**6, 2**40, 2**63 - 5, -3, -(2**63)])
@pytest.mark.usefixtures("place")
def test_start(start):
    x = given(2, 5, 8, dtype=torch.float64)
    same(room.PositionalEncoding(8)(x, start=start), posenc.add(array(x), start=start))


def test_a_stream_is_the_sequence(place):
    x, module = given(2, 40, 8), room.PositionalEncoding(8)
    whole = module(x)
    assert torch.equal(torch.cat([module(x[:, i : i + 7], start=i) for i in range(0, 40, 7)], 1), whole)
    kinds = {key[1] for key in ops.TABLES._entries}
    assert kinds == (set() if place == "here" else {256})


POSITIONS = {
    "int64": torch.tensor([4, 0, 300]),
    "int32": torch.tensor([4, 0, 300], dtype=torch.int32),
    "uint8": torch.tensor([4, 0, 255], dtype=torch.uint8),
    "of each sequence": torch.tensor([[1, 2, 3], [9, 8, 7]]),
    "of each sequence alone": torch.tensor([[5], [6]]),
    "one": torch.tensor(70),
    "below 0": torch.tensor([-1, 0, 5]),
    "far": torch.tensor([0, 2**62, 1]),
    "float32": torch.tensor([0.5, -7.25, 1e6]),
    "float64": torch.tensor([0.1, -7.2, 1e12], dtype=torch.float64),
    "bfloat16": torch.tensor([0.1, -7.2, 1e3], dtype=torch.bfloat16),
}


@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.usefixtures("place")
def test_positions(positions):
    x = given(2, 3, 8)
    same(room.PositionalEncoding(8)(x, positions=positions), posenc.add(array(x), positions=array(positions)))
    same(room.encode(positions, 8, dtype=torch.float64), posenc.encode(array(positions), 8, dtype="float64"))


@pytest.mark.usefixtures("place")
def test_positions_where_the_sequence_is_first():
    x = given(3, 3, 8)
    positions = torch.tensor([5, 0, 2])
    module = room.PositionalEncoding(8, batch_first=False)
    same(module(x, positions=positions), posenc.add(array(x), positions=array(positions)[:, None]))
    of_each = torch.arange(9).reshape(3, 3)
    same(module(x, positions=of_each), posenc.add(array(x), positions=array(of_each)))


MASK = torch.tensor([[True, True, False, False], [False, True, False, True], [False] * 4, [True] * 4])


@each_dtype
@pytest.mark.parametrize("name", ["transformer", "fairseq"])
@pytest.mark.parametrize("start", [None, 1000])
@pytest.mark.usefixtures("place")
def test_padding(name, start, dtype):
    """Padding gets scale * x alone, -0.0 as well; the others count from the first position."""
    encoding, x = posenc.convention(name, 6), given(4, 4, 6, dtype=dtype)
    x[0, 0] = -0.0
    keep = ~MASK.numpy()
    positions = posenc.positions_from_mask(keep) + (encoding.first if start is None else start)
    expected = encoding.add(array(x), positions=positions, where=keep, scale=0.7)
    arguments = {"convention": name, "scale": 0.7}
    same(room.PositionalEncoding(6, **arguments)(x, padding_mask=MASK, start=start), expected)
    turned = room.PositionalEncoding(6, batch_first=False, **arguments)(x.transpose(0, 1), padding_mask=MASK, start=start)
    same(turned.transpose(0, 1), expected)
    scaled = torch.from_numpy(array(x).astype("f8" if dtype == torch.float64 else "f4")) * 0.7
    assert torch.equal(torch.from_numpy(expected.astype("f8"))[MASK], scaled.to(dtype).double()[MASK])


@pytest.mark.usefixtures("place")
def test_padding_with_positions():
    """Positions of padding are not looked at."""
    x, keep = given(4, 4, 6), ~MASK.numpy()
    positions = torch.arange(16).reshape(4, 4) * 1.5
    expected = posenc.add(array(x), positions=positions.numpy(), where=keep)
    module = room.PositionalEncoding(6)
    same(module(x, positions=positions.masked_fill(MASK, torch.nan), padding_mask=MASK), expected)
    whole = torch.arange(4).masked_fill(torch.tensor([True, False, False, False]), -100)
    only = torch.tensor([[True, False, False, False]]).expand(4, 4)
    expected = posenc.add(array(x), positions=whole.numpy(), where=~only.numpy())
    same(module(x, positions=whole, padding_mask=only), expected)


def test_the_tutorials_class():
    """Within what its own float32 arithmetic loses; shapes, dropout and modes as it has them."""

    class Tutorial(torch.nn.Module):
        def __init__(self, width, dropout, length):
            super().__init__()
            self.dropout = torch.nn.Dropout(dropout)
            angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-np.log(10000.0) / width))
            self.register_buffer("pe", torch.stack([angles.sin(), angles.cos()], -1).reshape(length, 1, width))

        def forward(self, x):
            return self.dropout(x + self.pe[: x.size(0)])

    x = given(100, 3, 64)
    theirs, ours = Tutorial(64, 0.5, 120), room.PositionalEncoding(64, dropout=0.5, batch_first=False)
    for module in (theirs, ours):
        module.eval()
    apart = (theirs(x) - ours(x)).abs().amax((1, 2)) - 2**-22 * x.abs().max()
    assert (apart <= (1.0 + torch.arange(100)) * 2**-22).all()
    assert not torch.equal(theirs(x), ours(x))
    ours.train()
    dropped = ours(x)
    kept = dropped != 0.0
    assert 0.3 < kept.float().mean() < 0.7
    assert torch.equal(dropped[kept], ours.eval()(x)[kept] * 2.0)


def test_autocast_keeps_the_dtype():
    module = room.PositionalEncoding(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in DTYPES:
            x = given(2, 3, 8, dtype=dtype)
            same(module(x), posenc.add(array(x)))


def test_a_value():
    module = room.PositionalEncoding(8, dropout=0.25, scale=2.0, convention="fairseq", padding_idx=4).eval()
    x = given(2, 3, 8)
    assert not module.state_dict()
    assert not [*module.parameters(), *module.buffers()]
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), module.to(torch.float64).to("cpu")):
        assert torch.equal(other(x), module(x))
        assert repr(other) == repr(module)
    assert "8, convention='fairseq', padding_idx=4, scale=2.0, batch_first=True" in repr(module)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), module(x))


def test_encodings_by_themselves():
    e = posenc.Encoding(
        6, frequencies=posenc.frequencies.given([1.0, -0.1, 1 / 3]).scaled(0.7, pi=True), cos_first=True, first=3
    )
    x = given(2, 3, 6)
    same(room.PositionalEncoding(6, convention=e)(x), e.add(array(x)))
    same(room.add(x, convention=e), e.add(array(x)))
    same(room.table(3, 6, convention=e), e.table(3))


def test_meta():
    with torch.device("meta"):
        module = room.PositionalEncoding(8)
    same(module(given(2, 3, 8)), posenc.add(array(given(2, 3, 8))))
    for dtype in DTYPES:
        made = module.to("meta")(torch.empty(2, 3, 8, dtype=dtype, device="meta"), start=7)
        assert (made.device.type, made.shape, made.dtype) == ("meta", (2, 3, 8), dtype)
    made = room.encode(torch.empty(2, 3, device="meta"), 8, dtype=torch.float16)
    assert (made.device.type, made.shape, made.dtype) == ("meta", (2, 3, 8), torch.float16)
    made = room.add_(torch.empty(2, 3, 8, device="meta"))
    assert (made.device.type, made.shape) == ("meta", (2, 3, 8))


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def loaded(pe, **arguments):
    model = torch.nn.ModuleDict({"pos": room.PositionalEncoding(16, **arguments), "out": torch.nn.Linear(2, 2)})
    state = {"pos.pe": pe, **{f"out.{name}": value + 1.0 for name, value in model["out"].state_dict().items()}}
    model.load_state_dict(state, strict=True)
    assert torch.equal(model["out"].bias, state["out.bias"])
    assert "pos.pe" in state


@pytest.mark.parametrize("shape", [(5000, 16), (1, 5000, 16), (5000, 1, 16)])
@each_dtype
def test_a_checkpoint_with_the_tutorials_buffer(shape, dtype):
    divisors = torch.exp(torch.arange(0, 16, 2).float() * (-np.log(10000.0) / 16))
    angles = torch.arange(5000).float()[:, None] * divisors
    loaded(torch.stack([angles.sin(), angles.cos()], -1).reshape(shape).to(dtype))


def test_a_checkpoint_with_another_buffer():
    right = room.table(100, 16)
    for wrong in (right + 1e-3, right[:, :8], room.table(100, 16, start=1), right * 2.0, room.table(100, 16, base=9999.0)):
        with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "pos\.pe"'):
            loaded(wrong)
    with pytest.raises(RuntimeError, match=r"Unexpected key"):
        loaded(right, convention="whisper")
    loaded(room.table(100, 16, convention="fairseq"), convention="fairseq")


# ---- gradients -------------------------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.usefixtures("place")
def test_gradient_is_scale_times_the_sums(dtype):
    x, mask = given(4, 4, 6, dtype=dtype).requires_grad_(), MASK
    module, gradient = room.PositionalEncoding(6, scale=1.5), given(4, 4, 6, dtype=dtype, seed=1)
    for arguments in ({}, {"padding_mask": mask}, {"positions": torch.arange(4.0) / 2}, {"start": 9}):
        (made,) = torch.autograd.grad(module(x, **arguments), x, gradient)
        assert torch.equal(made, gradient * 1.5)


@of_pytorch
def test_gradients_numerically():
    x = given(2, 3, 4, dtype=torch.float64).requires_grad_()
    module = room.PositionalEncoding(4, scale=1.5)
    assert torch.autograd.gradcheck(module, x, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: module(x) ** 3, x)


def test_gradient_goes_to_a_leaf_through_layers():
    embedding = torch.nn.Embedding(10, 8)
    model = torch.nn.Sequential(embedding, room.PositionalEncoding(8, scale=3.0))
    ids = torch.tensor([[1, 2, 2]])
    model(ids).sum().backward()
    assert embedding.weight.grad[[0, 1, 2], 0].tolist() == [0.0, 3.0, 6.0]


@of_pytorch
def test_torch_func():
    x = given(3, 2, 4, dtype=torch.float64)
    module = room.PositionalEncoding(4, scale=2.0)
    expected = module(x)
    assert torch.equal(torch.func.vmap(module)(x), expected)
    assert torch.equal(torch.func.vmap(module, 2, 2)(x.permute(1, 2, 0)), expected.permute(1, 2, 0))
    squares = torch.func.vmap(torch.func.grad(lambda x: (module(x) ** 2).sum()))(x)
    assert torch.equal(squares, expected * 2.0 * 2.0)
    primal, tangent = torch.func.jvp(module, (x,), (x + 1.0,))
    assert torch.equal(primal, expected)
    assert torch.equal(tangent, (x + 1.0) * 2.0)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.equal(torch.func.jvp(module, (x,), (x + 1.0,))[1], (x + 1.0) * 2.0)


def test_vmap_over_positions_and_padding():
    x = given(3, 2, 4, 6)
    positions, masks = torch.arange(12).reshape(3, 4), MASK[None].expand(3, 4, 4)[:, :2]

    def at(x, positions):
        return room.add(x, positions=positions)

    def padded(x, mask):
        return room.add(x, padding_mask=mask)

    each = torch.stack([at(*pair) for pair in zip(x, positions, strict=True)])
    assert torch.equal(torch.func.vmap(at)(x, positions), each)
    each = torch.stack([at(x[0], row) for row in positions])
    assert torch.equal(torch.func.vmap(at, (None, 0))(x[0], positions), each)
    each = torch.stack([padded(*pair) for pair in zip(x, masks, strict=True)])
    assert torch.equal(torch.func.vmap(padded)(x, masks), each)
    assert torch.equal(torch.func.vmap(padded, (0, None))(x, masks[0]), each)
    encoded = torch.func.vmap(lambda p: room.encode(p, 6), 1)(positions)
    assert torch.equal(encoded, room.encode(positions.T, 6))


def test_positions_have_no_gradient():
    positions = torch.arange(3.0, requires_grad=True)
    for call in (lambda: room.encode(positions, 4), lambda: room.PositionalEncoding(4)(torch.zeros(3, 4), positions=positions)):
        with pytest.raises(
            ValueError, match=r"positions requires a gradient, which is not made; positions\.detach\(\) is right"
        ):
            call()
        with torch.no_grad():
            call()


# ---- in place --------------------------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.usefixtures("place")
def test_in_place(dtype):
    x = given(6, 5, 8, dtype=dtype)
    for view in (x, x[::2, 1:], x.transpose(0, 1), x[0], x[..., ::2]):
        expected, address, version = posenc.add(array(view), scale=0.7, start=3), view.data_ptr(), view._version
        assert room.add_(view, scale=0.7, start=3) is view
        same(view, expected)
        assert view.data_ptr() == address
        assert view._version > version
    with torch.inference_mode():
        same(room.add_(torch.zeros(2, 8)), posenc.table(2, 8))


def test_in_place_and_gradients():
    leaf = torch.zeros(2, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        room.add_(leaf)
    assert not leaf.detach().any()
    with torch.no_grad():
        same(room.add_(leaf), posenc.table(2, 4))
    x = given(3, 2, 4).requires_grad_()
    y = x * 1.0
    room.add_(y[1], scale=3.0)
    y.sum().backward()
    assert x.grad[:, 0, 0].tolist() == [1.0, 3.0, 1.0]
    x.grad = None
    y = x * 2.0
    squares = y**2
    with torch.no_grad():
        room.add_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()


# ---- functions -------------------------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("name", NAMES)
def test_tables(name, dtype):
    encoding = posenc.convention(name, 10)
    same(room.table(7, 10, convention=name, dtype=dtype), encoding.table(7, dtype=DTYPES[dtype]))
    same(room.table(7, 10, convention=name, start=-3, dtype=dtype), encoding.table(7, start=-3, dtype=DTYPES[dtype]))
    same(room.table(0, 10, convention=name, dtype=dtype), encoding.table(0, dtype=DTYPES[dtype]))


@each_dtype
@pytest.mark.usefixtures("place")
def test_encode(dtype):
    for positions in (
        torch.tensor([[0, 7], [3, 1]]),
        torch.tensor([0.5, -3.0]),
        torch.tensor(2),
        torch.tensor([]),
        torch.arange(6)[::2],
    ):
        expected = posenc.convention("diffusion", 9, max_period=100.0).encode(array(positions), dtype=DTYPES[dtype])
        made = room.encode(positions, 9, dtype=dtype, convention="diffusion", max_period=100.0)
        same(made, expected)
        made.zero_()  # its own memory, not the table's
    same(room.encode(torch.arange(4), 9, dtype=dtype), posenc.table(4, 9, dtype=DTYPES[dtype]))


@pytest.mark.parametrize("layout", ["split", "halves", "pairs", "row", "stacked", "complex"])
@each_dtype
def test_rope_caches(layout, dtype):
    schedule = posenc.rope.yarn(16, 4.0, 128)
    if layout == "complex" and dtype.itemsize == 2:
        with pytest.raises(TypeError, match="it must be float32 or float64"):
            room.rope_cache(9, 16, layout=layout, dtype=dtype)
        return
    for ours, theirs in ((16, posenc.rope.default(16)), (schedule, schedule)):
        made = room.rope_cache(9, ours, layout=layout, start=5, dtype=dtype)
        expected = posenc.rope.cache(9, theirs, layout=layout, start=5, dtype=DTYPES[dtype])
        if isinstance(expected, np.ndarray):
            made, expected = (made,), (expected,)
        for tensor, values in zip(made, expected, strict=True):
            if layout == "complex":
                assert tensor.is_complex()
                tensor, values = torch.view_as_real(tensor), values.view(values.real.dtype).reshape(*values.shape, 2)
            same(tensor, values)


def test_nothing_is_copied():
    made = np.zeros((3, 4), np.float32)
    tensor = ops.as_tensor(made)
    tensor += 1.0
    assert made.all()
    ops.as_array(tensor)[0] = 7.0
    assert made[0, 0] == 7.0
    halves = torch.zeros(3, 4, dtype=torch.bfloat16)
    ops.as_array(halves)[1] = 1.5
    assert halves.sum(1).tolist() == [0.0, 6.0, 0.0]
    assert ops.as_tensor(ops.as_array(halves)).data_ptr() == halves.data_ptr()


# ---- other devices ---------------------------------------------------------------------------------------------------


def test_tables_elsewhere_are_kept_and_grow(elsewhere, monkeypatch):
    made, module = [], room.PositionalEncoding(8)
    of = ops.encoding_of

    def counted(text):
        encoding = of(text)
        return type("Counted", (), {"__getattr__": lambda _, name: (made.append(name), getattr(encoding, name))[1]})()

    monkeypatch.setattr(ops, "encoding_of", counted)
    x = given(1, 300, 8)
    for length in (1, 100, 256, 257, 300, 5, 300):
        same(module(x[:, :length]), posenc.add(array(x[:, :length])))
    assert made.count("table") == 2  # of 256 rows, and of 512
    assert ops.TABLES.nbytes == (256 + 512) * 8 * 4
    monkeypatch.setattr(ops, "TABLE_BYTES", 1024 * 8 * 4)
    same(module(x, start=700), posenc.add(array(x), start=700))
    same(module(x, start=800), posenc.add(array(x), start=800))  # too long to be kept
    assert ops.TABLES.nbytes == (256 + 512 + 1024) * 8 * 4
    room.clear_cache()
    assert ops.TABLES.nbytes == 0


@pytest.mark.usefixtures("elsewhere")
def test_tables_elsewhere_are_not_mistaken():
    x = given(1, 5, 8)
    for name, extras in (
        ("transformer", {}),
        ("transformer", {"base": 500.0}),
        ("whisper", {}),
        ("marian", {}),
        ("transformer", {}),
    ):
        for dtype in DTYPES:
            expected = posenc.convention(name, 8, **extras).add(array(x.to(dtype)))
            same(room.add(x.to(dtype), convention=name, **extras), expected)
    with torch.inference_mode():
        room.add(given(1, 600, 8))
    y = given(1, 600, 8).requires_grad_()
    room.add(y).sum().backward()
    assert (y.grad == 1.0).all()


@pytest.mark.usefixtures("elsewhere")
def test_large_frequencies_elsewhere():
    """A kept table would go beyond the domain where the rows asked for do not."""
    encoding = posenc.Encoding(2, frequencies=posenc.frequencies.given([2.0**60]))
    x = given(1, 5, 2)
    same(room.add(x, convention=encoding), encoding.add(array(x)))
    same(room.encode(torch.arange(5), 2, convention=encoding), encoding.encode(np.arange(5)))
    with pytest.raises(ValueError, match="position \\* frequency must be at most"):
        room.add(x, convention=encoding, start=100)


# ---- compiled --------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled():
    """Without a break in the graph, by everything but the last step, which needs a C++ compiler and a minute."""
    pytest.importorskip("torch._dynamo", reason="NOT TESTED: what is compiled")
    torch.compiler.reset()
    yield lambda function, **more: torch.compile(function, fullgraph=True, **{"backend": "aot_eager", **more})
    torch.compiler.reset()


@each_dtype
@pytest.mark.usefixtures("place")
def test_compiled_module(compiled, dtype):
    module, e = room.PositionalEncoding(8, scale=3.0, convention="whisper"), posenc.convention("whisper", 8)
    quick = compiled(module, dynamic=True)
    for length in (3, 5, 17, 300):
        x = given(2, length, 8, dtype=dtype)
        same(quick(x), e.add(array(x), scale=3.0))
        same(quick(x, start=2 * length), e.add(array(x), scale=3.0, start=2 * length))
    x = given(4, 4, 8, dtype=dtype)
    same(quick(x, positions=torch.arange(4) * 3), e.add(array(x), scale=3.0, positions=np.arange(4) * 3))
    keep = ~MASK.numpy()
    expected = e.add(array(x), scale=3.0, positions=posenc.positions_from_mask(keep), where=keep)
    same(quick(x, padding_mask=MASK), expected)
    x.requires_grad_()
    quick(x).sum().backward()
    assert (x.grad == 3.0).all()
    first = compiled(room.PositionalEncoding(8, batch_first=False))
    same(
        first(x, padding_mask=MASK),
        posenc.add(array(x), positions=np.moveaxis(posenc.positions_from_mask(keep), -1, 0), where=keep.T),
    )


def test_compiled_steps_are_compiled_once(compiled):
    """A decoder's step, whose start is another each time."""
    from torch._dynamo.testing import CompileCounter

    counter, module = CompileCounter(), room.PositionalEncoding(8)
    step = compiled(lambda x, start: module(x, start=start), backend=counter)
    for start in range(10):
        same(step(given(2, 1, 8), start), posenc.add(array(given(2, 1, 8)), start=start))
    assert counter.frame_count <= 4  # 0, 1, any, at most


def test_compiled_functions(compiled):
    x, encoding = given(3, 8), posenc.Encoding(8, base=500.0)
    same(
        compiled(lambda t: room.encode(t, 6, convention="diffusion") * 2)(torch.arange(3.0)),
        posenc.convention("diffusion", 6).encode([0, 1, 2]) * 2,
    )
    same(compiled(lambda x: room.add(x, convention=encoding))(x), encoding.add(array(x)))
    same(compiled(lambda x: room.add_(x * 1.0, base=500.0))(x), encoding.add(array(x)))
    same(compiled(lambda x: room.table(len(x), 8, base=500.0) + 0.0, dynamic=True)(x), encoding.table(3))


def test_compiled_functions_heed_their_arguments(compiled):
    x, encodings = given(3, 8), [posenc.Encoding(8), posenc.Encoding(8, base=500.0), posenc.Encoding(8, first=2)]
    quick = compiled(lambda x, encoding: room.add(x, convention=encoding))
    named = compiled(lambda x, name: room.add(x, convention=name))
    for _ in range(2):
        for encoding in encodings:
            same(quick(x, encoding), encoding.add(array(x)))
        for name in ("transformer", "whisper", "marian"):
            same(named(x, name), posenc.convention(name, 8).add(array(x)))


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_compiled_to_the_last_step():
    if not shutil.which("g++") and not shutil.which("clang++"):
        pytest.skip("NOT TESTED: code that inductor makes, as there is no C++ compiler")
    e, module = posenc.Encoding(8), room.PositionalEncoding(8, scale=3.0)
    quick = torch.compile(lambda x: module(x * 2.0) + 1.0, fullgraph=True, dynamic=True)
    x = given(2, 5, 8).requires_grad_()
    same(quick(x), e.add(array(x * 2.0), scale=3.0) + np.float32(1.0))
    quick(x).sum().backward()
    assert (x.grad == 6.0).all()
    torch.compiler.reset()


def test_exported():
    """An exported program says its encoding itself."""
    module = room.PositionalEncoding(8, convention="whisper", scale=2.0).eval()
    program = torch.export.export(module, (torch.zeros(2, 5, 8),), dynamic_shapes={"x": {1: torch.export.Dim("n", max=999)}})
    x = given(2, 7, 8)
    same(program.module()(x), posenc.convention("whisper", 8).add(array(x), scale=2.0))


@pytest.mark.parametrize("arguments", [(None, None, None), (9, None, None), (None, torch.arange(4), None), (None, None, MASK)])
def test_operators_by_pytorchs_own_checks(arguments):
    text = repr(posenc.Encoding(6))
    x = given(4, 4, 6).requires_grad_()
    torch.library.opcheck(torch.ops.posenc.add.default, (x, text, 1.5, -2, *arguments))
    torch.library.opcheck(torch.ops.posenc.encode.default, (torch.arange(3.0), text, torch.bfloat16))
    torch.library.opcheck(torch.ops.posenc.table.default, (3, text, arguments[0], torch.float64))


def test_encodings_are_read_back_from_their_reprs():
    f = posenc.frequencies
    rules = [f.paper(8, 77.7), f.shifted(8, 2, 1e30), f.geometric(4, -1.0, -0.1), f.octaves(4, pi=True), f.linear(4, 0.0, 1e-5)]
    rules += [f.timescales(4, 0.1, 1e9), f.given([0.1, -0.0, 5e-4, 2.0**-200]), f.octaves(4).scaled(0.1).scaled(-3.0, pi=True)]
    encodings = [posenc.convention(name, 8) for name in NAMES]
    encodings += [posenc.Encoding(8, frequencies=rule, layout="concatenated", amplitude=-1e-30, first=-5) for rule in rules]
    encodings += [posenc.rope.yarn(8, 4.0, 128).encoding(), posenc.Encoding(9, odd="zero", base=1e-5)]
    for encoding in encodings:
        assert ops.encoding_of(repr(encoding)) == encoding
        assert repr(ops.encoding_of(repr(encoding))) == repr(encoding)


@pytest.mark.parametrize(
    "text",
    [
        "exit(1)",
        "frequencies.np.zeros(3)",
        "frequencies.math",
        "frequencies.exact_doubles('array', [1.0])",
        "Encoding(8, base=float('2.0'))",
        "(lambda: 0)()",
        "frequencies.paper(8).__reduce__()",
        "os.system('x')",
    ],
)
def test_nothing_else_is_read(text):
    with pytest.raises(ValueError, match="malformed node"):
        ops.encoding_of(text)


def test_only_encodings_are_read():
    for text in ("8", "frequencies.paper(8)"):
        with pytest.raises(ValueError, match="it must be the repr of an Encoding"):
            ops.encoding_of(text)


# ---- who looks on ----------------------------------------------------------------------------------------------------


class Seen(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes which operators are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_see_the_operator():
    module, x = room.PositionalEncoding(8), given(2, 3, 8)
    with Seen() as seen:
        made = module(x)
    assert "posenc.add.default" in seen.names
    assert torch.equal(made, module(x))


def test_tensors_of_other_classes_see_the_operator():
    names = []

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            names.append(str(function))
            return super().__torch_function__(function, types, args, kwargs or {})

    module, x = room.PositionalEncoding(8), given(2, 3, 8)
    assert torch.equal(module(x.as_subclass(Tensor)).as_subclass(torch.Tensor), module(x))
    assert "posenc.add.default" in names


@pytest.mark.filterwarnings("ignore")  # a trace warns of every comparison, and of being deprecated
def test_a_trace_has_the_operator():
    module = room.PositionalEncoding(8).eval()
    traced = torch.jit.trace(module, given(2, 3, 8), check_trace=False)
    x = given(4, 7, 8, seed=1)
    assert torch.equal(traced(x), module(x))


def test_one_who_looks_on_and_one_who_does_not_see_the_same(monkeypatch):
    module, x = room.PositionalEncoding(8, scale=3.0), given(2, 3, 8)
    alone = module(x)
    monkeypatch.setattr(ops, "_ONLOOKERS", [lambda: True])
    assert torch.equal(module(x), alone)


def test_dropout_in_training_of_its_own():
    """As Monte Carlo dropout has it: the model is evaluated, its dropouts are not."""
    module = room.PositionalEncoding(512, dropout=0.5).eval()
    module.dropout.train()
    assert (module(torch.ones(1, 100, 512)) == 0).float().mean() > 0.4


# ---- batches ---------------------------------------------------------------------------------------------------------

LENGTHS = [3, 0, 7, 1]


def samples(dtype=torch.float32):
    return [given(n, 6, dtype=dtype, seed=n) for n in LENGTHS]


def check_padded(batch, dtype, left, e, scale):
    assert batch.lengths.tolist() == LENGTHS
    for x, mask, sample in zip(batch.x, batch.padding_mask, samples(dtype), strict=True):
        n = len(sample)
        place = slice(7 - n, 7) if left else slice(0, n)
        same(x[place], e.add(array(sample), scale=scale))
        assert mask[place].tolist() == [False] * n
        assert int(mask.sum()) == 7 - n
        assert not x[mask].any()


@each_dtype
@pytest.mark.parametrize("side", ["right", "left"])
def test_padded_batches(side, dtype):
    e = posenc.convention("fairseq", 6, padding_idx=3)
    collate = room.Collate(6, padding_side=side, scale=1.3, convention="fairseq", padding_idx=3)
    batch = pickle.loads(pickle.dumps(collate))(samples(dtype))
    check_padded(batch, dtype, side == "left", e, 1.3)
    x = torch.zeros_like(batch.x)
    for row, mask, sample in zip(x, batch.padding_mask, samples(dtype), strict=True):
        row[~mask] = sample
    module = room.PositionalEncoding(6, scale=1.3, convention="fairseq", padding_idx=3)
    assert torch.equal(module(x, padding_mask=batch.padding_mask), batch.x)


@each_dtype
def test_packed_batches(dtype):
    batch = room.Collate(6, packed=True, scale=1.3)(samples(dtype))
    assert batch.cu_seqlens.tolist() == [0, 3, 3, 10, 11]
    assert batch.cu_seqlens.dtype == torch.int32
    assert batch.longest == 7
    positions = torch.from_numpy(posenc.positions_from_lengths(LENGTHS))
    assert torch.equal(batch.x, room.add(torch.cat(samples(dtype)), positions=positions, scale=1.3))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_made_by_workers(method, request):
    if method not in torch.multiprocessing.get_all_start_methods():
        pytest.skip(f"NOT TESTED: workers made by {method}, which is not there")
    posenc.table(4096, 1024)  # threads are there before the fork
    loader = torch.utils.data.DataLoader(
        samples() * 2, batch_size=4, num_workers=2, collate_fn=room.Collate(6), multiprocessing_context=method, timeout=300
    )
    batches = list(loader)
    assert len(batches) == 2
    for batch in batches:
        assert isinstance(batch, room.Padded)
        check_padded(batch, torch.float32, False, posenc.Encoding(6), 1.0)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ([], ValueError, "sequences is empty; a batch has at least one"),
        ([np.zeros((2, 6))], TypeError, "sequences[0] must be a Tensor, not ndarray"),
        ([torch.zeros(2, 6), torch.zeros(2, 5)], ValueError, "sequences[1] has shape (2, 5); it must be (length, 6)"),
        ([torch.zeros(6)], ValueError, "sequences[0] has shape (6,); it must be (length, 6)"),
        ([torch.zeros(2, 6, dtype=torch.int64)], TypeError, "sequences[0] has dtype torch.int64; it must be torch's float32"),
        (
            [torch.zeros(2, 6), torch.zeros(2, 6).half()],
            TypeError,
            "sequences[1] has dtype torch.float16; it must be that of the first, torch.float32",
        ),
        ([torch.zeros(2, 6, requires_grad=True)], RuntimeError, "requires grad"),
    ],
)
def test_wrong_samples(wrong, error, message):
    with pytest.raises(error) as caught:
        room.Collate(6)(wrong)
    assert message in str(caught.value)


# ---- arguments -------------------------------------------------------------------------------------------------------

X = torch.zeros(2, 3, 8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(X.long()), TypeError, "x has dtype torch.int64; it must be torch's float32, float64, float16 or bfloat16"),
        (lambda m: m(X.bool()), TypeError, "x has dtype torch.bool; it must"),
        (lambda m: m(X.to(torch.complex64)), TypeError, "x has dtype torch.complex64; it must"),
        (lambda m: m(X.to(torch.float8_e4m3fn)), TypeError, "x has dtype torch.float8_e4m3fn; it must"),
        (lambda m: m(X.numpy()), TypeError, "x must be a Tensor, not ndarray"),
        (lambda m: m(X[..., :7]), ValueError, "x has shape (2, 3, 7); it must be that of a sequence, and its last axis 8"),
        (lambda m: m(X[0, 0]), ValueError, "x has shape (8,); it must be that of a sequence"),
        (lambda m: m(X, start=1.0), TypeError, "start must be an integer, not float 1.0"),
        (lambda m: m(X, start=True), TypeError, "start must be an integer, not bool True"),
        (lambda m: m(X, start=2**63 - 2), ValueError, "the last position, start + length - 1, must be an int64"),
        (lambda m: m(X, start=1, positions=torch.arange(3)), TypeError, "positions is given with start=1; they exclude"),
        (lambda m: m(X, positions=[0, 1, 2]), TypeError, "positions must be a Tensor, not list"),
        (lambda m: m(X, positions=torch.ones(3).bool()), TypeError, "positions has dtype torch.bool; it must be integers"),
        (lambda m: m(X, positions=torch.arange(4)), ValueError, "positions has shape (4,); it must broadcast to (2, 3)"),
        (
            lambda m: m(X[:1], positions=torch.zeros(2, 3)),
            ValueError,
            "positions has shape (2, 3); it must broadcast to (1, 3)",
        ),
        (lambda m: m(X, positions=torch.tensor([0, 1, torch.nan])), ValueError, "positions[2] is nan; it must be finite"),
        (lambda m: m(X, padding_mask=[[True]]), TypeError, "padding_mask must be a Tensor, not list"),
        (
            lambda m: m(X, padding_mask=torch.ones(2, 3)),
            TypeError,
            "padding_mask has dtype torch.float32; it must be torch.bool, True for padding",
        ),
        (
            lambda m: m(X, padding_mask=torch.zeros(3, 2).bool()),
            ValueError,
            "padding_mask has shape (3, 2); it must be (2, 3), for x of shape (2, 3, 8)",
        ),
        (lambda m: room.add(X, axis=-1), ValueError, "axis is -1 and x has 3"),
        (lambda m: room.add(X, scale="2"), TypeError, "scale must be a real number, not str '2'"),
        (lambda m: room.add([1.0]), TypeError, "x must be a Tensor, not list"),
        (lambda m: room.add_(X.long()), TypeError, "x has dtype torch.int64"),
        (lambda m: room.encode([1.0], 8), TypeError, "positions must be a Tensor, not list"),
        (lambda m: room.encode(torch.arange(3), 8, dtype=torch.int8), TypeError, "dtype is torch.int8; it must be torch's"),
        (lambda m: room.table(2, 8, dtype="float32"), TypeError, "dtype is float32; it must be torch's"),
        (lambda m: room.table(-1, 8), ValueError, "length is -1; it must be at least 0"),
        (lambda m: room.table(2, 0), ValueError, "dim is 0; it must be at least 1"),
        (lambda m: room.table(2, 8, convention="paper"), ValueError, "convention is 'paper'; it must be one of 'transformer'"),
        (lambda m: room.table(2, 8, convention=7), TypeError, "convention must be a str"),
        (lambda m: room.table(2, 8, bases=7), TypeError, "bases is no extra of 'transformer'; it has base"),
        (lambda m: room.table(2, 8, base=[7.0]), TypeError, "base must be a real number, not list [7.0]"),
        (lambda m: room.table(2, 8, convention=posenc.Encoding(8), base=7), TypeError, "base is given with an Encoding"),
        (lambda m: room.table(2, 8, convention=posenc.Encoding(6)), ValueError, "dim is 8; it must be that of the encoding, 6"),
        (lambda m: room.PositionalEncoding(8, scale=np.inf), ValueError, "scale is inf; it must be finite"),
        (lambda m: room.PositionalEncoding(8, batch_first=1), TypeError, "batch_first must be a bool, not int 1"),
        (lambda m: room.Collate(8, packed=True, padding_side="left"), ValueError, "padding_side is 'left' and packed True"),
        (lambda m: room.Collate(8, padding_side="top"), ValueError, "padding_side is 'top'; it must be one of 'right', 'left'"),
    ],
)
@pytest.mark.usefixtures("place")
def test_wrong_arguments(call, error, message):
    with pytest.raises(error) as caught:
        call(room.PositionalEncoding(8))
    assert message in str(caught.value)


# ---- the import ------------------------------------------------------------------------------------------------------


def ends_with(code, words):
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.stdout + ended.stderr).rstrip().endswith(words), ended.stderr


def test_imports():
    ends_with("import sys, posenc; assert 'torch' not in sys.modules and 'torch' not in dir(posenc)\n"
              "assert posenc.torch is sys.modules['posenc.torch'] and 'torch' in dir(posenc)\n"
              "import torch; assert torch.nn\n"
              "posenc.torch.PositionalEncoding(4)(torch.zeros(2, 4)); posenc.torch.encode(torch.ones(2), 4)\n"
              "assert 'torch._dynamo' not in sys.modules; print('well')", "well")  # fmt: skip


@pytest.mark.parametrize("code", ["import posenc; posenc.torch", "import posenc.torch", "from posenc.torch import Collate"])
def test_without_pytorch(code):
    ends_with(f"import sys; sys.modules['torch'] = None; {code}", "posenc.torch needs PyTorch: pip install 'posenc[torch]'")


def test_without_ml_dtypes():
    code = "import sys, torch, posenc.torch as p; sys.modules['ml_dtypes'] = None; p.add(torch.zeros(2, 4).half())\n"
    ends_with(f"{code}p.add(torch.zeros(2, 4).bfloat16())", "needs the package ml_dtypes: pip install ml_dtypes")
