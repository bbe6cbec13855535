"""The random campaign: a part of it passes, a broken package does not, and a run that stopped goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest
import torch

import enfa
from enfa.plan.derived.lists import list_sizes

ROOT = Path(__file__).parents[2]


@pytest.fixture()
def part(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports one of the campaign's files by name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield lambda name: __import__(name, fromlist=["it"])
    for name in [n for n in sys.modules if n.split(".")[0] in ("fuzz", "fuzz_parts")]:
        del sys.modules[name]


def _fuzz(part: Callable, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["fuzz.py", *map(str, arguments)])
    return part("fuzz").main()


def test_a_part_of_it(part: Callable) -> None:
    """Cases are the same whatever ran before them, and nothing is drawn only for show."""
    draw, verdict = part("fuzz_parts.draw"), part("fuzz_parts.verdict")
    found = {number: verdict.judge(draw.draw_case(0, number)) for number in range(60)}
    assert {v.verdict for v in found.values()} <= {"same", "kink", "digits lost"}
    assert sum(v.verdict == "same" for v in found.values()) > 50
    assert sum(v.live for v in found.values()) > 40
    assert str(draw.draw_case(0, 59)) == str(draw.draw_case(0, 59)) != str(draw.draw_case(1, 59))
    again = verdict.judge(draw.draw_case(0, 59))
    assert (again.verdict, again.off) == (found[59].verdict, found[59].off)


def test_every_value_is_drawn(part: Callable) -> None:
    draw, graphs = part("fuzz_parts.draw"), part("fuzz_parts.graphs")
    cases = [draw.draw_case(0, number) for number in range(800)]
    policies = {*draw.POLICIES, *draw.ADDED}
    for name, of in (("policy", policies), ("plan", draw.PLANS), ("model", draw.MODELS), ("conv", draw.CONVS)):
        assert {case.settings[name] for case in cases} == set(of)
    assert {family for case in cases for family in case.families} == set(graphs.FAMILIES)
    # pairs came after the campaign, which has no bags of its own for them: tests/test_exact.py has them
    assert {type(case.policy) for case in cases} == set(enfa.edits.POLICIES.values()) - {enfa.PairMarking}
    assert sum(len(case.chosen) == 1 for case in cases) > 200


def _altered(change: Callable[[enfa.Bag], None], plan_of: Callable) -> Callable:
    def altered(case: object, model: enfa.DSGNN) -> enfa.Bag:
        plan = plan_of(case, model)
        change(plan)
        return plan

    return altered


def _one_copy_more(plan: enfa.Bag) -> None:
    first = plan.tables[1]
    first.copies = first.copies.clone()
    first.copies[int(first.copies.argmax())] += 1


def _other_messages(plan: enfa.Bag) -> None:
    """Rows read each other's messages."""
    for table in plan.tables:
        if table.links is not None:
            table.links.in_row = table.links.in_row.flip(0)


def _one_node_more(plan: enfa.Bag) -> None:
    """Of the first subgraph."""
    pool = next(t for step, t in zip(plan.program.steps, plan.tables) if (step.op, step.kind) == ("pool", "subgraphs"))
    list_sizes(pool)[0] += 1


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (_one_copy_more, {"norm": "batch", "mode": "train", "plan": "distinct"}),
        (_other_messages, {"conv": "graphconv", "plan": "distinct", "model": "DSGNN"}),
        (_one_node_more, {"readout": "mean", "plan": "slice", "mode": "eval"}),
    ],
)
def test_a_broken_plan_is_found(
    part: Callable, monkeypatch: pytest.MonkeyPatch, change: Callable, wanted: dict[str, str]
) -> None:
    draw, verdict = part("fuzz_parts.draw"), part("fuzz_parts.verdict")
    cases = (draw.draw_case(0, number) for number in range(300))
    fitting = (case for case in cases if wanted.items() <= case.settings.items())
    some = list(islice((case for case in fitting if verdict.judge(case).verdict == "same"), 4))
    monkeypatch.setattr(verdict, "plan_of", _altered(change, verdict.plan_of))
    found = [verdict.judge(case).verdict for case in some]
    assert found.count("difference") >= 2, found  # a model may be dead, or a channel constant


