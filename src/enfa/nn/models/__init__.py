"""Models: one file each."""

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN
from enfa.nn.models.sswl import SSWLGNN
from enfa.nn.models.subgraphormer import Subgraphormer
from enfa.nn.models.sun import SUN

__all__ = ["DSGNN", "DSSGNN", "SSWLGNN", "SUN", "Subgraphormer"]
