"""Sums and maxima over lists of rows, forwards against loops and backwards against finite differences."""

import pytest
import torch
from torch import Tensor

from enfa.nn.ops.segment import gather, link_sum, segment_max, segment_sum, weighted_sum
from enfa.plan.links import Links, Sums

ROWS, CHANNELS = 5, 3


def _table(grad: bool = True) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(ROWS, CHANNELS, dtype=torch.float64, requires_grad=grad)


def _links(lists: list[list[int]]) -> Links:
    ptr = torch.tensor([0, *torch.tensor([len(one) for one in lists]).cumsum(0).tolist()])
    flat = torch.tensor([r for one in lists for r in one], dtype=torch.long)
    return Links(torch.zeros(len(lists), dtype=torch.long), ptr, flat, torch.zeros_like(flat))


LISTS = [[[0, 1, 1, 4], [], [2], [4, 4, 4], []], [[]], [], [[3], [2, 0]]]


@pytest.mark.parametrize("lists", LISTS, ids=repr)
def test_link_sum(lists: list[list[int]]) -> None:
    table = _table()
    expected = torch.stack([table[one].sum(0) for one in lists]) if lists else table[:0]
    assert torch.allclose(link_sum(table, _links(lists)), expected)
    assert torch.allclose(link_sum(table.detach(), _links(lists)), expected)
    if lists:
        links = _links(lists)
        torch.autograd.gradcheck(lambda t: link_sum(t, links), table)


@pytest.mark.parametrize("counts", [torch.int8, torch.int64])
@pytest.mark.parametrize("lists", LISTS, ids=repr)
def test_weighted_sum(lists: list[list[int]], counts: torch.dtype) -> None:
    """Counts may be negative or 0."""
    links, table = _links(lists), _table()
    sums = Sums(links.in_ptr, links.in_row, torch.arange(len(links.in_row), dtype=counts) - 2)
    entries = table[sums.row] * sums.count[:, None]
    expected = [part.sum(0) for part in entries.split(sums.ptr.diff().tolist())]
    expected = torch.stack(expected) if lists else table[:0]
    assert torch.allclose(weighted_sum(table, sums), expected)
    assert torch.allclose(weighted_sum(table.detach(), sums), expected)
    if lists:
        torch.autograd.gradcheck(lambda t: weighted_sum(t, sums), table)


@pytest.mark.parametrize("weighted", [False, True])
def test_long_lists_are_summed_without_loss(weighted: bool) -> None:
    """Equal terms, whose errors do not cancel: one after the other, 10^5 of them are off by a thousand units."""
    lengths = [0, 100_003, 5, 0, 1, 40_000, 0]
    ptr = torch.tensor([0, *lengths]).cumsum(0)
    row = torch.arange(int(ptr[-1])) % 2
    count = torch.where(row == 0, 3, 1) if weighted else torch.ones_like(row)
    table = torch.tensor([[0.1, 1.7], [0.3, 0.9]], requires_grad=True)
    found = weighted_sum(table, Sums(ptr, row, count))
    often = torch.stack([torch.bincount(r, c, 2) for r, c in zip(row.split(lengths), count.split(lengths))])
    exact = often @ table.detach().double()
    assert (found - exact).abs().max() <= 32 * torch.finfo(torch.float32).eps * exact.max()
    assert torch.equal(found[[0, 3, 6]], torch.zeros(3, 2))
    found.backward(torch.full_like(found, 0.1))  # each row is read 70 000 times
    assert table.grad is not None
    grad = (often.sum(0) * float(torch.tensor(0.1)))[:, None].expand(2, 2)
    assert (table.grad - grad).abs().max() <= 32 * torch.finfo(torch.float32).eps * grad.max()


def test_long_lists_behind_many_empty_ones() -> None:
    lengths = [0] * 700 + [5000] + [0] * 300 + [1] + [0] * 9
    ptr = torch.tensor([0, *lengths]).cumsum(0)
    row = torch.arange(int(ptr[-1])) % 3
    table = torch.tensor([[1.0], [2.0], [4.0]])
    found = weighted_sum(table, Sums(ptr, row, torch.ones_like(row)))
    assert found[700] == table[row[:5000]].sum() and found[1001] == table[row[5000]] and found.sum() == found[[700, 1001]].sum()


def test_segment_sum() -> None:
    entries = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    ptr, segment = torch.tensor([0, 2, 2, 6]), torch.tensor([0, 0, 2, 2, 2, 2])
    found = segment_sum(entries, ptr, segment)
    assert torch.allclose(found, torch.stack([entries[:2].sum(0), torch.zeros(2).double(), entries[2:].sum(0)]))
    torch.autograd.gradcheck(lambda e: segment_sum(e, ptr, segment), entries)


@pytest.mark.parametrize("index", [[0, 0, 4, 2], [], [3]], ids=repr)
def test_gather(index: list[int]) -> None:
    table, rows = _table(), torch.tensor(index, dtype=torch.long)
    assert torch.equal(gather(table, rows, {}, "x"), table[rows])
    assert torch.equal(gather(table.detach(), rows, {}, "x"), table[rows])
    cache: dict = {}
    torch.autograd.gradcheck(lambda t: gather(t, rows, cache, "x"), table)


@pytest.mark.parametrize("lists", LISTS, ids=repr)
def test_segment_max(lists: list[list[int]]) -> None:
    """0 for an empty list, also where all others are negative."""
    links, table = _links(lists), _table()
    sums = Sums(links.in_ptr, links.in_row, torch.ones_like(links.in_row))
    empty = torch.zeros(CHANNELS, dtype=torch.float64)
    expected = torch.stack([table[one].max(0).values if one else empty for one in lists]) if lists else table[:0]
    assert torch.equal(segment_max(table, sums), expected)
    assert bool((segment_max(table - 100, sums)[[not one for one in lists]] == 0).all())
    if lists:
        torch.autograd.gradcheck(lambda t: segment_max(t, sums), table)


def test_ties_share_the_gradient_by_their_counts() -> None:
    """Rows 0 and 1 are equal; row 0 stands for three pairs, row 1 for one: PyTorch's amax on all four splits evenly."""
    table = torch.tensor([[2.0], [2.0], [1.0]], requires_grad=True)
    sums = Sums(torch.tensor([0, 3]), torch.tensor([0, 1, 2]), torch.tensor([3, 1, 5]))
    segment_max(table, sums).backward(torch.tensor([[1.0]]))
    written_out = table.detach()[[0, 0, 0, 1, 2, 2, 2, 2, 2]].requires_grad_()
    written_out.amax(0).sum().backward()
    assert table.grad[:, 0].tolist() == [0.75, 0.25, 0.0]
    assert [written_out.grad[:3].sum().item(), written_out.grad[3].item()] == [0.75, 0.25]


@pytest.mark.parametrize("name", ["sum", "max"])
def test_results_may_be_written_into(name: str) -> None:
    """As nn.ReLU(inplace=True) behind a pool does."""
    sums, found = Sums(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 4]), torch.ones(3, dtype=torch.int8)), []
    for inplace in (False, True):
        table = _table()
        out = torch.relu_ if inplace else torch.relu
        out(weighted_sum(table, sums) if name == "sum" else segment_max(table, sums)).square().sum().backward()
        found.append(table.grad)
    assert found[0] is not None and found[0].any() and torch.equal(found[0], found[1])
