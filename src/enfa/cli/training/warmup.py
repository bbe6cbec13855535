"""``enfa warmup``: kernels compiled and kept before they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.ahead import begin, ready
from enfa.cache import kernel_folders
from enfa.cli.training.imports import import_training
from enfa.cli.training.settings import EPILOG, config_of
from enfa.training.settings.config import Config
from enfa.training.settings.kernels import GPU, groups_of

__all__ = ["EPILOG", "warmup"]


def warmup(
    configs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CONFIG]... [KEY=VALUE]...", help="YAML files, and settings that replace theirs."),
    ] = None,
) -> None:
    """Compile and keep the kernels that training with these configs needs: one short epoch each, on a few of their graphs.
    Without a config, those that build plans, with DS-GNN on graphs made here. They are kept in ENFA_CACHE, by default enfa in
    the user's folder of caches."""
    console, given = Console(), configs or []
    overrides = [text for text in given if "=" in text]
    files = [text for text in given if "=" not in text]
    if overrides and not files:
        raise ValueError(f"Expected a config file for {overrides[0]}, got none")
    made = [config_of(Path(file), overrides) for file in files] or [Config(dataset="CSL", name="CSL")]
    groups = {group for config in made for group in groups_of(config)}
    begin(*groups)
    with Console(stderr=True).status("importing PyTorch and Lightning …") as status:
        import_training(gpu=any(name in GPU for name in groups))
        from enfa.training.warmup import warm_up

        for config in made:
            status.update(f"{config.name} …")
            console.print(f"{config.name}: {warm_up(config)}", markup=False, highlight=False, soft_wrap=True)
        ready(*groups)  # also those that nothing has waited for
    kept = ", ".join(map(str, kernel_folders().values()))
    console.print(f"kept in {kept}", markup=False, highlight=False, soft_wrap=True)
