"""A program as plain JSON, and back, checked field by field."""

import re
from dataclasses import asdict, fields
from typing import Any

from enfa.batch.file.corrupt import expect, is_a, whole_numbers
from enfa.plan.step import Program, Step

__all__ = ["program_from", "program_json"]

_STEPS = 2**12  # and needs, at most
_SHARES = ("dataset", "graph")
# what steps may be: operation, kind of their rows, kinds of the rows that they read
_KNOWN = {
    ("propagate", "pairs", ("pairs",)), ("propagate", "nodes", ("nodes",)),
    ("across", "nodes", ("pairs",)), ("diagonal", "nodes", ("pairs",)), ("root", "subgraphs", ("pairs",)),
    ("pool", "subgraphs", ("pairs",)), ("pool", "graphs", ("subgraphs",)), ("pool", "graphs", ("nodes",)),
    ("pool", "nodes", ("subgraphs",)),
    *(("spread", "pairs", (kind,)) for kind in ("subgraphs", "nodes", "graphs")),
    *(("join", kind, (kind, kind)) for kind in ("pairs", "nodes", "subgraphs")),
}  # fmt: skip
_TYPES = {"op": str, "kind": str, "reads": list, "edges": bool, "along": str, "degrees": bool}


def program_json(program: Program) -> dict[str, Any]:
    """All that tells programs apart; what a model needs beside the tables is not in it."""
    steps = [{**asdict(step), "reads": list(step.reads)} for step in program.steps]
    rest = {f.name: getattr(program, f.name) for f in fields(program) if f.name not in ("steps", "needs")}
    return {"steps": steps, **rest}


def _step(number: int, value: Any, before: list[Step]) -> Step:
    where = f"'program.steps[{number}]'"
    names = [f.name for f in fields(Step)]
    expect(is_a(value, dict) and sorted(value) == sorted(names), f"{where} of {', '.join(names)}", value)
    for name in names:
        expect(is_a(value[name], _TYPES[name]), f"{where}.{name} to be {_TYPES[name].__name__}", value[name])
    reads = value["reads"]
    expect(whole_numbers(reads) and all(r < number for r in reads), f"{where}.reads to be earlier steps", reads)
    step = Step(**{**value, "reads": tuple(reads)})
    if number == 0:
        expect((step.op, step.kind, step.reads) == ("start", "pairs", ()), f"{where} to be the start of pairs", value)
    else:
        known = (step.op, step.kind, tuple(before[r].kind for r in reads))
        expect(known in _KNOWN, f"{where} to be a step that there is", value)
    between = step.along == "subgraphs" and step.op == "propagate" and step.kind == "pairs"
    expect(step.along == "nodes" or between, f"{where}.along to be nodes, or subgraphs for messages of pairs", step.along)
    expect(not step.edges or step.op == "propagate", f"{where}.edges of steps that pass messages", step.edges)
    expect(not step.degrees or step.op == "start", f"{where}.degrees of the start", step.degrees)
    return step


def program_from(value: dict[str, Any], needs: Any) -> Program:
    """The program that a header holds: steps that exist, which read earlier ones."""
    names = {"steps": list, "share": str, "loops": bool, "counted": bool, "dropout": bool}
    every = [*names, "unshared"]
    expect(sorted(value) == sorted(every), f"a program of {', '.join(every)}", sorted(value))
    unshared = value["unshared"]
    for name, kind in names.items():
        expect(is_a(value[name], kind), f"'program.{name}' to be {kind.__name__}", value[name])
    expect(value["share"] in _SHARES, f"'program.share' from {', '.join(_SHARES)}", value["share"])
    expect(1 <= len(value["steps"]) <= _STEPS, f"1 to {_STEPS} steps in 'program.steps'", len(value["steps"]))
    known = unshared is None or (is_a(unshared, int) and 1 <= unshared < len(value["steps"]))
    expect(known, "'program.unshared' to be a later step than the first, or none", unshared)
    steps: list[Step] = []
    for number, one in enumerate(value["steps"]):
        steps.append(_step(number, one, steps))
    return Program(**{**value, "steps": tuple(steps)}, needs=_needs(needs, len(steps)))


def _needs(value: Any, steps: int) -> frozenset[tuple[int, str]]:
    """What a model reads beside the tables: (number of a step, or -1, name) pairs; a name may end in an earlier step."""
    expect(is_a(value, list) and len(value) <= _STEPS, f"up to {_STEPS} pairs in 'header.needs'", value)
    for pair in value:
        fits = is_a(pair, list) and len(pair) == 2 and is_a(pair[0], int) and is_a(pair[1], str)
        expect(fits and -1 <= pair[0] < steps, "(step, name) pairs in 'header.needs'", pair)
        name = re.fullmatch(r"[a-z_]+(?: [a-z_]+)?(?: (\d{1,4}))?", pair[1])
        expect(name is not None and int(name[1] or -1) < max(pair[0], 0), "names of needs in 'header.needs'", pair)  # type: ignore[index]
    return frozenset((number, name) for number, name in value)
