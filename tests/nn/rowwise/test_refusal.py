"""What mixes rows, or depends on how many there are, is refused by name."""

from __future__ import annotations

import numpy
import pytest
import torch
from operation_cases import operands
from small_bag import ROWS, rows_of, small_bag

from enfa.nn.bag import Rows
from enfa.nn.rowwise import axes
from enfa.nn.rowwise.operations import HANDLERS

BAG = small_bag()
F, W = torch.nn.functional, 4
REFUSED = {  # the name in the error -> what mixes rows, or depends on how many there are
    "mean": lambda h: h.mean(), "sum": lambda h: torch.sum(h, 0), "amax": lambda h: h.amax((0, 1)),
    "max": lambda h: h.max(), "min": lambda h: h.min(dim=0), "var": lambda h: h.var(True), "std": lambda h: torch.std(h),
    "norm": lambda h: h.norm(1), "prod": lambda h: torch.prod(input=h), "any": lambda h: (h > 0).any(),
    "argmax": lambda h: h.argmax(), "softmax": lambda h: F.softmax(h, dim=0), "log_softmax": lambda h: h.log_softmax(-2),
    "logsumexp": lambda h: h.logsumexp(-2), "normalize": lambda h: F.normalize(h, dim=0),
    "cumsum": lambda h: h.cumsum(axis=0), "sort": lambda h: h.sort(0), "argsort": lambda h: h[:, 0].argsort(),
    "flip": lambda h: h.flip(1, 0), "roll": lambda h: h.roll(1), "unbind": lambda h: h.unbind(),
    "chunk": lambda h: h.chunk(2), "split": lambda h: torch.split(h, 2), "tensor_split": lambda h: h.tensor_split(2),
    "select": lambda h: h.select(0, 1), "narrow": lambda h: h.narrow(0, 0, 1), "squeeze": lambda h: h.squeeze(),
    "unsqueeze": lambda h: h.unsqueeze(0), "index_select": lambda h: h.index_select(0, torch.tensor([0])),
    "repeat_interleave": lambda h: h.repeat_interleave(2, 0), "glu": lambda h: F.glu(h[:, 0]), "getitem": lambda h: h[0],
    "view": lambda h: h.view(-1, 2), "reshape": lambda h: h.reshape(-1), "flatten": lambda h: h.flatten(end_dim=-1),
    "transpose": lambda h: h.transpose(0, 1), "permute": lambda h: h.permute(1, 0), "t": lambda h: h.t(),
    "T": lambda h: h.T, "expand": lambda h: h.expand(ROWS, -1, -1), "repeat": lambda h: h.repeat(2, 1),
    "pad": lambda h: F.pad(h, (0, 0, 1, 0)), "cat": lambda h: torch.cat([h, h]), "stack": lambda h: torch.stack([h, h]),
    "vstack": lambda h: torch.vstack([h, h]), "hstack": lambda h: torch.hstack([h[:, 0], h[:, 0]]),
    "matmul": lambda h: torch.matmul(torch.ones(ROWS, ROWS).double(), h),
    "rmatmul": lambda h: torch.ones(ROWS, ROWS).double() @ h, "mm": lambda h: h.mm(h),
    "einsum": lambda h: torch.einsum("nc,nd->cd", h, h), "linear": lambda h: F.linear(torch.ones(2, W).double(), h),
    "cdist": lambda h: torch.cdist(h, h), "outer": lambda h: torch.outer(h[:, 0], h[:, 0]),
    "scaled_dot_product_attention": lambda h: F.scaled_dot_product_attention(h, h, h), "unique": lambda h: h.unique(),
    "multi_head_attention_forward": lambda h: torch.nn.MultiheadAttention(W, 2).double()(h, h, h),
    "lstm": lambda h: torch.nn.LSTM(W, W).double()(h), "gru": lambda h: torch.nn.GRU(W, W).double()(h),
    "topk": lambda h: h.topk(2), "tril": lambda h: h.tril(), "median": lambda h: h.median(0),
    "scatter": lambda h: h.scatter(0, torch.zeros(1, W, dtype=torch.int64), 1.0),
    "index_add": lambda h: h.index_add(0, torch.tensor([0]), h), "gather": lambda h: h.gather(1, torch.tensor([[0]])),
    "where": lambda h: torch.where(h > 0.5), "masked_select": lambda h: h.masked_select(h > 0.5),
    "nonzero": lambda h: h.nonzero(), "numel": lambda h: h.numel(), "equal": lambda h: torch.equal(h, h),
    "allclose": lambda h: torch.allclose(h, h), "mse_loss": lambda h: F.mse_loss(h, h),
    "fft_fft": lambda h: torch.fft.fft(h), "linalg_inv": lambda h: torch.linalg.inv(h),
    "rand_like": lambda h: torch.rand_like(h), "bernoulli": lambda h: torch.bernoulli(h), "normal_": lambda h: h.normal_(),
    "gumbel_softmax": lambda h: F.gumbel_softmax(h), "rrelu": lambda h: F.rrelu(h, training=True),
    "alpha_dropout": lambda h: F.alpha_dropout(h, 0.5, True), "dropout1d": lambda h: F.dropout1d(h),
    "one_hot": lambda h: F.one_hot(h.long()),
    "embedding": lambda h: F.embedding(h.long(), torch.ones(5, 2), scale_grad_by_freq=True),
    "embedding_bag": lambda h: F.embedding_bag(h.long()[:, 0], torch.ones(5, 2), torch.tensor([0])),
    "layer_norm": lambda h: F.layer_norm(h, (ROWS, W)), "instance_norm": lambda h: F.instance_norm(h),
    "batch_norm": lambda h: torch.batch_norm(h, None, None, None, None, True, 0.1, 1e-5, False),
    "add": lambda h: h + torch.ones(ROWS, W), "mul": lambda h: h * h[:, 0],
    "sub": lambda h: torch.sub(h, torch.ones(1, 1, W)), "truediv": lambda h: h / h.size(0),
    "pow": lambda h: h**torch.ones(ROWS, 1), "maximum": lambda h: torch.maximum(h, torch.ones(2, 1, 1)),
    "lt": lambda h: h[:, 0] < torch.ones(W), "masked_fill": lambda h: h.masked_fill(torch.ones(ROWS, 1) > 0, 0.0),
    "prelu": lambda h: F.prelu(h, h[:, 0]), "cosine_similarity": lambda h: F.cosine_similarity(h, h, dim=0),
    "pairwise_distance": lambda h: F.pairwise_distance(h[:, 0], h[:, 0]),
    "exp": lambda h: torch.exp(h, out=torch.ones(ROWS, W).double()), "add_": lambda h: torch.ones(ROWS, W).double().add_(h),
    "setitem": lambda h: h.__setitem__(0, 1.0), "arithmetic": lambda h: h.shape[0] * 2,
    "register_hook": lambda h: h.register_hook(print), "backward": lambda h: h.backward(), "item": lambda h: h.item(),
    "tolist": lambda h: h.tolist(), "numpy": lambda h: h.numpy(),
}  # fmt: skip
MORE = [  # other ways to do the same
    lambda h: h[torch.tensor([0, 1])], lambda h: h[h > 0.5], lambda h: h[:, h[:, 0].long()], lambda h: h[1:],
    lambda h: h[:, 0][..., 0], lambda h: h[None], lambda h: h[:, :, None, None][:, [0], :, [0]],
    lambda h: h.view(h.size(0) * 2, -1), lambda h: h.sum(dim=()), lambda h: h.sum([1, 0]), lambda h: h.mean((0,)),
    lambda h: h[:, 0].sum(-1), lambda h: h[:, 0].softmax(-1), lambda h: h[:, 0].sort(), lambda h: h.flatten(),
    lambda h: h.flatten(0, 1), lambda h: torch.flatten(h, end_dim=1), lambda h: h.movedim(0, 1), lambda h: h.swapaxes(1, 0),
    lambda h: h.expand(3, ROWS, W), lambda h: torch.cat([h, torch.ones(ROWS, 1)], 1), lambda h: torch.cat([h, h], dim=-2),
    lambda h: torch.stack([h[:, 0], h[:, 0]], 0), lambda h: torch.stack([h, h], -3),
    lambda h: F.linear(h[:, 0], torch.ones(2, ROWS)),
    lambda h: F.linear(h, torch.ones(2, W).double(), torch.ones(ROWS, 2).double()), lambda h: h @ h.value.t() @ h,
    lambda h: h @ torch.ones(2, W, 2).double(), lambda h: torch.einsum("nc,nc->c", h, h),
    lambda h: torch.einsum("nc,nd->nd", h, torch.ones(ROWS, 2)), lambda h: torch.einsum("...c->...", h),
    lambda h: torch.einsum("nc,mc->nm", h, h), lambda h: h[:, 0] + torch.ones(1, 1), lambda h: h + torch.ones(ROWS, 1),
    lambda h: h == torch.ones(ROWS, W), lambda h: h + h.size(0), lambda h: h.size(0) ** -0.5, lambda h: float(h.size(0)),
    lambda h: torch.max(h, torch.ones(ROWS, W)), lambda h: F.bilinear(h, torch.ones(ROWS, W).double(), torch.ones(1, W, W)),
    lambda h: F.embedding_bag(h.long(), torch.ones(5, 2), per_sample_weights=torch.ones(ROWS, W)),
    lambda h: h.where(torch.ones(ROWS, W) > 0, h), lambda h: torch.nn.InstanceNorm1d(W)(h),
    lambda h: torch.nn.TransformerEncoderLayer(W, 2, 8).double()(h), lambda h: torch.distributions.Normal(h, 1.0).sample(),
    lambda h: torch.nn.utils.rnn.pack_padded_sequence(h, [W]), lambda h: h.new_zeros(3), lambda h: h.data, lambda h: h.grad,
    lambda h: h.std(dim=None), lambda h: -h.size(0), lambda h: abs(h.size(0)), lambda h: round(h.size(0)),
    lambda h: h.size(0) >> 1, lambda h: divmod(h.size(0), 2), lambda h: h if h.size(0) > 1 else -h, lambda h: h.size(0) == 1,
    lambda h: h.size(0) >= 2, lambda h: h.shape == (1, W), lambda h: min(h.size(0), 2), lambda h: numpy.array(h, copy=True),
    lambda h: torch.from_dlpack(h),
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str) -> None:
    h = rows_of(BAG, operands(ROWS, W)["h"])
    with pytest.raises(TypeError) as caught:
        REFUSED[name](h)
    text = str(caught.value)
    assert text.split()[0] == name
    assert "plans would give different results: " in text and "\n" not in text
    assert len(text.split("results: ")[1]) > 8  # the way to do it


