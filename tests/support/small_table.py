"""One conv on one small table: against a formula written as a loop, and its gradient against finite differences."""

from collections.abc import Callable

import torch
from one_table import counted_rows
from torch import Tensor, nn

from enfa.nn.bag import Rows
from enfa.nn.convs import Conv, make_conv
from enfa.nn.rowwise.rows import EDGES
from enfa.plan.links import Links
from enfa.plan.step import Program, Step
from enfa.plan.table import Table

# three rows out of four of the table before, with their (incoming row, edge kind) pairs; the second has none
SELF = [2, 0, 3]
INCOMING = [[(0, 0), (1, 1), (1, 0)], [], [(3, 1)]]
# degrees of the subgraph: they need not be the number of messages, as on the border of an ego net
DEGREE = [2, 5, 3, 0]

Formula = Callable[[Conv, Tensor, Tensor, int, list[tuple[int, int]]], Tensor]


def small_links() -> Links:
    flat = [pair for one in INCOMING for pair in one]
    rows, kinds = torch.tensor([r for r, _ in flat]), torch.tensor([e for _, e in flat])
    return Links(torch.tensor(SELF), torch.tensor([0, 3, 3, 4]), rows, kinds)


def propagated(conv: Conv, x: Tensor, edge: Tensor, norm: nn.Module | None = None) -> Tensor:
    """bag.propagate on a bag of these two tables, and a norm after it."""
    h = counted_rows(x)
    bag, edges = h.bag, conv.reads_edges
    start = Step("start", "pairs", degrees=conv.reads_degrees)
    bag.program = Program((start, Step("propagate", "pairs", (0,), edges=edges)))
    bag.tables.append(Table(torch.ones(len(SELF), dtype=torch.int64), len(SELF), small_links()))
    bag.degrees = torch.tensor(DEGREE)
    out = bag.propagate(conv, h, Rows(edge, bag, EDGES) if edges else None)
    return (out if norm is None else norm(out)).value


def check_formula(name: str, formula: Formula) -> None:
    """``formula(conv, x, edge, own, incoming)`` is one row: [out]."""
    torch.manual_seed(0)
    conv = make_conv(name, 3, 4, 2, "layer").double()
    assert isinstance(conv, Conv)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, edge: Tensor) -> Tensor:
        return propagated(conv, x, edge)

    expected = torch.stack([formula(conv, x, edge, own, incoming) for own, incoming in zip(SELF, INCOMING)])
    assert torch.allclose(run(x, edge), expected, rtol=1e-12)
    torch.autograd.gradcheck(run, (x, edge))
    torch.autograd.gradcheck(lambda *_: run(x, edge), tuple(conv.parameters()))
