"""Training with Lightning, from YAML configs. Lightning itself is imported when the first run starts."""

from enfa.training.build import make_model, make_policy, open_benchmark
from enfa.training.checkpoint import load_model
from enfa.training.config import Config
from enfa.training.files import read_config
from enfa.training.run import evaluate, fit

__all__ = ["Config", "evaluate", "fit", "load_model", "make_model", "make_policy", "open_benchmark", "read_config"]
