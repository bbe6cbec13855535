"""Models: one file each."""

from torch import nn

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN

__all__ = ["DSGNN", "DSSGNN", "MODELS"]

# By the names that configs give them; arguments that several have are called what SubgraphGNN calls them.
MODELS: dict[str, type[nn.Module]] = {
    "ds": DSGNN,
    "dss": DSSGNN,
}
