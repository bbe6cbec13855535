"""Rows to compute with, and the verbs of a bag: any module is a model."""

from enfa.nn.bag.bag import Bag
from enfa.nn.bag.lift import Lifted, lift
from enfa.nn.bag.make import make_bag, make_plan
from enfa.nn.bag.rows import Rows
from enfa.nn.bag.trace import trace

__all__ = ["Bag", "Lifted", "Rows", "lift", "make_bag", "make_plan", "trace"]
