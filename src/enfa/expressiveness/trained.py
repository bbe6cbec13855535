"""BREC's protocol (Wang and Zhang, ICML 2024): is a pair told apart by a network that is trained to tell it apart?

Of each graph there are 32 copies with relabelled nodes. A siamese network is trained on them to give the two graphs embeddings
that point apart (cosine embedding loss); then a paired test asks whether they differ by more than rounding: between copies of
the two graphs (``separation``), and, as a check of its reliability, between copies of one of them. A plan finds that copies
share all of their rows, so a step on 32 graphs costs as much as one on two.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.edits import Policy
from enfa.expressiveness.hotelling import THRESHOLD, t_squared
from enfa.nn.bag.compile import compile as compile_dataset

__all__ = ["PairResult", "Protocol", "relabelled", "train_pair"]


@dataclass(frozen=True)
class Protocol:
    """The settings, as the authors have them for DSS-GNN.

    ``batch_size`` counts graphs, ``epsilon`` is that of :func:`~enfa.expressiveness.hotelling.t_squared`, and training ends
    early once the loss is below ``enough``.
    """

    relabellings: int = 32
    epochs: int = 20
    batch_size: int = 32
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    margin: float = 0.0
    enough: float = 0.01
    threshold: float = THRESHOLD
    epsilon: float = 1e-8
    seed: int = 100

    def __post_init__(self) -> None:
        if self.relabellings < 2 or self.batch_size < 2 or self.batch_size % 2:
            raise ValueError(
                f"Expected at least 2 relabellings and an even batch size, got {self.relabellings} and {self.batch_size}"
            )


@dataclass(frozen=True)
class PairResult:
    """``separation``, ``reliability``: the statistic between copies of the two graphs, and between copies of one."""

    separation: float
    reliability: float
    reliable: bool
    apart: bool
    epochs: int
    loss: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def relabelled(graph: Data, rng: np.random.Generator) -> Data:
    """The same graph with its nodes, and its edges, in another order."""
    order = torch.from_numpy(rng.permutation(int(graph.num_nodes or 0)))
    shuffled = torch.from_numpy(rng.permutation(graph.edge_index.shape[1]))
    new = Data(x=graph.x[order.argsort()], edge_index=order[graph.edge_index[:, shuffled]])
    if graph.edge_attr is not None:
        new.edge_attr = graph.edge_attr[shuffled]
    return new


def _copies(pair: Sequence[Data], protocol: Protocol, rng: np.random.Generator) -> list[Data]:
    """Copies of both graphs in turn, and then as many of one of them, drawn."""
    count, one = protocol.relabellings, pair[int(rng.integers(2))]
    both = [relabelled(graph, rng) for _ in range(count) for graph in pair]
    return both + [relabelled(one, rng) for _ in range(2 * count)]


def train_pair(
    pair: Sequence[Data],
    policy: Policy,
    make: Callable[[], nn.Module],
    protocol: Protocol | None = None,
    *,
    device: str = "cpu",
    number: int = 0,
) -> PairResult:
    """Train a network of its own for one pair, and test. ``make()`` builds it, seeded by ``protocol.seed`` and ``number``.

    A pair is told apart where the statistic between its graphs passes the threshold and is not that between copies of one;
    and only counts where that one stays below it.
    """
    if len(pair) != 2:
        raise ValueError(f"Expected a pair of graphs, got {len(pair)}")
    protocol = protocol or Protocol()
    rng = np.random.default_rng([protocol.seed, number])
    copies = _copies(pair, protocol, rng)
    with torch.random.fork_rng(devices=[torch.device(device)] if device != "cpu" else []):
        torch.manual_seed(int(rng.integers(2**31)))
        model = make().to(device)
        compiled = compile_dataset(copies, policy, model, progress=False, threads=1)
        loss, epochs = _fit(model, compiled, protocol, device)
    model.eval()
    half = 2 * protocol.relabellings
    separation, reliability = (
        t_squared(out[0::2], out[1::2], protocol.epsilon)
        for out in (_embedded(model, compiled, range(first, first + half), protocol, device) for first in (0, half))
    )
    reliable = reliability < protocol.threshold
    apart = separation > protocol.threshold and not np.isclose(separation, reliability, rtol=1e-5, atol=1e-6)
    return PairResult(separation, reliability, reliable, apart, epochs, loss)


def _batches(compiled: CompiledDataset, graphs: Sequence[int], protocol: Protocol, device: str) -> Iterator[Any]:
    for first in range(0, len(graphs), protocol.batch_size):
        plan = compiled[np.asarray(graphs[first : first + protocol.batch_size])]
        yield plan if device == "cpu" else plan.to(device)


def _fit(model: nn.Module, compiled: CompiledDataset, protocol: Protocol, device: str) -> tuple[float, int]:
    """The last mean loss, and after how many epochs. Plans are the same in every epoch, so they are made once."""
    optimiser = torch.optim.Adam(model.parameters(), lr=protocol.learning_rate, weight_decay=protocol.weight_decay)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser)
    loss_of, mean = nn.CosineEmbeddingLoss(margin=protocol.margin), float("nan")
    plans = list(_batches(compiled, range(2 * protocol.relabellings), protocol, device))
    model.train()
    for epoch in range(protocol.epochs):
        total = 0.0
        for plan in plans:
            optimiser.zero_grad()
            out = model(plan)
            loss = loss_of(out[0::2], out[1::2], -torch.ones(len(out) // 2, device=out.device))
            loss.backward()
            optimiser.step()
            total += loss.item() * len(out) / 2
        mean = total / protocol.relabellings
        if mean < protocol.enough:
            return mean, epoch + 1
        scheduler.step(mean)
    return mean, protocol.epochs


@torch.no_grad()
def _embedded(model: nn.Module, compiled: CompiledDataset, graphs: Sequence[int], protocol: Protocol, device: str) -> Tensor:
    return torch.cat([model(plan) for plan in _batches(compiled, graphs, protocol, device)])
