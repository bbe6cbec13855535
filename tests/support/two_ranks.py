"""BatchNorm on Rows in two processes, which import this module by its name."""

from __future__ import annotations

import copy
import os

import torch
from small_bag import Short, rows_of, small_graphs, values
from torch import nn

import enfa
from enfa.nn.bag import Bag, make_plan

__all__ = ["rank_of_two", "shared_bag"]


def shared_bag() -> Bag:
    """Distinct rows that stand for several pairs."""
    bag = make_plan(small_graphs() * 3, enfa.NodeMarking(), Short())
    assert int(bag.tables[0].copies.max()) > 1
    return bag


def rank_of_two(rank: int, port: int, results) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    bag = shared_bag()
    copies = bag.tables[0].copies
    norm, plain = enfa.CountedBatchNorm(4).double(), nn.BatchNorm1d(4).double()
    x = values(len(copies), 4, seed=rank)
    out = norm(rows_of(bag, x)).value
    both = nn.BatchNorm1d(4).double()
    every = [values(len(copies), 4, seed=r).repeat_interleave(copies, 0) for r in (0, 1)]
    expected = both(torch.cat(every))[rank * len(every[0]) :][: len(every[0])]
    same = torch.allclose(out.repeat_interleave(copies, 0), expected, rtol=1e-12)
    same &= torch.allclose(norm.running_var, both.running_var, rtol=1e-12) and int(norm.num_batches_tracked) == 1
    alone = copy.deepcopy(plain)
    same &= torch.allclose(plain(rows_of(bag, x)).value.repeat_interleave(copies, 0), alone(every[rank]), rtol=1e-12)
    try:  # PyTorch's own refuses the CPU
        nn.SyncBatchNorm(4).double()(rows_of(bag, x))
        same = False
    except ValueError as error:
        same &= "GPU" in str(error)
    same &= torch.equal(nn.SyncBatchNorm(4).double().eval()(rows_of(bag, x)).value, nn.BatchNorm1d(4).double().eval()(x))
    results[rank] = bool(same)
    torch.distributed.destroy_process_group()