def test_a_kink_hides_no_broken_plan(part: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows in five layers of BatchNorm: there the reference itself is noise, and only a twin tells."""
    draw, verdict = part("fuzz_parts.draw"), part("fuzz_parts.verdict")
    case = draw.draw_case(0, 857)
    assert verdict.judge(case).verdict == "kink"
    monkeypatch.setattr(verdict, "plan_of", _altered(_one_node_more, verdict.plan_of))
    assert verdict.judge(case).verdict == "difference"


def test_the_reference_may_be_the_one_that_errs(part: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal rows in twelve BatchNorms: gradients that cancel swallow the rest, but not those carried forward."""
    draw, verdict = part("fuzz_parts.draw"), part("fuzz_parts.verdict")
    case, on_plan = draw.draw_case(0, 7421), verdict.on_plan
    assert verdict.judge(case).verdict == "digits lost"

    def slightly_off(*arguments) -> dict[str, torch.Tensor]:
        return {n: v * (1.001 if n.startswith("gradient layers.0") else 1.0) for n, v in on_plan(*arguments).items()}

    monkeypatch.setattr(verdict, "on_plan", slightly_off)
    assert verdict.judge(case).verdict == "difference"


def test_goes_on_where_it_stopped(part: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    campaign = part("fuzz_parts.campaign")
    ran: list[int] = []
    draw_case = campaign.draw_case
    monkeypatch.setattr(campaign, "draw_case", lambda seed, n: ran.append(n) or draw_case(seed, n))
    monkeypatch.setattr(campaign, "CHUNK", 3)
    out = tmp_path / "fuzz.json"
    assert _fuzz(part, monkeypatch, "--cases", 4, "--out", out) == 0
    assert _fuzz(part, monkeypatch, "--cases", 6, "--out", out) == 0
    assert ran == list(range(6))
    held = json.loads(out.read_text())
    assert held["next"] == 6 and sum(held["verdicts"].values()) == 6
    assert all(sum(sum(v.values()) for v in held["counts"][f].values()) == 6 for f in ("policy", "plan", "live"))
    assert held["machine"]["torch"] == torch.__version__ and held["packages"] == [
        {"from": 0, "sources": campaign.package_digest()}
    ]
    with pytest.raises(ValueError, match=r"Expected .* to hold counts of seed 1, got 0"):
        _fuzz(part, monkeypatch, "--seed", 1, "--cases", 9, "--out", out)


def test_stops_with_a_line_that_shows_it_again(
    part: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    verdict, out = part("fuzz_parts.verdict"), tmp_path / "fuzz.json"
    plan_of = verdict.plan_of

    def broken(case, model) -> enfa.Bag:
        if case.number == 3:
            raise IndexError("out of range")
        return plan_of(case, model)

    monkeypatch.setattr(verdict, "plan_of", broken)
    assert _fuzz(part, monkeypatch, "--cases", 9, "--out", out) == 1
    *_, said, line = capsys.readouterr().out.splitlines()
    assert said == "case 3 differs: IndexError: out of range, by inf"
    assert line == "python benchmarks/fuzz.py --seed 0 --only 3"
    assert _fuzz(part, monkeypatch, *line.split()[2:]) == 1
    assert "case 3: difference" in capsys.readouterr().out
    monkeypatch.setattr(verdict, "plan_of", plan_of)  # mended
    assert _fuzz(part, monkeypatch, *line.split()[2:]) == 0
    assert _fuzz(part, monkeypatch, "--cases", 6, "--out", out) == 0
    held = json.loads(out.read_text())
    assert held["next"] == 6 and held["difference"] is None


@pytest.mark.long
def test_counts_do_not_depend_on_workers(part: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for workers in (1, 2):
        assert _fuzz(part, monkeypatch, "--cases", 8, "--workers", workers, "--out", tmp_path / f"{workers}.json") == 0
    one, two = (json.loads((tmp_path / f"{w}.json").read_text()) for w in (1, 2))
    assert one["verdicts"] == two["verdicts"] and one["counts"] == two["counts"]
