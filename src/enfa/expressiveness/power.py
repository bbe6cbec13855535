"""Which graphs a model class can tell apart, from its rows alone."""

from collections.abc import Callable, Sequence

from torch import nn
from torch_geometric.data import Data

from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.expressiveness.classes import join_readings, numbers_of_layers, readings
from enfa.expressiveness.compare import classes_of
from enfa.expressiveness.models import model_class
from enfa.expressiveness.reading import visible
from enfa.expressiveness.result import Power
from enfa.graphs import check_graphs

__all__ = ["power"]


def power(
    graphs: Sequence[Data],
    policy: Policy,
    model: str | nn.Module | Callable[[int], nn.Module],
    layers: int | Sequence[int] | None = None,
    *,
    pairs: bool = True,
    category: Sequence[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Power:
    """Which graphs some weights of a model class tell apart: exactly those whose rows differ. Nothing is trained.

    Args:
        graphs: pairs, graphs 2p and 2p + 1; with ``pairs=False`` a list, whose graphs are sorted into classes.
        policy: what makes the subgraphs.
        model: a name (:data:`enfa.expressiveness.MODELS`), a callable that makes a model with a number of layers, or a model.
        layers: the largest number of layers, 6 by default: all from 1 are answered; or a list of them. Of a model, its own.
        category: a name for each pair (or graph), by which the table is broken down.
        threads: as many as there are cores, and at most 8, by default.

    A row stands for all that can be computed from what it reads; so graphs whose pools have the same rows have the same output
    whatever the weights, and for others there are weights that give them different ones: those that map different rows, and
    different multisets of them, to different vectors. Sums of MLPs can do that (GIN); means see proportions only and maxima
    which rows there are, and pools (``bag.pool``, ``bag.across``) count as what they are. A conv is taken to keep the multiset
    of messages: for one that averages (GCN, GraphSAGE) the answer is an upper bound. So it is for a model that hands on less
    than it reads: one that pools what it has pooled as it is, say, with nothing learnt in between.

    Cost: all (subgraph, node) pairs of every layer, once.
    """
    if not isinstance(pairs, bool):
        raise TypeError(f"Expected pairs to be True or False, got {pairs!r}")
    if pairs and len(graphs) % 2:
        raise ValueError(f"Expected pairs of graphs, got {len(graphs)} graphs: use pairs=False for a list")
    if isinstance(model, nn.Module) and layers is not None:
        raise ValueError("Expected no number of layers beside a model, which has its own; a callable makes one of any number")
    checked = check_graphs(graphs)
    made = model_class(model, checked, policy) if isinstance(model, str) else model
    numbers = numbers_of_layers(6 if layers is None else layers)
    found = join_readings(readings(made, numbers, checked, policy))
    edits = edits_by(policy, checked)
    of_graph = classes_of(*visible(checked, edits, found.inputs), found, 2 if pairs else 1, threads, progress)
    name = model if isinstance(model, str) else getattr(model, "__name__", type(model).__name__)
    return Power(repr(policy), name, found.layers, of_graph, pairs, None if category is None else tuple(category))
