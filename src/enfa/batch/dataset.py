"""A compiled dataset: slices of it are plans, made of the steps that a model asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch.file.key import params_of, sealed
from enfa.batch.file.program import program_json
from enfa.batch.positions import SLICING, positions
from enfa.edits import Edits, Policy, Subsample
from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges
from enfa.graphs.labels import checked_labels
from enfa.plan.cost import Cost
from enfa.plan.cutting.cut import Cutter
from enfa.plan.keys.intern import KeyTable
from enfa.plan.make import step_plan_of
from enfa.plan.rows.distinct import StepRows
from enfa.plan.rows.truncate import first_layers, shorter
from enfa.plan.slicing.alone import rows_by_graph
from enfa.plan.slicing.slice import Slicer
from enfa.plan.slicing.sources import Sources
from enfa.plan.step import Program
from enfa.plan.table import Plan

__all__ = ["CompiledDataset"]


class CompiledDataset:
    """What :func:`enfa.compile` returns. ``compiled[[3, 5]]`` is the plan of graphs 3 and 5.

    It holds the rows of every step and ``sources``, what these are made of; or ``graphs`` and edits, where every batch is
    planned anew; or all of these, where rows are shared in the first steps only. Several threads may slice: they take turns.
    Several processes do not have to.
    """

    def __init__(
        self,
        key: dict[str, Any],
        policy: Policy | None,
        program: Program,
        cls: type[Plan],
        *,
        rows: list[StepRows] | None = None,
        sources: Sources | None = None,
        graphs: tuple[GraphSet, Edits] | None = None,
        y: Tensor | None = None,
        graph_attr: dict[str, Tensor] | None = None,
    ) -> None:
        self.key, self.policy, self.program, self.cls = key, policy, program, cls
        self.rows, self.sources, self.graphs, self.graph_attr = rows, sources, graphs, graph_attr or {}
        self.y = y
        self.node_y = None
        self.shared = False  # whether another dataset has the same tables: then they are copied before they grow
        self._slicer: Slicer | None = None
        self._cutters: dict[frozenset[tuple[int, str]], Cutter | None] = {}  # by needs

    @property
    def y(self) -> Tensor | None:
        """[graphs] or [graphs, columns]: labels, which may be set."""
        return self._y

    @y.setter
    def y(self, labels: Tensor | None) -> None:
        self._y = checked_labels(labels, len(self), "graphs")

    @property
    def node_y(self) -> Tensor | None:
        """[nodes] or [nodes, columns]: labels of nodes, all graphs' one after another, which plans then have as ``y``. They may
        be set, and are not stored."""
        return self._node_y

    @node_y.setter
    def node_y(self, labels: Tensor | None) -> None:
        self._node_y = checked_labels(labels, int(self.node_ptr[-1]), "nodes")

    @property
    def windows(self) -> None:
        """All graphs are in memory: no order is better than another."""

    @property
    def kind(self) -> str:
        return self.key["kind"]

    @property
    def node_ptr(self) -> np.ndarray:
        return self.sources.node_ptr if self.sources is not None else self.graphs[0].node_ptr  # type: ignore[index]

    @property
    def sub_ptr(self) -> np.ndarray:
        return self.sources.sub_ptr if self.sources is not None else self.graphs[1].sub_ptr  # type: ignore[index]

    @property
    def marks(self) -> np.ndarray:
        return self.sources.marks if self.sources is not None else self.graphs[1].marks  # type: ignore[index]

    @property
    def sub_size(self) -> np.ndarray:
        """int64 [S]: how many nodes each subgraph has."""
        return self.sources.sub_size if self.sources is not None else self.graphs[1].sizes(self.graphs[0])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def num_subgraphs(self) -> int:
        return int(self.sub_ptr[-1])

    @property
    def num_pairs(self) -> int:
        """(subgraph, node) pairs: the rows that the conventional model has per layer."""
        return int(self.sub_size.sum())

    def positions(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> np.ndarray:
        """See :func:`enfa.batch.positions.positions`."""
        return positions(graphs, len(self))

    def __getitem__(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> Plan:
        """The plan of some graphs, in the given order. A graph may not occur twice."""
        return self.plan(graphs)

    def __getitems__(self, graphs: Any) -> NoReturn:
        """What loaders of PyTorch's and PyG's ask for, to join it by themselves."""
        raise TypeError(
            f"Expected enfa.DataLoader(compiled, batch_size) for a {type(self).__name__}, got another loader, which joins "
            f"single graphs: plans cannot be joined, and compiled[numbers] is the plan of several graphs"
        )

    def plan(
        self,
        graphs: int | Sequence[int] | np.ndarray | Tensor | slice,
        draw: Subsample | None = None,
        epoch: int = 0,
        score: np.ndarray | None = None,
        places: np.ndarray | None = None,
    ) -> Plan:
        """The plan of some graphs; with ``draw``, of a part of their compiled bags, drawn anew each epoch.

        ``score``: a number for every compiled subgraph, see :meth:`enfa.Subsample.draw`. ``places``: of the graphs in a larger
        dataset, of which this is a part.
        """
        ids = self.positions(graphs)
        subs = None if draw is None else self.checked_draw(draw).draw(self.sub_ptr, ids, epoch, score, places)
        return self._cut(ids, subs, places)

    def part(self, subs: np.ndarray) -> Plan:
        """The plan of some compiled subgraphs, by their numbers, ascending: of their graphs, with bags of these alone."""
        if self.rows is not None:
            self.slicer.check_draw()
        subs = np.asarray(subs, np.int64)
        return self._cut(np.unique(np.searchsorted(self.sub_ptr, subs, side="right") - 1), subs)

    def _cut(self, ids: np.ndarray, subs: np.ndarray | None, places: np.ndarray | None = None) -> Plan:
        if self.rows is not None:
            with SLICING:
                plan = self.labelled(self.slicer.plan(ids, subs))
        else:
            assert self.graphs is not None
            every, edits = self.graphs
            plan = step_plan_of(every.subset(ids), edits.subset(every, ids, subs), self.program, self.kind, self.cls)
            plan.graph_ids = torch.from_numpy(ids)
            plan = self.labelled(plan)
        if places is not None:
            plan.graph_ids = torch.from_numpy(places)
        return plan

    @property
    def slicer(self) -> Slicer:
        """What cuts plans out of the rows."""
        assert self.rows is not None and self.sources is not None
        if self._slicer is None:
            self._slicer = Slicer(self.rows, self.sources, self.cls, self.graphs)
        return self._slicer

    def cutter(self, needs: Iterable[tuple[int, str]]) -> Cutter | None:
        """What cuts batches for a model faster than :meth:`plan`, for blocks that loaders pack; None where it cannot.

        Kept, because it takes as long as many batches and several times the memory of the dataset: loaders share it.
        """
        key = frozenset(needs)
        if self.rows is None:
            return None
        with SLICING:
            if key not in self._cutters:
                self._cutters[key] = Cutter(self.slicer, key) if Cutter.takes(self.slicer, key) else None
            return self._cutters[key]

    def labelled(self, plan: Plan) -> Plan:
        """The plan with the labels and attributes of its graphs."""
        assert plan.graph_ids is not None
        if self.node_y is not None:
            ids = plan.graph_ids.numpy()
            nodes = ranges(self.node_ptr[ids], self.node_ptr[ids + 1] - self.node_ptr[ids])
            plan.y = self.node_y.index_select(0, torch.from_numpy(nodes))
        elif self.y is not None:
            plan.y = self.y.index_select(0, plan.graph_ids)
        plan.graph_attr = {name: value.index_select(0, plan.graph_ids) for name, value in self.graph_attr.items()}
        return plan

    def checked_draw(self, draw: Subsample) -> Subsample:
        """The same, if it draws from the bags that were compiled."""
        if not isinstance(draw, Subsample):
            raise TypeError(f"Expected draw to be an enfa.Subsample, got {draw!r}")
        # by the key, which a stored file has, too
        name, params = self.key["policy"], self.key["params"]
        if (type(draw.policy).__name__, params_of(draw.policy)) != (name, params):
            compiled = f"{name}({', '.join(f'{k}={v!r}' for k, v in params.items())})"
            raise ValueError(f"Expected to draw from the compiled bags, those of {compiled}, got {draw.policy!r}")
        if self.rows is not None:
            self.slicer.check_draw()
        return draw

    def cost(self) -> Cost:
        """Rows and messages of every step that passes messages, and bytes of the arrays in memory."""
        if self.rows is None or self.sources is None or self.program.unshared is not None:
            return self[:].cost()
        held = [getattr(rows, field.name) for rows in self.rows for field in fields(rows)]
        size = sum(8 * (len(t) + 1) + 8 * int(t.size[1]) for t in held if isinstance(t, KeyTable))
        size += sum(a.nbytes for a in (*held, self.sources.x) if isinstance(a, np.ndarray))
        keys = [rows.keys for step, rows in zip(self.program.steps, self.rows) if step.op == "propagate"]
        return Cost([len(table) for table in keys], [int(table.size[1]) for table in keys], size)

    def single_node(self, graph: int) -> bool:
        """Whether a graph has one node only."""
        return int(self.node_ptr[graph + 1] - self.node_ptr[graph]) == 1

    def rows_per_graph(self) -> np.ndarray:
        """int64 [G]: rows that each graph alone has in the steps that pass messages, added up.

        A batch needs at most the sum over its graphs, because they share rows. Full plans share nothing: here it is all pairs,
        or nodes, of each of these steps. For others that are planned anew that is an upper bound.
        """
        steps = [(number, step) for number, step in enumerate(self.program.steps) if step.op == "propagate"]
        none = np.zeros(len(self), np.int64)
        if self.rows is not None:
            assert self.sources is not None
            found = rows_by_graph(self.rows, self.program, self.node_ptr, self.sub_ptr, self.sources.pair_ptr)
            none = sum((np.diff(found[number][0]) for number, _ in steps if number < len(found)), none)
            steps = [(number, step) for number, step in steps if number >= len(found)]
        pairs = np.diff(np.concatenate([[0], np.cumsum(self.sub_size)])[self.sub_ptr])
        return sum((pairs if step.kind == "pairs" else np.diff(self.node_ptr) for _, step in steps), none)

    def extend(self, graphs: Sequence[Data]) -> np.ndarray:
        """Add graphs (for prediction, say) and return their positions. Only rows not known so far are added.

        Where either the dataset or the new graphs have labels, the others get NaN (-1 for integer labels); attributes of graphs
        that the dataset has, they must have, too. A file saved from here on counts as compiled from other graphs than before.
        """
        from enfa.batch.extend import extend

        with SLICING:
            self._slicer, self._cutters = None, {}
            return extend(self, graphs)

    def first_layers(self, count: int) -> CompiledDataset:
        """The dataset compiled for a model with fewer layers, without compiling again. The two share their tables."""
        program, rows, sources = shorter(self.program, count), None, None
        if self.rows is not None and self.sources is not None:
            rows, sources = first_layers(self.rows, self.program, count), Sources(program, **self.sources.arrays)
        key = sealed({**self.key, "program": program_json(program)})
        less = CompiledDataset(
            key, self.policy, program, self.cls, rows=rows, sources=sources, graphs=self.graphs, y=self.y,
            graph_attr=self.graph_attr,
        )  # fmt: skip
        self.shared = less.shared = rows is not None
        less.node_y = self.node_y
        return less

    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically."""
        from enfa.batch.file.storage import save_compiled

        save_compiled(self, path)

    def __repr__(self) -> str:
        rows = "planned batch by batch" if self.rows is None else " ".join(str(len(rows.keys)) for rows in self.rows)
        if self.program.unshared is not None:
            rows += f"; none shared from step {self.program.unshared} on"
        return (
            f"{type(self).__name__}({self.kind}, {len(self)} graphs, {self.num_subgraphs} subgraphs, "
            f"{self.num_pairs} (subgraph, node) pairs)\n"
            f"  steps: {'; '.join(map(str, self.program.steps))}\n  rows:  {rows}"
        )
