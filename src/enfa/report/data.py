"""Where the report's datasets come from: a folder of .npz files, or raw files as the official loaders lay them out."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, Benchmark, from_npz, load

__all__ = ["Source", "open_source"]

Source = Callable[[str], Benchmark]
MOLECULES = ("ogbg-molhiv", "ogbg-moltox21", "peptides-func")


def open_source(data: Path | None, root: Path | None) -> Source:
    """Dataset by name. ``data`` holds NAME.npz with underscores for hyphens; ``root`` is :func:`load`'s."""
    if root is None and data is None:
        raise ValueError("Expected --data (a folder of .npz files) or --root (raw files, downloaded if missing)")
    if root is None and not data.is_dir():  # type: ignore[union-attr]
        raise FileNotFoundError(
            f"{data} is no folder of .npz files; say --data FOLDER (or set ENFA_DATA), or --root FOLDER for raw files"
        )

    @cache  # one at a time would do, but sections come back to the same ones
    def source(name: str) -> Benchmark:
        if root is not None:
            return load(name, root)
        channels = {"in_channels": ATOM_CHANNELS, "edge_channels": BOND_CHANNELS} if name in MOLECULES else {}
        path = data / f"{name.replace('-', '_')}.npz"  # type: ignore[operator]
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing; {name} is one of the report's datasets")
        return from_npz(path, name=name, **channels)  # type: ignore[arg-type]

    return source
