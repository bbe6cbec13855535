"""Plans for any model: a list of steps, each of which makes one table of rows from earlier ones."""

from enfa.plan.steps.step import Program, Step
from enfa.plan.steps.table import StepPlan, Table

__all__ = ["Program", "Step", "StepPlan", "Table"]
