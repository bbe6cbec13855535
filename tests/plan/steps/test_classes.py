import numpy as np
import pytest
from bag_models import MODELS
from torch import nn

from enfa import DSGNN, DSSGNN, EdgeDeletion, EgoNets, NodeDeletion, NodeMarking, Policy, make_plan
from enfa.plan.steps.classes import row_classes
from enfa.testing import degenerate_graphs, random_graphs

OWN = {
    "plain": lambda marks: DSGNN(3, 4, 2, 3, mark_channels=marks),
    "degrees": lambda marks: DSGNN(3, 4, 2, 2, "gcn", mark_channels=marks),
    "edges": lambda marks: DSGNN(3, 4, 2, 2, "gine", edge_channels=2, mark_channels=marks),
    "within a graph": lambda marks: DSGNN(3, 4, 2, 2, share="graph", mark_channels=marks),
    "dss": lambda marks: DSSGNN(3, 4, 2, 2, "gcn", "dss", mark_channels=marks),
    "identity": lambda marks: DSSGNN(3, 4, 2, 2, "gin", "identity", mark_channels=marks),
    "mpnn": lambda marks: DSSGNN(3, 4, 2, 2, "gin", "mpnn", mark_channels=marks),
    **{model.__name__: model for model in MODELS if model.__name__ != "Molecules"},
}


@pytest.mark.parametrize("policy", [NodeMarking(), NodeDeletion(), EdgeDeletion(), EgoNets(1, mark=True)], ids=repr)
@pytest.mark.parametrize("name", OWN)
def test_classes_are_the_rows_of_the_distinct_plan(policy: Policy, name: str) -> None:
    model: nn.Module = OWN[name](policy.mark_channels)
    graphs = random_graphs(6, seed=3, edge_channels=2) + list(degenerate_graphs(edge_channels=2).values())
    full, ego, distinct = (make_plan(graphs, policy, model, kind) for kind in ("full", "ego", "distinct"))
    of_ego, of_distinct = row_classes(ego), row_classes(distinct)
    for number, classes in enumerate(row_classes(full)):
        if full.program.steps[number].kind not in ("pairs", "nodes"):
            # a pool is told apart by the lists that it adds up, and each graph has a row of its own
            assert len(of_distinct[number]) >= len(np.unique(of_distinct[number])) == len(np.unique(classes))
            continue
        assert len(np.unique(of_distinct[number])) == len(of_distinct[number]), "a row of the distinct plan is there twice"
        assert len(np.unique(of_ego[number])) == len(of_distinct[number]) == len(np.unique(classes))
        copies = distinct.tables[number].copies
        if copies is not None:
            assert sorted(copies.tolist()) == sorted(np.unique(classes, return_counts=True)[1].tolist())
