"""Training with Lightning, from YAML configs. Lightning itself is imported when the first run starts."""

from enfa.training.build import make_model, make_policy, open_benchmark
from enfa.training.checkpoint import load_model
from enfa.training.run import evaluate, fit
from enfa.training.settings.config import Config
from enfa.training.settings.files import read_config

__all__ = ["Config", "evaluate", "fit", "load_model", "make_model", "make_policy", "open_benchmark", "read_config"]