@pytest.mark.parametrize("number", range(len(MORE)))
@pytest.mark.parametrize("width", [W, ROWS])
def test_refused_in_other_words(number: int, width: int) -> None:
    h = rows_of(BAG, operands(ROWS, width)["h"])
    with pytest.raises(TypeError, match="plans would give different results: "):
        MORE[number](h)


def test_the_way_to_do_it_is_one() -> None:
    """Columns are written by joining them, what graphs have is spread."""
    h = rows_of(BAG, operands(ROWS, W)["h"])
    with pytest.raises(TypeError, match=r"torch.cat\(\[h\[:, :a\], new\], 1\) writes columns"):
        h[:, 1:] = h[:, 1:] * 2
    assert torch.equal(torch.cat([h[:, :1], h[:, 1:] * 2], 1).value[:, 1:], 2 * h.value[:, 1:])
    with pytest.raises(TypeError, match=r"bag.spread brings \[graphs, channels\] to pairs"):
        h + torch.ones(BAG.num_graphs + 1, W)


def test_numbers_of_rows_are_for_shapes() -> None:
    """And may be asked whether there are any, or whether two are of the same rows: PyG's convs take the smaller one."""
    h = rows_of(BAG, operands(ROWS, W)["h"])
    assert h.size(0) and h.size(0) > 0 and h.size(0) != -1
    assert h.shape == (h + 1).shape and min(h.size(0), (h + 1).size(0)) == h.size(0)
    assert torch.equal(h.view(h.size(0), 2, -1).value, h.value.view(ROWS, 2, -1))
    assert h[:, :1].expand(h.size(0), W).shape == h.shape
    other = rows_of(small_bag(), operands(ROWS, W)["h"])  # of another bag, as long by chance
    with pytest.raises(TypeError, match=r"^comparison with the number of rows depends on the plan"):
        min(h.size(0), other.size(0))
    assert h.size(0) == ROWS and torch.zeros(h.shape).shape == h.shape  # what was made by it
    assert not h.size(0) != ROWS  # noqa: SIM202


ALONG = [func for func, (handler, _) in HANDLERS.items() if handler is axes.along]
# Where PyTorch's own documentation puts the axis, counted without the input.
SECOND = ("norm", "vector_norm", "normalize", "chunk", "split", "tensor_split", "roll", "repeat_interleave")


@pytest.mark.parametrize("func", ALONG, ids=lambda func: func.__name__)
def test_the_axis_of_the_rows_is_found_wherever_it_stands(func) -> None:
    name, h = HANDLERS[func][1], rows_of(BAG, operands(ROWS, W)["h"])
    before = (2,) if name in SECOND else ()
    for more, kwargs in (((0,), {}), ((-2,), {}), ((True,), {}), ((), {"dim": 0}), ((), {"axis": -2})):
        with pytest.raises(TypeError, match="plans would give different results: "):
            Rows.__torch_function__(func, (Rows,), (h, *before, *more), kwargs)
    with pytest.raises(TypeError, match="plans would give different results: "):
        Rows.__torch_function__(func, (Rows,), (h[:, 0], *before, -1), {})
