"""What DS-GNN and DSS-GNN have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from enfa.graphs.numbers import whole
from enfa.nn.context import CONTEXTS, ContextBranch
from enfa.nn.convs import make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.dropout import KeyedDropout
from enfa.nn.encode import EdgeEncoder, NodeEncoder
from enfa.nn.execute import check_spec, execute
from enfa.nn.layer import SubgraphLayer
from enfa.nn.linear import through
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.readout import BAGS, READOUTS, pool_bag, pool_nodes
from enfa.nn.rows import made, rows_in_flight
from enfa.nn.segment import gather
from enfa.plan.derive import readouts
from enfa.plan.make import unknown
from enfa.plan.prepare import Needs
from enfa.plan.spec import Spec
from enfa.plan.table import Plan

__all__ = ["JKS", "SubgraphGNN"]

JKS = ("last", "concat", "sum")
ConvLike = str | Callable[[int, int], nn.Module]


class SubgraphGNN(nn.Module):
    """Message passing on the bag, a pool over nodes, an MLP per subgraph, a pool over the bag, an MLP.

    Abstract: use :class:`~enfa.DSGNN` or :class:`~enfa.DSSGNN`, which say what the arguments mean.
    """

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        conv: ConvLike,
        context: str | None,
        *,
        edge_channels: int | Sequence[int] | None,
        norm: str | None,
        dropout: float,
        readout: str,
        bag: str,
        jk: str,
        residual: bool,
        mark_channels: int,
        edge_mark_channels: int,
        share: str | None,
        independent_dropout: bool,
    ) -> None:
        super().__init__()
        for what, name, known in (("readout", readout, READOUTS), ("bag", bag, BAGS), ("jk", jk, JKS)):
            if name not in known:
                raise unknown(what, name, known)
        if share is None:
            share = "graph" if dropout > 0 and not independent_dropout else "dataset"
        # wrong numbers are refused before anything is built
        num_layers, hidden_channels = Spec(num_layers).num_layers, whole("hidden_channels", hidden_channels, 1)
        out_channels = whole("out_channels", out_channels, 1)
        self.encoder = NodeEncoder(in_channels, hidden_channels, mark_channels)
        edge_encoder = EdgeEncoder(0 if edge_channels is None else edge_channels, hidden_channels, edge_mark_channels)
        self.edge_encoder = edge_encoder if edge_encoder.out_channels else None
        edge_dim = 0 if self.edge_encoder is None else self.edge_encoder.out_channels
        reads, mean, encoded, before_activation = CONTEXTS[context] if context else (None, False, False, False)
        layers = []
        for i in range(num_layers):
            width = self.encoder.out_channels if i == 0 else hidden_channels
            branch = None
            if context:
                # Eq. 6 adds to a layer's output, ESAN's layer reads its input
                channels = width if reads == "input" else hidden_channels
                branch_conv = make_conv(conv, channels, hidden_channels, edge_dim, norm) if encoded else None
                branch_norm = make_norm(norm, hidden_channels) if encoded else None
                branch = ContextBranch(branch_conv, branch_norm, mean, before_activation)
            layers.append(
                SubgraphLayer(
                    make_conv(conv, width, hidden_channels, edge_dim, norm),
                    make_norm(norm, hidden_channels),
                    branch,
                    KeyedDropout(dropout, independent_dropout),
                    residual,
                )
            )
        self.layers = nn.ModuleList(layers)
        convs = [m for layer in layers for m in (layer.conv, layer.context and layer.context.conv) if m]
        reads_edges = any(c.reads_edges for c in convs) and self.edge_encoder is not None
        name = repr(conv) if isinstance(conv, str) else type(layers[0].conv.conv).__name__
        if any(c.needs_edges for c in convs) and self.edge_encoder is None:
            raise ValueError(f"Expected edge_channels for conv={name}, which reads edge attributes, got {edge_channels}")
        if self.edge_encoder is not None and not reads_edges:
            given = {"edge_channels": (edge_channels, None), "edge_mark_channels": (edge_mark_channels, 0)}
            what, (value, none) = next((k, v) for k, v in given.items() if v[0])
            raise ValueError(
                f"Expected a conv that reads edge attributes for {what}={value}, got conv={name}, which reads none: "
                f"use conv='gine', or {what}={none}"
            )
        output = readout if readout in ("root", "node") else "graph"
        counted = any(isinstance(m, CountedBatchNorm) for m in self.layers.modules())
        self.spec = Spec(
            num_layers, reads, bool(encoded), any(c.reads_degrees for c in convs), reads_edges, share, output,
            pruned=output == "root" and not counted and context is None,
        )  # fmt: skip
        self.readout, self.bag, self.jk = readout, bag, jk
        self.needs = Needs(
            links=frozenset().union(*(layer.conv.links for layer in layers)),
            context_links=frozenset().union(*(c.links for c in convs)) if context else frozenset(),
            pool=readout,
            tables=jk == "concat",
            previous=residual or jk == "sum",
            identities=dropout > 0,
        )
        pooled = hidden_channels * (num_layers if jk == "concat" else 1)
        self.subgraph_mlp = nn.Sequential(nn.Linear(pooled, hidden_channels), nn.ReLU())
        self.head = nn.Sequential(
            nn.Linear(hidden_channels, hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(self, plan: Plan) -> Tensor:
        """[number of graphs, out_channels]; [rooted subgraphs or nodes, out_channels] for node-level readouts."""
        if not isinstance(plan, Plan):
            raise TypeError(f"Expected a plan from enfa.make_plan or enfa.DataLoader, got {type(plan).__name__}")
        check_spec(plan, self.spec)
        with rows_in_flight(None) as call:
            return made(call, self._predicted(plan))

    def _predicted(self, plan: Plan) -> Tensor:
        dtype = self.head[0].weight.dtype
        edge = None
        if self.spec.edge_attr and self.edge_encoder is not None:
            edge = self.edge_encoder(plan, dtype)
        tables = execute(plan, self.encoder(plan, dtype), self.layers, edge)  # type: ignore[arg-type]
        pool = through(self.subgraph_mlp, self._pool(tables, plan))
        if self.spec.output == "graph":
            pool = pool_bag(pool, plan.readout, plan.num_graphs, self.bag)
        return through(self.head, pool)

    def _pool(self, tables: list[Tensor], plan: Plan) -> Tensor:
        """[S, pooled channels]; for node-level readouts one row per root or node."""
        if self.jk == "concat":
            return pool_nodes(tables, readouts(plan), plan.num_graphs, self.readout)
        rows = tables[-1]
        if self.jk == "sum":
            rows = tables[0]
            for table, layer in zip(tables[1:], plan.layers[1:]):
                rows = table + gather(rows, layer.previous, layer.cache, "previous")
        return pool_nodes([rows], [plan.readout], plan.num_graphs, self.readout)
