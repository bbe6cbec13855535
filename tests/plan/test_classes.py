import numpy as np
import pytest

from enfa import EdgeDeletion, NodeDeletion, NodeMarking, Policy, Spec, make_plan
from enfa.plan.classes import row_classes
from enfa.testing import degenerate_graphs, random_graphs

SPECS = {
    "plain": Spec(3),
    "degrees": Spec(2, degrees=True),
    "edges": Spec(2, edge_attr=True),
    "within a graph": Spec(2, share="graph"),
    "dss": Spec(2, context="input", context_encoder=True, degrees=True),
    "identity": Spec(2, context="output"),
    "mpnn": Spec(2, context="output", context_encoder=True),
}


@pytest.fixture(params=SPECS)
def spec(request: pytest.FixtureRequest) -> Spec:
    return SPECS[request.param]


@pytest.mark.parametrize("policy", [NodeMarking(), NodeDeletion(), EdgeDeletion()], ids=repr)
def test_classes_are_the_rows_of_the_distinct_plan(policy: Policy, spec: Spec) -> None:
    graphs = random_graphs(6, seed=3, channels=1, edge_channels=1)
    graphs += degenerate_graphs(channels=1, edge_channels=1).values()
    full, ego, distinct = (make_plan(graphs, policy, spec, kind) for kind in ("full", "ego", "distinct"))
    of_pairs, of_ego, of_distinct = row_classes(full), row_classes(ego), row_classes(distinct)
    for table in of_distinct:
        assert len(np.unique(table)) == len(table), "a row of the distinct plan is there twice"
    for pairs, with_base in zip(of_pairs, of_ego, strict=True):
        # the same partition: as many classes as pairs of classes
        both = np.stack([pairs, with_base[: len(pairs)]])
        assert len(np.unique(both, axis=1).T) == len(np.unique(pairs)) == len(np.unique(both[1]))
    if spec.context is None:  # with one, `copies` count conv rows
        for pairs, layer in zip(of_pairs[1:], distinct.layers, strict=True):
            copies = layer.copies[layer.copies > 0]
            assert sorted(copies.tolist()) == sorted(np.unique(pairs, return_counts=True)[1].tolist())
