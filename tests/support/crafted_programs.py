"""Files of programs with one number changed, loaded and used in a process of its own: nothing there crashes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from program_cases import CASES, Case, graphs_of
from stored import parts_of, single_changes, write

import enfa
from enfa.batch import CorruptFileError, PackedLoader

__all__ = ["use"]


def use(case: Case, path: Path) -> None:
    """All that is done with a dataset: batches, gradients, packed batches, draws, fewer layers, more graphs."""
    model, compiled = case.made(), enfa.load_compiled(path)

    def attempt(act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # an error is no crash
            if str(error) == "index is out of bounds":  # what numba says with NUMBA_BOUNDSCHECK=1
                raise

    def run(chosen: object, train: bool) -> None:
        model.train(train)(compiled[chosen]).sum().backward()

    def packed() -> None:
        loader = PackedLoader(compiled, None, 3, True, 0, 1)
        for batch in loader:
            model(batch.plan)
        loader.close()

    for chosen in ([3, 0, 5], slice(None), [2]):
        attempt(lambda chosen=chosen: run(chosen, True))
    attempt(lambda: run([1, 2, 7, 12], False))
    attempt(lambda: model(compiled.plan([4, 1, 8], enfa.Subsample(case.policy, count=2))))
    attempt(packed)
    attempt(compiled.rows_per_graph)
    attempt(lambda: compiled.first_layers(1)[[4, 1]])
    attempt(lambda: compiled.extend(graphs_of(case, 2, 9, False)))
    attempt(lambda: run(slice(None), True))


def main(seed: str, count: str, *cases: str) -> None:
    """Load and use so many files of each case, each with one number changed. Prints how many were refused, and how many not."""
    torch.set_num_threads(1)
    for name in cases or CASES:
        case, refused = CASES[name], 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.enfa"
            case.compiled(graphs_of(case)).save(path)
            header, arrays = parts_of(path)
            changed = single_changes(arrays, int(seed))
            for _ in range(int(count)):
                write(path, header, next(changed))
                try:
                    enfa.load_compiled(path)
                except CorruptFileError:
                    refused += 1
                else:
                    use(case, path)
        print(f"{name}: {refused} {int(count) - refused}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
