"""A training loop of one's own at the speed of captured CUDA graphs; on a CPU the same loop runs eagerly."""

import time

import torch
import torch.nn.functional as F

import enfa
from enfa.testing import random_graphs

torch.manual_seed(0)
torch.autograd.set_multithreading_enabled(False)  # one GPU: no thread of its own for backward passes
device = "cuda" if torch.cuda.is_available() else "cpu"
graphs = random_graphs(256, 16, seed=0, channels=3)
model = enfa.DSGNN(3, hidden_channels=32, out_channels=2, num_layers=4)  # or enfa.captured(Net()), for any module
compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
compiled.y = torch.tensor([graph.num_edges % 4 > 1 for graph in graphs]).long()

model = model.to(device).train()
loader = enfa.DataLoader(compiled, 64, shuffle=True, device=device)  # padded to few sizes, packed, copied ahead
optimiser = torch.optim.Adam(model.parameters(), lr=0.005, fused=device == "cuda")
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 10)

for epoch in range(10):
    begin, losses = time.perf_counter(), []
    for batch in loader:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(batch), batch.y)  # replays a graph of the forward pass
        loss.backward()  # and one of the backward pass
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        losses.append(loss.detach())
    schedule.step()
    mean = torch.stack(losses).mean().item()
    print(f"epoch {epoch}: loss {mean:.3f}, {1e3 * (time.perf_counter() - begin) / len(losses):.1f} ms per step")
loader.close()
