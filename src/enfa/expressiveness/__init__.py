"""What a model class can tell apart, without training (:func:`power`), and what training makes of it (:mod:`.trained`)."""

from enfa.expressiveness.power import power
from enfa.expressiveness.result import Power
from enfa.nn.models.registry import MODELS

__all__ = ["MODELS", "Power", "power"]
