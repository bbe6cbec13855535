from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.batch.shards import write
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import MANIFEST, UNFINISHED, Manifest


def test_every_shard_is_a_compiled_dataset(molecules: list[Data], undisturbed: Path, gine: enfa.DSGNN) -> None:
    manifest = Manifest.read(Folder(undisturbed))
    assert [shard.graphs for shard in manifest.shards] == [7] * 5 + [5] and manifest.graphs == 40
    assert sorted(path.name for path in undisturbed.iterdir()) == sorted([MANIFEST, *(s.file for s in manifest.shards)])
    model, first = gine.eval(), 0
    for shard in manifest.shards:
        compiled, part = enfa.load_compiled(undisturbed / shard.file), molecules[first : first + shard.graphs]
        assert compiled.y is not None and compiled.y.tolist() == [graph.y.item() for graph in part]
        assert compiled.graph_attr["heat"].tolist() == [graph.heat[0].tolist() for graph in part]
        expected = model(enfa.make_plan(part, enfa.NodeMarking(), model, "full"))
        torch.testing.assert_close(model(compiled[:]), expected, rtol=1e-5, atol=1e-5)
        counts = shard.graphs, shard.nodes, shard.subgraphs, shard.pairs
        assert counts == (len(compiled), compiled.node_ptr[-1], compiled.num_subgraphs, compiled.num_pairs)
        assert compiled.rows is not None and shard.rows == [len(rows.keys) for rows in compiled.rows]
        assert shard.bytes == (undisturbed / shard.file).stat().st_size and shard.fingerprint == compiled.key["fingerprint"]
        first += shard.graphs
    one = enfa.compile(molecules, enfa.NodeMarking(), gine, progress=False)
    assert manifest.program == one.program and manifest.labels == ["float32", []]
    assert manifest.attributes == {"heat": ["float32", [2]]}


@pytest.mark.parametrize("how", ["generator", "two processes", "four shards", "a policy that draws"])
def test_bytes_do_not_depend_on_who_compiles(
    how: str, molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"two processes": {"workers": 2}, "four shards": {"shards": 4}}.get(how, {})
    if how == "a policy that draws":  # by the place of a graph in the dataset, not in its shard
        policy = enfa.Subsample(enfa.NodeMarking(), count=2)
        model = enfa.DSGNN([3, 2], 6, 2, 3, "gine", edge_channels=[3, 2], readout="root")
        shards(molecules, tmp_path / "draw", policy=policy, model=model)
        whole = enfa.compile(molecules, policy, model, progress=False)
        parts = [enfa.load_compiled(path) for path in sorted((tmp_path / "draw").glob("*.enfa"))]
        roots = [np.asarray(part.sources.root) for part in parts if part.sources is not None]
        assert whole.sources is not None and np.array_equal(np.concatenate(roots), np.asarray(whole.sources.root))
        return
    graphs = iter(molecules) if how == "generator" else molecules
    shards(graphs, tmp_path / "a", **options)
    if how == "four shards":
        found = Manifest.read(Folder(tmp_path / "a"))
        assert [shard.graphs for shard in found.shards] == [10] * 4 and found.size is None
    else:
        assert bytes_of(tmp_path / "a") == bytes_of(undisturbed)


def _interrupted(shards: Callable, monkeypatch: pytest.MonkeyPatch, graphs: Any, out: Path, at: int) -> None:
    """Ended in the middle of shard ``at``."""
    real = write.file_parts

    def parts(compiled: Any) -> Any:
        nonlocal at
        at -= 1
        if at < 0:
            raise KeyboardInterrupt
        return real(compiled)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(write, "file_parts", parts)
        shards(graphs, out)


