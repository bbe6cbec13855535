import torch

from enfa.nn.context import bag_sum
from enfa.plan.table import Sums


def test_sum_and_mean_over_the_bag() -> None:
    """Three contexts: row 0 twice and row 1 once; nothing (a node that no subgraph has); row 1 four times."""
    rows = torch.tensor([[1.0, 2.0], [10.0, 20.0]], dtype=torch.float64, requires_grad=True)
    sums = Sums(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 1]), torch.tensor([2, 1, 4]))
    assert bag_sum(rows, sums, mean=False).tolist() == [[12.0, 24.0], [0.0, 0.0], [40.0, 80.0]]
    assert bag_sum(rows, sums, mean=True).tolist() == [[4.0, 8.0], [0.0, 0.0], [10.0, 20.0]]
    for mean in (False, True):
        torch.autograd.gradcheck(lambda r, mean=mean: bag_sum(r, sums, mean), rows)
