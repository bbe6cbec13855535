"""The plan of some graphs, cut out of the distinct rows of many.

No hashing, and no work for rows of other graphs: the cost is that of the plan that comes out.
"""

import numpy as np
import torch
from torch import Tensor

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.arrays import tensor
from enfa.plan.derived.lowered import lowered_keys
from enfa.plan.derived.order import each_once
from enfa.plan.keys.intern import KeyTable
from enfa.plan.kinds_read import edge_rows_read
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.held import Held
from enfa.plan.slicing.making import Making
from enfa.plan.slicing.sources import Bags, Sources
from enfa.plan.slicing.unshared import unshared_tables
from enfa.plan.table import Plan, Table

__all__ = ["Slicer", "Sources"]


class Slicer:
    """Cuts plans out of distinct rows. Not thread-safe."""

    def __init__(
        self, rows: list[StepRows], sources: Sources, cls: type[Plan] = Plan, graphs: tuple[GraphSet, Edits] | None = None
    ) -> None:
        """``graphs``: where some steps share no rows."""
        self.rows, self.sources, self.cls, self.graphs = rows, sources, cls, graphs
        # by dataset, not by batch: plans of one dataset differ in nothing but sizes
        self.copies_type = np.int32 if int(sources.sub_size.sum()) < 2**31 else np.int64
        self._held: dict[int, Held] = {}
        self._lowered: dict[int, dict[int, KeyTable]] = {}
        self._zeros, self._ones = torch.zeros(0, dtype=torch.int32), torch.ones(0, dtype=torch.int8)

    def held(self, table: KeyTable) -> Held:
        found = self._held.get(id(table))
        if found is None or found.rows != len(table):
            found = self._held[id(table)] = Held(table)
        return found

    def zeros(self, length: int) -> Tensor:
        """int32: the kinds of edges that are all of one kind, for all plans."""
        if len(self._zeros) < length:
            self._zeros = torch.zeros(2 * length, dtype=torch.int32)
        return self._zeros[:length]

    def ones(self, length: int) -> Tensor:
        """int8: how often each subgraph has its lists, for all plans."""
        if len(self._ones) < length:
            self._ones = torch.ones(2 * length, dtype=torch.int8)
        return self._ones[:length]

    def lowered(self, pool: int) -> dict[int, KeyTable]:
        """The lists of a pool over the earlier tables that the model asks for, made for all graphs when first wanted."""
        if pool not in self._lowered:
            program = self.sources.program
            names = [name.split() for step, name in program.needs if step == pool]
            tables = [int(name[1]) for name in names if name[0] == "lowered"]
            self._lowered[pool] = lowered_keys(self.rows, program, pool, tables)
        return self._lowered[pool]

    def check_draw(self) -> None:
        """Refuse parts of bags where it is not known what the rows of whole bags have to do with theirs."""
        steps = self.sources.program.steps
        for number, step in enumerate(steps):
            if step.kind == "nodes" or step.along == "subgraphs":
                raise ValueError(
                    f"Expected whole bags, because step {number} ({step.kind}, {step}) reads rows of several subgraphs, got a "
                    f"part of them: compile with ahead=False"
                )
        for number, pool in self.sources.program.counted_by.items():
            if pool is None:
                raise ValueError(
                    f"Expected whole bags, because the model counts the rows of step {number} ({steps[number]}), which it does "
                    f"not pool, got a part of them: compile with ahead=False"
                )

    def plan(self, graphs: np.ndarray, subs: np.ndarray | None = None) -> Plan:
        """The plan of the chosen graphs, in the given order; each at most once.

        ``subs``, if given, restricts their bags to some subgraphs (numbers in the whole dataset, graph by graph in the order
        of ``graphs``), such as a draw of :class:`~enfa.Subsample`.
        """
        if subs is not None:
            self.check_draw()
        bags = Bags(self.sources, np.asarray(graphs, np.int64), subs)
        cut = Making(self, bags)
        tables = [cut.table(number) for number in reversed(range(len(self.rows)))][::-1]
        if self.graphs is not None:
            every, edits = self.graphs
            chosen = every.subset(bags.graphs), edits.subset(every, bags.graphs, subs)
            tables += unshared_tables(self.sources.program, *chosen, tables, self.copies_type)
        return self.assembled(bags, cut.wanted[0].rows, tables)

    def assembled(self, bags: Bags, start: np.ndarray, tables: list[Table]) -> Plan:
        """A plan from its tables: the rest of it. ``start``: rows wanted of the first."""
        s, keys = self.sources, self.rows[0].keys
        own = keys.own_of(start)
        _, mark, degree = self.held(keys).items(start)
        of_graph = None
        if s.program.share == "graph":
            position = np.full(len(s.node_ptr), -1, np.int64)
            position[bags.graphs] = np.arange(len(bags.graphs))
            of_graph = tensor(position[s.start_graph[own]])
        edge_rows, edge_mark_rows = edge_rows_read(s.program, tables, s.edge_attr, s.edge_mark)
        plan = self.cls(
            kind="distinct", program=s.program, num_graphs=len(bags.graphs),
            x_rows=tensor(s.x[s.start_feature[own]]), feature=torch.arange(len(start)),
            mark_rows=tensor(s.marks), marked=tensor(mark), of_graph=of_graph,
            edge_rows=edge_rows, edge_mark_rows=edge_mark_rows, tables=tables,
            num_nodes=bags.count["nodes"], num_subgraphs=bags.count["subgraphs"],
            degrees=tensor(degree.astype(np.int64)) if s.program.steps[0].degrees else None,
            limits=s.limits, categories=s.categories, root_nodes=bags.roots(s.root), graph_ids=tensor(bags.graphs),
            unshared=s.program.unshared,
        )  # fmt: skip
        plan.cache["feature"] = each_once(len(start))  # what ``derive.readers`` would find
        return plan
