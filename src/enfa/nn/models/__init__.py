"""Models: one file each."""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa.nn.models.ds import DSGNN
    from enfa.nn.models.dss import DSSGNN
    from enfa.nn.models.ego_nets.gnn_ak import GNNAK
    from enfa.nn.models.ego_nets.i2gnn import I2GNN
    from enfa.nn.models.ego_nets.id_gnn import IDGNN
    from enfa.nn.models.ego_nets.ngnn import NGNN
    from enfa.nn.models.esan import ESAN
    from enfa.nn.models.sswl import SSWLGNN
    from enfa.nn.models.subgraphormer import Subgraphormer
    from enfa.nn.models.sun import SUN
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.nn.models.ds": "DSGNN",
        "enfa.nn.models.dss": "DSSGNN",
        "enfa.nn.models.ego_nets.gnn_ak": "GNNAK",
        "enfa.nn.models.ego_nets.i2gnn": "I2GNN",
        "enfa.nn.models.ego_nets.id_gnn": "IDGNN",
        "enfa.nn.models.ego_nets.ngnn": "NGNN",
        "enfa.nn.models.esan": "ESAN",
        "enfa.nn.models.sswl": "SSWLGNN",
        "enfa.nn.models.subgraphormer": "Subgraphormer",
        "enfa.nn.models.sun": "SUN",
    })  # fmt: skip

__all__ = ["DSGNN", "DSSGNN", "ESAN", "GNNAK", "I2GNN", "IDGNN", "NGNN", "SSWLGNN", "SUN", "Subgraphormer"]
