"""Models by the names that configs and commands give them."""

from __future__ import annotations

from torch import nn

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN
from enfa.nn.models.gnn_ak import GNNAK
from enfa.nn.models.i2gnn import I2GNN
from enfa.nn.models.id_gnn import IDGNN
from enfa.nn.models.ngnn import NGNN
from enfa.nn.models.sswl import SSWLGNN
from enfa.nn.models.subgraphormer import Subgraphormer
from enfa.nn.models.sun import SUN

__all__ = ["MODELS"]

# Arguments that several models have are called what SubgraphGNN calls them; others are a config's model_params.
MODELS: dict[str, type[nn.Module]] = {
    "ds": DSGNN,
    "dss": DSSGNN,
    "sun": SUN,
    "sswl": SSWLGNN,
    "subgraphormer": Subgraphormer,
    "ngnn": NGNN,
    "id_gnn": IDGNN,
    "gnn_ak": GNNAK,
    "i2gnn": I2GNN,
}
