"""Rows to compute with, and the verbs of a bag: any module is a model."""

from enfa.nn.bag.bag import Bag
from enfa.nn.bag.compile import ShardedDataset, compile, load_compiled
from enfa.nn.bag.lift import Lifted, lift
from enfa.nn.bag.make import make_plan
from enfa.nn.bag.trace import trace
from enfa.nn.rowwise.rows import Rows

__all__ = ["Bag", "Lifted", "Rows", "ShardedDataset", "compile", "lift", "load_compiled", "make_plan", "trace"]
