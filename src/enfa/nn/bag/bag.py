"""A bag of subgraphs, as a model sees it: a few verbs, whatever the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from enfa.graphs.names import unknown
from enfa.nn.bag.edges import EdgeList
from enfa.nn.bag.pyg_convs import convolve
from enfa.nn.convs.base import Conv
from enfa.nn.ops.segment import apply_map, attended, gather, segment_max, weighted_sum
from enfa.nn.rowwise.held import HeldColumns, held_back, holds, pass_goes_on, settle_norms
from enfa.nn.rowwise.layer_end import HeldSpread
from enfa.nn.rowwise.refusal import check_gradients, refuse
from enfa.nn.rowwise.rows import EDGES, Rows
from enfa.nn.triton import accelerated
from enfa.plan.derived.lists import list_sizes, written_out
from enfa.plan.derived.needs import PLAN, derive, list_maps, way
from enfa.plan.step import Step, step_of
from enfa.plan.table import Plan

__all__ = ["Bag", "check_plan"]

POOLS = ("sum", "mean", "max", "softmax")
TARGETS = {"pairs": ("subgraphs",), "subgraphs": ("graphs", "nodes"), "nodes": ("graphs",)}  # of pools; the first by default
READ = ("x", "x_cat", "mark", "degree", "edge_attr", "edge_mark", "graph_attr")
VERBS = ("propagate", "across", "root", "diagonal", "pool", "spread", "each")


class Bag(Plan):
    """What ``model(bag)`` computes with. Rows are of *pairs* (subgraph, node), of *nodes* or of *subgraphs*.

    Graphs are told apart by all plans alike: what is pooled to graphs is an ordinary tensor [graphs, channels]. Attributes of
    whole graphs are such tensors, too: ``bag.graph_attr["name"]`` is [graphs, ...] for every attribute ``name`` of PyG's graphs
    that is a number, or a tensor of one shape in all of them, beside features, edges and ``y``. What is as long as each graph
    has nodes, or edges, is no such attribute; [1, ...] always is (:func:`enfa.graphs.attributes.graph_attributes`).
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """PyG makes a class of its batches and of whatever it is to join."""
        if issubclass(cls, Batch):
            raise TypeError(
                "Expected graphs for a torch_geometric.data.Batch, got plans: enfa.make_plan makes one plan of many graphs, "
                "and enfa.DataLoader one of each batch"
            )
        super().__init_subclass__(**options)

    if not TYPE_CHECKING:  # for which there is nothing else

        def __getattr__(self, name: str) -> Any:
            """Of what there is not: an error that says what there is."""
            if name.startswith("__") or hasattr(type(self), name):  # a property that failed says why
                return object.__getattribute__(self, name)
            error, hint = str(unknown("what a model asks of a bag", name, (*READ, *VERBS))), ""
            attr = self.__dict__.get("graph_attr", {})
            if name in attr:
                hint = f": it is there as batch.graph_attr[{name!r}]"
            elif name in ("edge_index", "batch", "ptr"):
                hint = ": pass messages with bag.propagate(conv, h), or use enfa.lift(model) for a model that takes graphs"
            elif "did you mean" not in error:
                kept = ", ".join(attr) or "none"
                hint = f"; of numbers that graphs have, batch.graph_attr has {kept}; batch.graph_ids says which graphs they are"
            raise AttributeError(f"{error}{hint}")

    def _rows(self, value: Tensor, number: int) -> Rows:
        return Rows(value, self, number)

    def step(self, step: Step) -> int:
        return self.program.number(step)

    tracing = False

    def need(self, number: int, *names: str) -> None:
        """The model reads these of a step (:mod:`enfa.plan.derived.needs`); noted while it is traced."""

    def note_dropout(self, draws: bool) -> None:
        """Dropout is used on rows, and ``draws``: rows are then shared within a graph only."""
        if draws and not self.program.dropout:
            raise ValueError(
                "The model drops what it was not seen to drop when its plan was made, so one mask would strike all graphs: use "
                "nn.Dropout, which is seen in evaluation mode, too, and make a plan with this model"
            )

    def note_graphs(self) -> None:
        """Pairs of different graphs are told apart."""
        if self.program.share != "graph":
            raise ValueError(
                "The model tells graphs apart, and its plan shares rows between them. Make a plan with this model, which must "
                "not ask for share='dataset'"
            )

    def note_counts(self, reads: bool) -> None:
        """Rows go through a BatchNorm, and ``reads``: what it computes depends on how often they count."""
        if reads and not self.program.counted:
            raise ValueError(
                "The model has a BatchNorm on Rows, and its plan was made for one that has none, so it leaves out rows. Make a "
                "plan with this model"
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
        pass_goes_on(self)
        rows = self.x_rows[:, : self.x_rows.shape[1] - len(self.categories)] if self.categories else self.x_rows
        return self._rows(gather(rows, self.feature, self.cache, "feature"), 0)

    @property
    def x_cat(self) -> Rows:
        """Categorical columns (int64) of graphs that have floats in ``x`` and these in ``x_cat`` beside them. Pairs."""
        if not self.categories:
            raise ValueError("Expected graphs with 'x_cat' beside floats in 'x', because the model reads it, got none")
        self.need(PLAN, "feature")
        rows = self.x_rows.detach()[:, self.x_rows.shape[1] - len(self.categories) :]
        return self._rows(rows.index_select(0, self.feature).long(), 0)

    @property
    def mark(self) -> Rows:
        """[pairs, mark channels]: what the policy marks nodes with. Pairs."""
        pass_goes_on(self)
        return self._rows(self.mark_rows.index_select(0, self.marked), 0)

    @property
    def degree(self) -> Rows:
        """int64 [pairs, 1]: how many edges of the subgraph lead to the node. Pairs."""
        self.step(Step("start", "pairs", degrees=True))
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

    def propagate(self, conv: nn.Module, h: Rows, edge_attr: Rows | None = None, *, along: str = "nodes", **more: Any) -> Rows:
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
        if isinstance(conv, Conv):
            if more:
                raise TypeError(f"{type(conv).__name__} takes edge_attr and nothing else, got {', '.join(more)}")
            return conv(self, h, self._of_edges("edge_attr", edge_attr), along)
        if torch.compiler.is_compiling():  # it would take a stand-in for an edge list for a tensor
            return torch.compiler.disable(self.propagate)(conv, h, edge_attr, along=along, **more)
        of_edges = {"edge_attr": edge_attr} if edge_attr is not None else {}
        of_edges |= {name: value for name, value in more.items() if isinstance(value, Rows) and value.number == EDGES}
        rest = {name: value for name, value in more.items() if name not in of_edges}
        for name, value in of_edges.items():
            self._of_edges(name, value)
        base = 0 if h.kind == "pairs" and along == "nodes" else h.number
        return convolve(conv, h, EdgeList.of(self, base, along), of_edges | rest)

    @staticmethod
    def _of_edges(name: str, value: Any) -> Rows | None:
        if value is not None and (not isinstance(value, Rows) or value.number != EDGES):
            raise TypeError(f"Expected {name} to be made from bag.edge_attr or bag.edge_mark, got {value!r}")
        return value

    def degrees_of(self, h: Rows, along: str = "nodes") -> Rows:
        """[rows, 1]: how many messages a row of the next round of messages gets."""
        if h.kind == "pairs" and along == "nodes":
            return self.degree
        return EdgeList.of(self, h.number, along).degree(None)[:, None]  # type: ignore[return-value, call-overload]

    def across(self, h: Rows, how: str = "sum") -> Rows:
        """Of every node its rows in all subgraphs that contain it, summed up, or their mean or maximum. Nodes."""
        self._check(h, ("pairs",), "across")
        if how not in POOLS[:3]:
            raise unknown("how", how, POOLS[:3])
        number = self.step(step_of("across", "nodes", (h.number,)))
        return self._rows(self._pooled(h, number, how, None), number)

    def root(self, h: Rows) -> Rows:
        """Of every subgraph the row of its root; of both ends, added, where the root is an edge. Subgraphs."""
        self._check(h, ("pairs",), "root")
        number = self.step(step_of("root", "subgraphs", (h.number,)))
        return self._rows(self._pooled(h, number, "sum", None), number)

    def diagonal(self, h: Rows) -> Rows:
        """Of every node its row in its own subgraph, whose root it is. Nodes."""
        self._check(h, ("pairs",), "diagonal")
        return self._read(h, step_of("diagonal", "nodes", (h.number,)))

    def pool(self, h: Rows, how: str = "sum", score: Rows | None = None, *, to: str | None = None) -> Any:
        """Pairs -> subgraphs; subgraphs or nodes -> graphs, a tensor [graphs, channels]. An empty pool is zero.

        ``to="nodes"``: subgraphs -> nodes; a node reads the subgraphs whose root it is, or an end of whose root edge; nothing,
        where there are none.
        ``how``: ``"sum"``, ``"mean"``, ``"max"``, or ``"softmax"``: a mean weighted by the softmax of ``score``, Rows of one
        column or of as many as ``h``.
        """
        self._check(h, ("pairs", "nodes", "subgraphs"), "pool")
        if (how == "softmax") != (score is not None):
            raise ValueError(f"Expected a score for how='softmax' and for nothing else, got how={how!r}, score={score!r}")
        if score is not None:
            like = self.common([h, score], "pool")
            h, score = like.of(self.moved(h, like.number)), like.of(self.moved(score, like.number))
        targets = TARGETS[h.kind]
        if to is not None and to not in targets:
            more = " (bag.across sums up what nodes are in all subgraphs)" if (h.kind, to) == ("pairs", "nodes") else ""
            raise ValueError(f"Expected Rows of {h.kind} to be pooled to {' or '.join(targets)}, got to={to!r}{more}")
        target = targets[0] if to is None else to
        number = self.step(step_of("pool", target, (h.number,)))
        value = self._pooled(h, number, how, None if score is None else score.value)
        if target != "graphs":
            return self._rows(value, number)
        settle_norms()
        pass_goes_on(self, False)
        return value

    def spread(self, h: Rows | Tensor) -> Rows:
        """Subgraphs, nodes or graphs -> pairs: every pair gets the row of its subgraph, of its node, or of its graph.

        Of graphs it is a tensor [graphs, channels], as :meth:`pool` gives it: pairs of different graphs then share no row.
        """
        if isinstance(h, Tensor):
            if h.ndim < 1 or len(h) != self.num_graphs:
                raise ValueError(f"Expected a tensor of {self.num_graphs} graphs to spread, got {list(h.shape)}")
            self.note_graphs()
            pass_goes_on(self)
            assert self.of_graph is not None
            self.need(PLAN, "of_graph")
            return self._rows(gather(h, self.of_graph, self.cache, "of_graph"), 0)
        self._check(h, ("nodes", "subgraphs"), "spread")
        return self._read(h, step_of("spread", "pairs", (h.number,)))

    @property
    def rooted(self) -> Tensor | None:
        """int64: the subgraphs that have a root; None where all have. What a policy finds nothing to edit in has none."""
        if "rooted" not in self.cache:
            assert self.root_nodes is not None
            there = self.root_nodes[:, 0] >= 0
            self.cache["rooted"] = None if bool(there.all()) else there.nonzero()[:, 0]
        return self.cache["rooted"]

    def each(self, h: Rows) -> Tensor:
        """A row for every node or subgraph of the batch, in PyG's order: an ordinary tensor, for node-level outputs."""
        self._check(h, ("nodes", "subgraphs"), "each")
        table = self.tables[h.number]
        assert table.place is not None
        self.need(h.number, "place", "places")
        settle_norms()
        pass_goes_on(self, False)
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
        number = self.step(step)
        table = self.tables[number]
        assert table.own is not None
        self.need(number, "own", "readers")
        if step.op == "spread" and holds(h) and h.ndim == 2 and h.is_floating_point():
            return held_back(HeldSpread(h, number), Rows(None, self, number))  # type: ignore[arg-type]
        return self._rows(gather(h.value, table.own, table.cache, "own"), number)

    def _pooled(self, h: Rows, number: int, how: str, score: Tensor | None) -> Tensor:
        if how not in POOLS:
            raise unknown("how", how, POOLS)
        if h.ndim != 2 or not h.is_floating_point():
            raise ValueError(f"Expected Rows [rows, channels] of floats to pool, got {list(h.value.shape)} of {h.dtype}")
        if score is not None and (score.ndim != 2 or score.shape[1] not in (1, h.shape[1])):
            raise ValueError(f"Expected a score of one column or of {h.shape[1]}, got {list(score.shape)}")
        if how in ("sum", "mean"):
            self.need(number, "sum", *["sizes"] * (how == "mean"))
            value = self._list_sums(h, number)
            for part in list_maps(self, number)[1:]:
                value = apply_map(value, part)
            value = self._finite(value, h, number)
            return value if how == "sum" else value / list_sizes(self.tables[number]).to(value.dtype)[:, None]
        self.need(number, "written out")
        lists = written_out(self.tables[number], len(h.value))
        return segment_max(h.value, lists) if score is None else attended(h.value, score, lists)

    def _finite(self, value: Tensor, h: Rows, number: int) -> Tensor:
        """A subgraph's list is its graph's, less the rows that it lacks, and of these none can be infinite. Where a sum is,
        every list is added up as it is: only where looking does not mean to wait for a device."""
        table = self.tables[number]
        if value.device.type != "cpu" or accelerated(value) or table.parts is None or bool(value.detach().sum().isfinite()):
            return value
        assert table.sums is not None
        return value if table.sums.row.is_meta else weighted_sum(h.value, written_out(table, len(h.value)))

    def _list_sums(self, h: Rows, number: int) -> Tensor:
        """Columns of earlier tables are added up over these, where the lists are shorter."""
        if not isinstance(h.held, HeldColumns) or h.activated:
            return apply_map(h.value, list_maps(self, number)[0])
        found = []
        for part in h.held.reads:
            if part.number == h.number or self.program.steps[number].op != "pool" or h.kind != "pairs":
                found.append(apply_map(self.moved(part, h.number), list_maps(self, number)[0]))
            else:
                self.need(number, f"lowered {part.number}")
                found.append(apply_map(part.value, derive(self, number, f"lowered {part.number}")))
        return torch.cat(found, 1)

    # Rows of different tables

    def common(self, rows: Sequence[Rows], func: Any) -> Rows:
        """Some Rows, of the table in which all of these can be found."""
        first = rows[0]
        for other in rows[1:]:
            if other.bag is not self:
                raise refuse(func, "meets Rows of two bags")
            number = self.meeting(first, other, func)
            if number != first.number:
                first = other if number == other.number else self._rows(self.moved(first, number), number)
        return first

    def meeting(self, one: Rows, other: Rows, func: Any) -> int:
        """The table in which the rows of both can be found."""
        if one.number == other.number or way(self, one.number, other.number) is not None:
            return one.number
        if way(self, other.number, one.number) is not None:
            return other.number
        if one.kind != other.kind or one.number < 0:
            raise refuse(
                func, f"meets Rows of {one.kind} with Rows of {other.kind} (bag.spread brings nodes and subgraphs to pairs)"
            )
        low, high = sorted((one.number, other.number))
        return self.step(step_of("join", one.kind, (low, high)))

    def unpadded(self, value: Tensor, number: int) -> Tensor:
        """Of a padded batch, the values of a real row where padding stands, for functions that may not be defined there."""
        self.need(PLAN, "real")
        if number < 0 or "real" not in self.cache:
            return value
        there = torch.arange(len(value), device=value.device) < self.cache["real"][number]
        return torch.where(there.view(-1, *[1] * (value.ndim - 1)), value, value[:1].detach())

    def moved(self, rows: Rows, number: int) -> Tensor:
        """The values of Rows, as rows of another table in which each of them can be found."""
        if rows.number == number:
            return rows.value
        self.need(number, f"way {rows.number}")
        if self.numbered_alike(number, rows.number):
            return rows.value
        index = way(self, number, rows.number)
        assert index is not None
        return gather(rows.value, index, self.cache, f"way {number} {rows.number}")


def check_plan(given: Any) -> None:
    """Refuse what a model is given instead of a plan: graphs of PyG's, say."""
    if not isinstance(given, Bag):
        hint = ": compiled[:] is the plan of all its graphs" if hasattr(given, "program") else ""
        raise TypeError(f"Expected a plan from enfa.make_plan or enfa.DataLoader, got {type(given).__name__}{hint}")
