"""Plans: which rows a model computes, and how each table of rows follows from the one before."""

from enfa.plan.cost import Cost
from enfa.plan.make import make_plan
from enfa.plan.spec import Spec
from enfa.plan.table import Plan

__all__ = ["Cost", "Plan", "Spec", "make_plan"]
