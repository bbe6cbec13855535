"""Programs of DS-GNN and DSS-GNN by a few words, for tests that need no weights."""

from typing import Any

from enfa import Program
from enfa.plan.step import Step

__all__ = ["layers"]


def layers(
    count: int,
    context: str | None = None,
    encoder: bool = False,
    *,
    edges: bool = False,
    degrees: bool = False,
    output: str = "graph",
    **options: Any,
) -> Program:
    """``count`` layers of messages. ``context``: what is summed up over the bag, a layer's ``"input"`` or its ``"output"``, and
    with ``encoder`` passed along the edges of the graph. ``output``: pools (``"graph"``), roots or nodes."""
    steps = [Step("start", "pairs", degrees=degrees)]

    def add(op: str, kind: str, *reads: int, **more: Any) -> int:
        steps.append(Step(op, kind, reads, **more))
        return len(steps) - 1

    h = 0
    for _ in range(count):
        before, h = h, add("propagate", "pairs", h, edges=edges)
        if context is not None:
            seen = add("across", "nodes", before if context == "input" else h)
            if encoder:
                seen = add("propagate", "nodes", seen, edges=edges)
            h = add("join", "pairs", h, add("spread", "pairs", seen))
    if output == "graph":
        add("pool", "graphs", add("pool", "subgraphs", h))
    else:
        add(*{"root": ("root", "subgraphs"), "node": ("across", "nodes")}[output], h)
    return Program(tuple(steps), **options)
