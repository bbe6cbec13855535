"""A compiled dataset: slices of it are plans."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch.key import chained, fingerprint, params_of, with_spec
from enfa.batch.positions import SLICING, positions
from enfa.batch.rows import compile_graphs
from enfa.edits import Edits, Policy, Subsample
from enfa.edits.marks import with_marks
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.join import join, renumbered
from enfa.graphs.labels import added_labels
from enfa.plan.cost import Cost
from enfa.plan.cut import Cutter
from enfa.plan.distinct import DistinctRows
from enfa.plan.expand import largest_values
from enfa.plan.gradients import refuse_gradients
from enfa.plan.make import edits_of, plan_of, sources_of
from enfa.plan.merge import merge_rows, widen_kinds
from enfa.plan.prepare import Needs
from enfa.plan.slice import Slicer, Sources
from enfa.plan.spec import Spec
from enfa.plan.steps.builder import start_kinds
from enfa.plan.table import Plan
from enfa.plan.truncate import first_layers

__all__ = ["SLICING", "CompiledDataset"]

def _both(old: np.ndarray | None, subs: int, new: np.ndarray | None, more: int) -> np.ndarray | None:
    """``keeps`` of ``subs`` and ``more`` subgraphs, where None stands for no."""
    if old is None and new is None:
        return None
    parts = ((old, subs), (new, more))
    return np.concatenate([np.zeros(count, bool) if part is None else part for part, count in parts])


class CompiledDataset:
    """What :func:`enfa.compile` returns. ``compiled[[3, 5]]`` is the plan of graphs 3 and 5.

    Several threads may slice: they take turns. Several processes do not have to.
    """

    def __init__(
        self,
        key: dict[str, Any],
        policy: Policy | None,
        spec: Spec,
        kind: str,
        sources: Sources,
        rows: DistinctRows | None,
        graphs: tuple[GraphSet, Edits] | None,
        y: Tensor | None,
    ) -> None:
        self.key, self.policy, self.spec, self.kind = key, policy, spec, kind
        self.sources, self.rows, self.graphs, self.y = sources, rows, graphs, y
        self._slicer: Slicer | None = None
        self._cutters: dict[bool, Cutter] = {}  # by whether all tables are pooled

    def __len__(self) -> int:
        return len(self.sources.node_ptr) - 1

    @property
    def num_subgraphs(self) -> int:
        return int(self.sources.sub_ptr[-1])

    @property
    def num_pairs(self) -> int:
        """(subgraph, node) pairs: the rows that the conventional model has per layer."""
        return int(self.sources.sub_size.sum())

    def positions(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> np.ndarray:
        """See :func:`enfa.batch.positions.positions`."""
        return positions(graphs, len(self))

    def __getitem__(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> Plan:
        """The plan of some graphs, in the given order. A graph may not occur twice."""
        return self.plan(graphs)

    def plan(
        self,
        graphs: int | Sequence[int] | np.ndarray | Tensor | slice,
        draw: Subsample | None = None,
        epoch: int = 0,
        score: np.ndarray | None = None,
        tables: bool = False,
    ) -> Plan:
        """The plan of some graphs; with ``draw``, of a part of their compiled bags, drawn anew each epoch.

        ``score``: a number for every compiled subgraph, see :meth:`enfa.Subsample.draw`. ``tables``: whether all tables
        will be pooled (``model.needs.tables``) of many batches: their deltas are then made once, for the whole dataset,
        and kept. Where processes slice, ask for it before they are forked, so that they share them.
        """
        ids = self.positions(graphs)
        subs = None if draw is None else self.checked_draw(draw).draw(self.sources.sub_ptr, ids, epoch, score)
        if self.rows is not None:
            with SLICING:
                plan = self._slices().plan(ids, subs, tables)
        else:
            assert self.graphs is not None
            all_graphs, edits = self.graphs
            plan = plan_of(all_graphs.subset(ids), edits.subset(all_graphs, ids, subs), self.spec, self.kind)
            plan.graph_ids = torch.from_numpy(ids)
        return self.labelled(plan)

    def checked_draw(self, draw: Subsample) -> Subsample:
        """The same, if it draws from the bags that were compiled."""
        if not isinstance(draw, Subsample):
            raise TypeError(f"Expected draw to be an enfa.Subsample, got {draw!r}")
        # by the key, which a stored file has, too
        name, params = self.key["policy"], self.key["params"]
        if (type(draw.policy).__name__, params_of(draw.policy)) != (name, params):
            compiled = f"{name}({', '.join(f'{k}={v!r}' for k, v in params.items())})"
            raise ValueError(f"Expected to draw from the compiled bags, those of {compiled}, got {draw.policy!r}")
        return draw

    def _slices(self) -> Slicer:
        assert self.rows is not None
        if self._slicer is None:
            self._slicer = Slicer(self.rows, self.sources)
        return self._slicer

    def cutter(self, needs: Needs) -> Cutter | None:
        """What cuts batches for a model faster than :meth:`plan`, for :class:`enfa.batch.fill.Filler`; None where it cannot.

        Kept, because it takes as long as many batches and several times the memory of the dataset: loaders share it.
        """
        if self.rows is None or needs.links != {"merged"}:
            return None
        with SLICING:
            slicer = self._slices()
            if not Cutter.takes(slicer):
                return None
            if needs.tables not in self._cutters:
                self._cutters[needs.tables] = Cutter(slicer, needs.tables)
            return self._cutters[needs.tables]

    def labelled(self, plan: Plan) -> Plan:
        """The plan with the labels of its graphs."""
        if self.y is not None:
            assert plan.graph_ids is not None
            plan.y = self.y.index_select(0, plan.graph_ids)
        return plan

    def cost(self) -> Cost:
        """Rows and messages per layer, and bytes of the arrays in memory."""
        if self.rows is None:
            return self[:].cost()
        tables = [layer.rows for layer in self.rows.layers]
        every = [self.rows.start, self.rows.deltas]
        every += [table for layer in self.rows.layers for table in layer.tables.values()]
        size = sum(8 * (len(t) + 1) + 8 * int(t.size[1]) for t in every)
        size += self.rows.base_ptr.nbytes + self.rows.base_row.nbytes + self.rows.sub_delta.nbytes + self.sources.x.nbytes
        return Cost([len(t) for t in tables], [int(t.size[1]) for t in tables], size)

    def rows_per_graph(self) -> np.ndarray:
        """int64 [G]: rows that each graph alone needs, summed over layers; counted when it was compiled.

        A batch needs at most the sum over its graphs, because they share rows. Full plans share nothing:
        here these are the layers times the (subgraph, node) pairs. For ego plans, which leave some of these out of the
        convs, that and the base rows are an upper bound.
        """
        if self.rows is not None:
            return self.rows.graph_rows.sum(axis=0)
        pairs = np.concatenate([[0], np.cumsum(self.sources.sub_size)])[self.sources.sub_ptr]
        base = np.diff(self.sources.node_ptr) if self.kind == "ego" else 0
        return self.spec.num_layers * (np.diff(pairs) + base)

    def extend(self, graphs: Sequence[Data]) -> np.ndarray:
        """Add graphs (for prediction, say) and return their positions. Only rows not known so far are added.

        Where either the dataset or the new graphs have labels, the others get NaN (-1 for integer labels). A file saved
        from here on counts as compiled from other graphs than before.
        """
        with SLICING:
            return self._extended(graphs)

    def _extended(self, graphs: Sequence[Data]) -> np.ndarray:
        if self.policy is None:
            raise ValueError("Expected to know the policy: load with load_compiled(path, policy=...) to extend")
        s = self.sources
        new = replace(check_graphs(graphs), first=len(self))
        refuse_gradients(graphs)
        edits = edits_of(new, self.policy, self.spec)
        added = fingerprint(new, edits, None)
        y = added_labels(self.y, len(self), graphs)
        edits = with_marks(edits, s.marks, s.edge_marks)
        if s.root is not None and edits.root is not None and s.root.shape[1] != edits.root.shape[1]:
            raise ValueError(f"Expected {s.root.shape[1]} root(s) a subgraph, as compiled, got {edits.root.shape[1]}")
        if not self.spec.edge_attr:
            new = replace(new, edge_attr=None, edge_kind=np.zeros_like(new.edge_kind))
        new = renumbered(new, s.x, s.edge_attr)
        first, count = len(self), new.num_graphs
        kind, feature, of_graph = start_kinds(new, self.spec.share)
        if self.spec.share == "graph":
            kind, feature, of_graph = (
                kind + len(s.start_feature),
                np.concatenate([s.start_feature, feature]),
                np.concatenate([s.start_graph, of_graph + first]),
            )
        if self.rows is not None:
            rows = compile_graphs(new, edits, self.spec, kind)
            if self.spec.edge_attr and len(edits.edge_marks) > len(s.edge_marks):
                # a copy: a dataset made by first_layers may share the tables, and knows nothing of the new marks
                self.rows = deepcopy(self.rows)
                widen_kinds(self.rows, len(s.edge_marks), len(edits.edge_marks))
            merge_rows(self.rows, rows, self.spec.context == "input")
        if self.graphs is not None:
            all_graphs = join(self.graphs[0], new)
            self.graphs = all_graphs, self.policy.edits(all_graphs)
        limits = tuple(
            tuple(max(pair) for pair in zip(a, b)) if a and b else a or b
            for a, b in zip(s.limits, largest_values(new))
        )
        more, _ = sources_of(new, edits, self.spec)
        self.sources = Sources(
            self.spec,
            np.concatenate([s.node_ptr, new.node_ptr[1:] + s.node_ptr[-1]]),
            np.concatenate([s.sub_ptr, edits.sub_ptr[1:] + s.sub_ptr[-1]]),
            np.concatenate([s.sub_size, more.sub_size]),
            feature, of_graph, new.x, edits.marks, new.edge_attr, edits.edge_marks, limits,  # type: ignore[arg-type]
            _both(s.keeps, len(s.sub_size), more.keeps, len(more.sub_size)),
            None if s.root is None or more.root is None else np.concatenate([s.root, more.root]),
        )  # fmt: skip
        self.y, self._slicer, self._cutters = y, None, {}
        self.key = {**self.key, "fingerprint": chained(self.key["fingerprint"], added)}
        return np.arange(first, first + count)

    def first_layers(self, count: int) -> CompiledDataset:
        """The dataset compiled for a model with fewer layers, without compiling again. The two share their tables."""
        if self.rows is not None and (self.spec.output != "graph" or self.spec.pruned):
            raise ValueError(f"Expected a spec with output='graph' and nothing pruned to cut layers off, got {self.spec}")
        spec = replace(self.spec, num_layers=count)
        rows = None if self.rows is None else first_layers(self.rows, count)
        sources, key = replace(self.sources, spec=spec), with_spec(self.key, spec)
        return CompiledDataset(key, self.policy, spec, self.kind, sources, rows, self.graphs, self.y)

    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically."""
        from enfa.batch.storage import save_compiled

        save_compiled(self, path)
