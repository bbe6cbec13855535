"""A bag of subgraphs, as a model sees it: a few verbs, whatever the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from enfa.graphs.names import unknown
from enfa.nn.bag.convs import convolve
from enfa.nn.bag.edges import EdgeList
from enfa.nn.bag.pools import attended
from enfa.nn.rowwise.refusal import check_gradients, refuse
from enfa.nn.rowwise.rows import EDGES, Rows
from enfa.nn.segment import apply_map, gather, segment_max
from enfa.plan.steps.derived import PLAN, list_maps, way
from enfa.plan.steps.lists import list_sizes, written_out
from enfa.plan.steps.step import Step
from enfa.plan.steps.table import StepPlan

__all__ = ["Bag"]

POOLS = ("sum", "mean", "max", "softmax")


class Bag(StepPlan):
    """What ``model(bag)`` computes with. Rows are of *pairs* (subgraph, node), of *nodes* or of *subgraphs*.

    Graphs are told apart by all plans alike: what is pooled to graphs is an ordinary tensor [graphs, channels].
    """

    def _rows(self, value: Tensor, number: int) -> Rows:
        return Rows(value, self, number)

    def _step(self, step: Step) -> int:
        return self.program.number(step)

    tracing = False

    def need(self, number: int, *names: str) -> None:
        """The model reads these of a step (:mod:`enfa.plan.steps.derived`); noted while it is traced."""

    def note_dropout(self, draws: bool) -> None:
        """Dropout is used on rows, and ``draws``: rows are then shared within a graph only."""
        if draws and self.program.share != "graph":
            raise ValueError(
                "The model drops what it was not seen to drop when its plan was made, so one mask would strike all graphs: use "
                "nn.Dropout, which is seen in evaluation mode, too, and make a plan with this model"
            )

    def note_loops(self) -> None:
        """Self-loops are removed, or others put in their place."""
        if self.program.loops:
            raise ValueError(
                "The model removes self-loops or puts its own in their place, and its plan may hold graphs that have some. "
                "Make a plan with this model"
            )

    @property
    def x(self) -> Rows:
        """Features: floats, or categorical columns (int64) for ``nn.Embedding``. Pairs."""
        self.need(PLAN, "feature")
        return self._rows(gather(self.x_rows, self.feature, self.cache, "feature"), 0)

    @property
    def mark(self) -> Rows:
        """[pairs, mark channels]: what the policy marks nodes with. Pairs."""
        return self._rows(self.mark_rows.index_select(0, self.marked), 0)

    @property
    def degree(self) -> Rows:
        """int64 [pairs, 1]: how many edges of the subgraph lead to the node. Pairs."""
        self._step(Step("start", "pairs", degrees=True))
        assert self.degrees is not None
        return self._rows(self.degrees[:, None].clone(), 0)  # Rows may be written into

    @property
    def edge_attr(self) -> Rows:
        """The attributes of edges, one row for each kind; :meth:`propagate` takes them, embedded or as they are."""
        if self.edge_rows is None:
            raise ValueError("Expected graphs with 'edge_attr', because the model reads it, got none")
        return self._rows(self.edge_rows.clone(), EDGES)  # Rows may be written into

    @property
    def edge_mark(self) -> Rows:
        """[edges, edge mark channels]: what the policy marks edges with."""
        return self._rows(self.edge_mark_rows.clone(), EDGES)

    def propagate(
        self, conv: nn.Module, h: Rows, edge_attr: Rows | None = None, *, along: str = "nodes", **more: Any
    ) -> Rows:
        """One round of messages by a PyG conv: pairs along the edges of their subgraph, nodes along those of their graph.

        ``along="subgraphs"``: node v in subgraph j hears of itself in the subgraphs whose roots are neighbours of j's root.
        ``edge_attr``: from :attr:`edge_attr`, for convs that read it. Further arguments go to the conv; those that are Rows of
        edges, such as edge weights, too.
        """
        self._check(h, ("pairs", "nodes"), "propagate")
        if along not in ("nodes", "subgraphs"):
            raise unknown("along", along, ("nodes", "subgraphs"))
        if along == "subgraphs" and h.kind != "pairs":
            raise ValueError(f"Expected Rows of pairs for along='subgraphs', got {h}")
        of_edges = {"edge_attr": edge_attr} if edge_attr is not None else {}
        of_edges |= {name: value for name, value in more.items() if isinstance(value, Rows) and value.number == EDGES}
        rest = {name: value for name, value in more.items() if name not in of_edges}
        for name, value in of_edges.items():
            if not isinstance(value, Rows) or value.number != EDGES:
                raise TypeError(f"Expected {name} to be made from bag.edge_attr or bag.edge_mark, got {value!r}")
        base = 0 if h.kind == "pairs" and along == "nodes" else h.number
        return convolve(conv, h, EdgeList.of(self, base, along), of_edges | rest)

    def across(self, h: Rows, how: str = "sum") -> Rows:
        """Of every node its rows in all subgraphs that contain it, summed up, or their mean or maximum. Nodes."""
        self._check(h, ("pairs",), "across")
        if how not in POOLS[:3]:
            raise unknown("how", how, POOLS[:3])
        number = self._step(Step("across", "nodes", (h.number,)))
        return self._rows(self._pooled(h.value, number, how, None), number)

    def root(self, h: Rows) -> Rows:
        """Of every subgraph the row of its root; of both ends, added, where the root is an edge. Subgraphs."""
        self._check(h, ("pairs",), "root")
        number = self._step(Step("root", "subgraphs", (h.number,)))
        return self._rows(self._pooled(h.value, number, "sum", None), number)

    def diagonal(self, h: Rows) -> Rows:
        """Of every node its row in its own subgraph, whose root it is. Nodes."""
        self._check(h, ("pairs",), "diagonal")
        return self._read(h, Step("diagonal", "nodes", (h.number,)))

    def pool(self, h: Rows, how: str = "sum", score: Rows | None = None) -> Any:
        """Pairs -> subgraphs; subgraphs or nodes -> graphs, a tensor [graphs, channels]. An empty pool is zero.

        ``how``: ``"sum"``, ``"mean"``, ``"max"``, or ``"softmax"``: a mean weighted by the softmax of ``score``, Rows of one
        column or of as many as ``h``.
        """
        self._check(h, ("pairs", "nodes", "subgraphs"), "pool")
        if (how == "softmax") != (score is not None):
            raise ValueError(f"Expected a score for how='softmax' and for nothing else, got how={how!r}, score={score!r}")
        if score is not None:
            like = self.common([h, score], "pool")
            h, score = like.of(self.moved(h, like.number)), like.of(self.moved(score, like.number))
        target = "subgraphs" if h.kind == "pairs" else "graphs"
        number = self._step(Step("pool", target, (h.number,)))
        value = self._pooled(h.value, number, how, None if score is None else score.value)
        return self._rows(value, number) if target == "subgraphs" else value

    def spread(self, h: Rows) -> Rows:
        """Subgraphs or nodes -> pairs: every pair gets the row of its subgraph, or of its node."""
        if isinstance(h, Tensor):
            raise TypeError(
                f"Expected Rows of subgraphs or nodes to spread, got a tensor {list(h.shape)}: what was pooled to graphs is no "
                f"longer Rows"
            )
        self._check(h, ("nodes", "subgraphs"), "spread")
        return self._read(h, Step("spread", "pairs", (h.number,)))

    def each(self, h: Rows) -> Tensor:
        """A row for every node or subgraph of the batch, in PyG's order: an ordinary tensor, for node-level outputs."""
        self._check(h, ("nodes", "subgraphs"), "each")
        table = self.tables[h.number]
        assert table.place is not None
        self.need(h.number, "place", "places")
        return gather(h.value, table.place, table.cache, "place")

    def _check(self, h: Any, kinds: Sequence[str], verb: str) -> None:
        check_gradients()
        if not isinstance(h, Rows):
            raise TypeError(f"Expected Rows of {' or '.join(kinds)} for bag.{verb}, got {type(h).__name__}")
        if h.bag is not self:
            raise ValueError(f"Expected Rows of this bag for bag.{verb}, got Rows of another one")
        if h.kind not in kinds:
            raise ValueError(f"Expected Rows of {' or '.join(kinds)} for bag.{verb}, got Rows of {h.kind}")

    def _read(self, h: Rows, step: Step) -> Rows:
        number = self._step(step)
        table = self.tables[number]
        assert table.own is not None
        self.need(number, "own", "readers")
        return self._rows(gather(h.value, table.own, table.cache, "own"), number)

    def _pooled(self, value: Tensor, number: int, how: str, score: Tensor | None) -> Tensor:
        if how not in POOLS:
            raise unknown("how", how, POOLS)
        if value.ndim != 2 or not value.is_floating_point():
            raise ValueError(f"Expected Rows [rows, channels] of floats to pool, got {list(value.shape)} of {value.dtype}")
        if score is not None and (score.ndim != 2 or score.shape[1] not in (1, value.shape[1])):
            raise ValueError(f"Expected a score of one column or of {value.shape[1]}, got {list(score.shape)}")
        if how in ("sum", "mean"):
            self.need(number, "sum", *["sizes"] * (how == "mean"))
            for part in list_maps(self, number):
                value = apply_map(value, part)
            return value if how == "sum" else value / list_sizes(self.tables[number]).to(value.dtype)[:, None]
        self.need(number, "written out")
        lists = written_out(self.tables[number], len(value))
        return segment_max(value, lists) if score is None else attended(value, score, lists)

    # Rows of different tables

    def common(self, rows: Sequence[Rows], func: Any) -> Rows:
        """Some Rows, of the table in which all of these can be found."""
        first = rows[0]
        for other in rows[1:]:
            if other.bag is not self:
                raise refuse(func, "meets Rows of two bags")
            first = self._both(first, other, func)
        return first

    def _both(self, one: Rows, other: Rows, func: Any) -> Rows:
        if one.number == other.number or way(self, one.number, other.number) is not None:
            return one
        if way(self, other.number, one.number) is not None:
            return other
        if one.kind != other.kind or one.number < 0:
            raise refuse(
                func, f"meets Rows of {one.kind} with Rows of {other.kind} (bag.spread brings nodes and subgraphs to pairs)"
            )
        low, high = sorted((one.number, other.number))
        number = self._step(Step("join", one.kind, (low, high)))
        return self._rows(self.moved(one, number), number)

    def moved(self, rows: Rows, number: int) -> Tensor:
        """The values of Rows, as rows of another table in which each of them can be found."""
        if rows.number == number:
            return rows.value
        index = way(self, number, rows.number)
        assert index is not None
        self.need(number, f"way {rows.number}")
        return gather(rows.value, index, self.cache, f"way {number} {rows.number}")
