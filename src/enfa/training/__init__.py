"""Training with Lightning, from YAML configs. Lightning itself is imported when the first run starts."""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa.training.build import make_model, make_policy, open_benchmark
    from enfa.training.checkpoint import load_model
    from enfa.training.run import evaluate, fit
    from enfa.training.settings.config import Config
    from enfa.training.settings.files import read_config
    from enfa.training.trained.predictions import predictions
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.training.build": "make_model make_policy open_benchmark",
        "enfa.training.checkpoint": "load_model",
        "enfa.training.run": "evaluate fit",
        "enfa.training.settings.config": "Config",
        "enfa.training.settings.files": "read_config",
        "enfa.training.trained.predictions": "predictions",
    })  # fmt: skip

__all__ = [
    "Config", "evaluate", "fit", "load_model", "make_model", "make_policy", "open_benchmark", "predictions", "read_config",
]  # fmt: skip
