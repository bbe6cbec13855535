"""Train on a dataset in shards, which lie in a folder or an object store, with one process or with several.

python examples/sharded.py FOLDER
torchrun --nproc-per-node 2 examples/sharded.py FOLDER    # the same losses; docs/scale.md has several nodes
"""

import sys

import torch
import torch.distributed as dist
from torch import nn

import enfa
from enfa.testing import random_graphs

if len(sys.argv) != 2:
    sys.exit(__doc__)
folder, several = sys.argv[1], dist.is_torchelastic_launched()
if several:
    dist.init_process_group("gloo")  # "nccl" where each process has a GPU
rank, ranks = (dist.get_rank(), dist.get_world_size()) if several else (0, 1)

torch.manual_seed(0)
model = enfa.DSGNN([3], hidden_channels=16, out_channels=1, num_layers=3, conv="gine", edge_channels=[2]).double()
if rank == 0:  # what is there already stays; any iterable of graphs will do, also one that does not fit into memory
    graphs = random_graphs(400, 12, channels=[3], edge_channels=[2])
    for graph in graphs:
        graph.y = torch.tensor([[graph.num_edges / 10]], dtype=torch.float64)
    enfa.compile(graphs, enfa.NodeMarking(), model, out=folder, shard_size=50, progress=False)
if several:
    dist.barrier()
    model = nn.parallel.DistributedDataParallel(model)

sharded = enfa.ShardedDataset.open(folder, memory="2 MiB")  # of every process; more, where there is more
loader = enfa.DataLoader(sharded, batch_size=32, shuffle=True, shard=(rank, ranks))
optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    total = torch.zeros(2)
    for plan in loader:
        graphs = torch.tensor(float(plan.num_graphs))  # of this rank's part of the batch
        if several:
            dist.all_reduce(graphs)
        error = nn.functional.l1_loss(model(plan), plan.y, reduction="sum")
        optimiser.zero_grad()
        (error * ranks / graphs).backward()  # gradients are averaged over ranks
        optimiser.step()
        total += torch.stack([error.detach(), torch.tensor(float(plan.num_graphs))])
    if several:
        dist.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch}: {len(loader.sampled.cuts(epoch))} windows, error {total[0] / total[1]:.6f}")
if several:
    dist.barrier()  # or one would leave while the others still speak to it
    dist.destroy_process_group()
