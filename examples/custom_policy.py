"""A policy of one's own: every subgraph lacks the three edges of one triangle."""

from itertools import combinations

import enfa
from enfa.testing import assert_same_as_full, random_graphs


class TriangleDeletion(enfa.Policy):
    def bag(self, graph):
        columns = {(a, b): i for i, (a, b) in enumerate(graph.edge_index.T.tolist())}
        for a, b, c in combinations(range(graph.num_nodes), 3):
            sides = [(a, b), (b, c), (a, c)]
            if all(side in columns for side in sides):
                subgraph = enfa.Subgraph()
                for u, v in sides:  # an undirected edge is two directed ones
                    subgraph.delete_edge(columns[u, v]).delete_edge(columns[v, u])
                yield subgraph


if __name__ == "__main__":
    model = enfa.DSGNN(in_channels=3, hidden_channels=16, out_channels=2, num_layers=3)
    assert_same_as_full(model, TriangleDeletion(), random_graphs(8, nodes=12, degree=5.0))
    print("ego and distinct give what the conventional model gives")
