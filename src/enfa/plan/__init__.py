"""Plans: which rows a model computes, and how each table of rows follows from earlier ones."""

from enfa.plan.cost import Cost
from enfa.plan.step import Program, Step

__all__ = ["Cost", "Program", "Step"]
