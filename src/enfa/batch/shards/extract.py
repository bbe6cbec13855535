"""Some graphs of a compiled dataset as a dataset of their own."""

import numpy as np
import torch

from enfa.batch.dataset import CompiledDataset
from enfa.graphs.graphset import ranges
from enfa.plan.keys.intern import KeyTable
from enfa.plan.rows.arrange import arrange_steps
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.sources import Bags, Sources

__all__ = ["extracted"]


def _same(table: KeyTable) -> KeyTable:
    """Another table with the same arrays, which arranging replaces."""
    new = KeyTable(0, 0)
    new.size, new.heads, new.items = table.size.copy(), table.heads, table.items
    return new


def _of_bags(rows: StepRows, kind: str, bags: Bags) -> StepRows:
    """The same keys, and where the chosen graphs find theirs."""
    new = StepRows(_same(rows.keys), None if rows.lists is None else _same(rows.lists))
    if rows.place is not None:
        new.place = rows.place[bags.placed(kind)]
    if rows.count_ptr is not None and rows.count_row is not None and rows.count is not None:
        length = np.diff(rows.count_ptr)[bags.graphs]
        at = ranges(rows.count_ptr[bags.graphs], length)
        new.count_ptr = np.concatenate([[0], np.cumsum(length)])
        new.count_row, new.count = rows.count_row[at], rows.count[at]
    return new


def _sources(old: Sources, bags: Bags, graphs: np.ndarray) -> Sources:
    place = np.full(len(old.node_ptr), -1, np.int64)
    place[graphs] = np.arange(len(graphs))
    nodes = np.diff(old.node_ptr)[graphs]
    arrays = old.arrays | {
        "node_ptr": np.concatenate([[0], np.cumsum(nodes)]), "sub_ptr": np.concatenate([[0], np.cumsum(bags.subs)]),
        "sub_size": old.sub_size[bags.sub], "root": None if old.root is None else old.root[bags.sub],
        "start_graph": place[old.start_graph] if old.program.share == "graph" else old.start_graph,
    }  # fmt: skip
    return Sources(old.program, **arrays)


def extracted(compiled: CompiledDataset, graphs: np.ndarray) -> CompiledDataset:
    """Without the rows that only others have. ``graphs``: positions, each at most once; ``compiled`` stays as it is.

    Cost: that of cutting a batch of them, and a number for every row of the dataset.
    """
    rows, sources, planned = None, None, None
    if compiled.rows is not None and compiled.sources is not None:
        program, bags = compiled.program, Bags(compiled.sources, graphs)
        rows = [_of_bags(found, step.kind, bags) for found, step in zip(compiled.rows, program.steps)]
        arrange_steps(rows, program, runs=False)
        sources = _sources(compiled.sources, bags, graphs)
    if compiled.graphs is not None:
        every, edits = compiled.graphs
        planned = every.subset(graphs), edits.subset(every, graphs)
    chosen = torch.from_numpy(graphs)
    return CompiledDataset(
        compiled.key, compiled.policy, compiled.program, compiled.cls, rows=rows, sources=sources, graphs=planned,
        y=None if compiled.y is None else compiled.y[chosen],
        graph_attr={name: value[chosen] for name, value in compiled.graph_attr.items()},
    )  # fmt: skip
