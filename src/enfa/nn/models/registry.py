"""Models by the names that configs give them."""

from __future__ import annotations

from torch import nn

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN

__all__ = ["MODELS"]

# Arguments that several models have are called what SubgraphGNN calls them; others are a config's model_params.
MODELS: dict[str, type[nn.Module]] = {
    "ds": DSGNN,
    "dss": DSSGNN,
}