def test_what_is_done_is_not_done_again(
    molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    out, compiled = tmp_path / "out", []
    _interrupted(shards, monkeypatch, molecules, out, 3)
    assert (out / UNFINISHED).exists() and not (out / MANIFEST).exists()
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.enfa")}
    (out / "shard-00001.enfa").write_bytes(b"damaged")
    real = write.compile_checked
    monkeypatch.setattr(write, "compile_checked", lambda *a, **k: compiled.append(a) or real(*a, **k))
    shards(iter(molecules), out)
    assert bytes_of(out) == bytes_of(undisturbed)
    assert len(compiled) == 4  # one that was damaged, and three that lacked
    assert (out / "shard-00000.enfa").stat().st_mtime_ns == before["shard-00000.enfa"]
    shards(iter(molecules), out)
    assert len(compiled) == 4 and bytes_of(out) == bytes_of(undisturbed)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("policy", "another model|policy 'NodeMarking'"), ("model", "something else"), ("labels", "other graphs"),
        ("size", "size 7, not 8"), ("fewer", "holds 6 shards, but this dataset has only 2"), ("types", "float64"),
        ("attribute", "attributes"), ("order", "other graphs"),
    ],
)  # fmt: skip
def test_shards_of_something_else_are_refused(
    what: str, said: str, molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    graphs, options = [graph.clone() for graph in molecules], {}
    if what == "policy":
        options["policy"] = enfa.NodeDeletion()
    elif what == "model":
        options["model"] = enfa.DSGNN([3, 2], 6, 2, 2, "gine", edge_channels=[3, 2])
    elif what == "labels":
        graphs[30].y = graphs[30].y + 1
    elif what == "size":
        options["shard_size"] = 8
    elif what == "fewer":
        graphs = graphs[:14]
    elif what == "types":
        for graph in graphs:
            graph.y = graph.y.double()
    elif what == "attribute":
        for graph in graphs:
            del graph.heat
    else:
        graphs = graphs[::-1]
    with pytest.raises(ValueError, match=said):
        shards(graphs, out, **options)
    assert bytes_of(out) == bytes_of(undisturbed)


def test_more_graphs_are_added_behind(molecules: list[Data], shards: Callable, bytes_of: Callable, tmp_path: Path,
                                      undisturbed: Path) -> None:  # fmt: skip
    shards(molecules[:21], tmp_path / "grown")
    shards(molecules, tmp_path / "grown")
    assert bytes_of(tmp_path / "grown") == bytes_of(undisturbed)


def test_in_memory(molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable) -> None:
    url = f"memory://{uuid.uuid4().hex}/shards"
    shards(molecules, url, workers=None)
    folder = Folder(url)
    assert {name: folder.read(name) for name in folder.names()} == bytes_of(undisturbed)
    with pytest.raises(ValueError, match="Expected a folder that several processes see, got memory://"):
        shards(molecules, url, workers=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shards": 2, "shard_size": 3}, "either shards or shard_size"),
        ({"shards": 41}, "shards to be an integer >= 1 and <= 40"),
        ({"shard_size": 0}, "shard_size to be an integer >= 1"), ({"engine": "dusk"}, "did you mean 'dask'"),
        ({"engine": 3}, "Expected engine to be"), ({"workers": 0}, "workers to be"), ({"threads": 2}, "no cache, threads"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(options: dict, said: str, molecules: list[Data], shards: Callable, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        shards(molecules, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_shards_need_a_folder(molecules: list[Data], gine: enfa.DSGNN, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Expected out, the folder of the shards, with workers=2"):
        enfa.compile(molecules, enfa.NodeMarking(), gine, workers=2)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="Expected shard_size for a stream"):
        enfa.compile(iter(molecules), enfa.NodeMarking(), gine, out=tmp_path, shards=2)
    with pytest.raises(ValueError, match="at least one graph"):
        enfa.compile([], enfa.NodeMarking(), gine, out=tmp_path)


def test_a_step_without_sharing_is_decided_once(molecules: list[Data], shards: Callable, tmp_path: Path) -> None:
    manifest = shards(molecules, tmp_path / "out", unshared=2)
    assert manifest.program.unshared == 2 and all(len(shard.rows) == 2 for shard in manifest.shards)
    last = enfa.load_compiled(tmp_path / "out" / "shard-00005.enfa")
    assert last.program.unshared == 2 and np.array_equal(last[:].num_pairs, last.num_pairs)
