"""Input graphs: checked once, then held as a few flat arrays."""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa.graphs.check import check_graphs
    from enfa.graphs.graphset import GraphSet
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.graphs.check": "check_graphs",
        "enfa.graphs.graphset": "GraphSet",
    })  # fmt: skip

__all__ = ["GraphSet", "check_graphs"]
