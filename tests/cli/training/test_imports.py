"""Training's imports without what nothing here uses."""

import subprocess
import sys

SCRIPT = """
import sys
from enfa.cli.training.imports import import_training
import_training()
assert {"torch_geometric", "torchmetrics", "lightning"} <= sys.modules.keys() or "pytorch_lightning" in sys.modules
assert not {"matplotlib", "scipy.signal", "transformers", "pandas"} & sys.modules.keys()
import matplotlib.pyplot  # which is there again
from lightning_utilities.core.imports import RequirementCache, package_available
assert RequirementCache("matplotlib") and package_available("matplotlib")
from enfa.training.score import make_metric
import torch
metric = make_metric("rocauc", "binary", 1)
metric.update(torch.tensor([[0.1], [0.9]]), torch.tensor([[0.0], [1.0]]))
assert float(metric.compute()) == 1.0
"""


def test_packages_that_nothing_uses_are_not_imported() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
