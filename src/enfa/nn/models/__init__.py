"""Models: one file each."""

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN
from enfa.nn.models.gnn_ak import GNNAK
from enfa.nn.models.i2gnn import I2GNN
from enfa.nn.models.id_gnn import IDGNN
from enfa.nn.models.ngnn import NGNN
from enfa.nn.models.sswl import SSWLGNN
from enfa.nn.models.subgraphormer import Subgraphormer
from enfa.nn.models.sun import SUN

__all__ = ["DSGNN", "DSSGNN", "GNNAK", "I2GNN", "IDGNN", "NGNN", "SSWLGNN", "SUN", "Subgraphormer"]
