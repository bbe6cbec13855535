"""Train DS-GNN on PROTEINS with node marking, from the raw files of the TU collection or one .npz file.

python examples/quickstart.py [FOLDER]     # FOLDER/PROTEINS/raw/PROTEINS_A.txt, ..., or FOLDER/PROTEINS.npz; else downloaded
"""

import sys

import torch

import enfa
from enfa.datasets import load

root, epochs = (sys.argv[1:] + ["data", "10"][len(sys.argv) - 1 :])[:2]
try:
    data = load("PROTEINS", root)
except FileNotFoundError as error:
    sys.exit(f"No data to start with: {error}")

model = enfa.DSGNN(data.in_channels, hidden_channels=32, out_channels=data.num_outputs, num_layers=4, jk="concat")
compiled = enfa.compile(data.graphs, enfa.NodeMarking(), model)  # every distinct row, found once
print(f"{compiled.num_pairs:,} rows per layer in the conventional model; distinct: {compiled.cost().rows}")

split = data.split(fold=0, validation="next")
train = enfa.DataLoader(compiled, batch_size=32, shuffle=True, graphs=split["train"])
test = enfa.DataLoader(compiled, batch_size=32, graphs=split["test"])
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(int(epochs)):
    model.train()
    for plan in train:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(plan), plan.y)
        loss.backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(plan).argmax(1) == plan.y).sum()) for plan in test)
    print(f"epoch {epoch}: loss of the last batch {loss.item():.3f}, test accuracy {right / len(split['test']):.3f}")
