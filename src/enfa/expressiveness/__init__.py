"""What a model class can tell apart, without training (:func:`power`), and what training makes of it (:mod:`.trained`)."""

from enfa.expressiveness.models import MODELS
from enfa.expressiveness.power import power
from enfa.expressiveness.result import Power

__all__ = ["MODELS", "Power", "power"]
