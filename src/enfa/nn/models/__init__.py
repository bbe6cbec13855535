"""Models: one file each."""

from enfa.nn.models.ds import DSGNN
from enfa.nn.models.dss import DSSGNN

__all__ = ["DSGNN", "DSSGNN"]
