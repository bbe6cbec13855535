"""Training's imports without what nothing here uses."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import paths_in

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


DYNAMO = """
import sys
from enfa.cli.training.imports import import_training
import_training()
import torch
stand_in = sys.modules["torch._dynamo"]
assert type(stand_in).__name__ == "_StandIn" and torch._dynamo is stand_in
"""

WANTED = {
    "nothing, by an optimiser": """
weight = torch.nn.Parameter(torch.ones(2))
optimiser = torch.optim.Adam([weight], lr=0.5)
weight.sum().backward()
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
assert 0.49 < float(weight[0]) < 0.51 and sys.modules["torch._dynamo"] is stand_in
""",
    "compiling": """
assert torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2)).tolist() == [2, 2]
assert isinstance(torch.compile(torch.nn.Linear(2, 2)), torch._dynamo.OptimizedModule)
""",
    "compiling what others were told not to compile": """
from lightning.pytorch.utilities.compile import OptimizedModule  # which it keeps
from importlib.util import find_spec
assert find_spec("torch._dynamo") is not None
@torch.compiler.disable
def apart(x):
    assert not torch.compiler.is_compiling()
    return x + 1
assert apart(torch.ones(1)).item() == 2 and sys.modules["torch._dynamo"] is stand_in
compiled = torch.compile(lambda x: apart(x) * 2, backend="eager")
assert compiled(torch.ones(1)).item() == 4 and apart(torch.ones(1)).item() == 2
assert isinstance(torch.compile(torch.nn.Linear(2, 2)), OptimizedModule)
assert not isinstance(torch.nn.Linear(2, 2), OptimizedModule)
""",
    "an attribute": "assert stand_in.config is torch._dynamo.config and torch._dynamo is not stand_in",
    "a part": """
from torch._dynamo.utils import counters
import torch._dynamo.backends.registry as registry
import torch._dynamo.utils as utils
assert utils.counters is counters and torch._dynamo.utils is utils and registry.__spec__.origin
assert torch._dynamo is sys.modules["torch._dynamo"] is not stand_in
""",
    "a part that is not there": """
try:
    import torch._dynamo.nothing
except ModuleNotFoundError as error:
    assert "torch._dynamo.nothing" in str(error)
else:
    raise AssertionError
""",
}


@pytest.mark.parametrize("wanted", WANTED)
def test_the_compiler_is_imported_when_it_is_wanted(wanted: str) -> None:
    subprocess.run([sys.executable, "-c", DYNAMO + WANTED[wanted]], check=True)


def test_training_wants_no_compiler(tmp_path: Path) -> None:
    train = f"""
import gc
assert gc.isenabled() and gc.get_freeze_count()
from enfa.training import fit
settings = {{"dataset": {str(paths_in(tmp_path))!r}, "out": {str(tmp_path)!r}, "epochs": 2, "accelerator": "cpu"}}
from enfa.training.settings.config import Config
assert fit(Config(**settings), progress=False).epochs == 2
assert sys.modules["torch._dynamo"] is stand_in
"""
    subprocess.run([sys.executable, "-c", DYNAMO + train], check=True)
