"""Classes of equal rows are the rows of the distinct plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import EVERY
from drawn import OWN, Drawn
from step_rows import Numbers, of_plan, plan_of

from enfa.nn.bag import trace
from enfa.plan.classes import step_classes
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize(("seed", "name"), list(enumerate([*EVERY, *EVERY], 200)))
def test_classes_are_the_rows_of_the_distinct_plan(seed: int, name: str) -> None:
    graphs = random_graphs(5, 6, seed=3, edge_channels=2)
    for graph in graphs[:3]:
        graph.x.fill_(1.0)
    graphs += [*degenerate_graphs(3, 2).values(), graphs[0]]
    model = Drawn(seed, EVERY[name], 2, 4, name in OWN, name in OWN)
    program = replace(trace(model, graphs, EVERY[name]), counted=True)
    full, ego, distinct = (plan_of(graphs, EVERY[name], program, kind) for kind in ("full", "ego", "distinct"))
    number, split = Numbers(), False
    for step, table, *classes in zip(program.steps, distinct.tables, *map(step_classes, (full, ego, distinct)), strict=True):
        counts = [len(np.unique(rows)) for rows in classes]
        split |= table.parts is not None
        assert counts[0] == counts[1] == counts[2], step
        if not split and step.kind != "graphs":
            assert counts[2] == table.num_rows, f"{step}: a row of the distinct plan is there twice"
            assert sorted(np.bincount(classes[0])) == sorted(table.copies.tolist()), step
    for rows, classes in zip(of_plan(number, full), step_classes(full), strict=True):
        # the same partition of all pairs, nodes, subgraphs or graphs: as many classes as pairs of classes
        assert len({*zip(rows, classes.tolist())}) == len(set(rows)) == len(set(classes.tolist()))
