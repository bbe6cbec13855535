"""The loaders that Lightning asks for. Importing this file needs Lightning (the extra ``enfa[train]``)."""

from typing import Any, cast

import numpy as np
from torch import Tensor

from enfa.batch import CompiledDataset, DataLoader
from enfa.batch.parts import SubgraphLoader
from enfa.batch.shards.dataset import Compiled
from enfa.batch.static.packed import PackedLoader
from enfa.training.build import training_draw
from enfa.training.loop.graphed import Chunks, on_gpu, workers
from enfa.training.loop.lightning import pl
from enfa.training.loop.module import TrainingModule
from enfa.training.settings.config import Config

__all__ = ["Batches"]


class Batches(pl.LightningDataModule):
    """The loaders of one split. In distributed training every rank gets its part of every batch."""

    def __init__(self, config: Config, compiled: Compiled, split: dict[str, np.ndarray], labels: Tensor | None = None) -> None:
        """``labels``: of all subgraphs, where the split is one of these."""
        super().__init__()
        self.labels = labels
        self.config, self.compiled, self.split = config, compiled, split
        self._open: dict[str, PackedLoader] = {}

    def _packed(self, part: str) -> Chunks:
        c, module = self.config, cast(TrainingModule, cast(pl.Trainer, self.trainer).lightning_module)
        module.labels = cast(Tensor, self.compiled.y)
        with module.parts.timed("buckets"):
            loader = PackedLoader(
                self.compiled, self.compiled.program.needs, c.batch_size, part == "train", workers(c), c.seed,
                graphs=self.split[part], pin=on_gpu(c),
            )  # fmt: skip
        self._open[part] = loader
        return Chunks(loader)

    def report(self) -> dict[str, dict[str, Any]]:
        """What padding costs, by part of the split: nothing where batches are not padded."""
        return {
            part: {
                "padding": str(of.buckets), "mb": [round(b.nbytes / 1e6, 2) for b in of.buckets.all],
                "unpadded": of.unpadded, "workers": of.num_workers,
            }
            for part, of in self._open.items()
        }  # fmt: skip

    def teardown(self, stage: str) -> None:
        for loader in self._open.values():
            loader.close()

    def _loader(self, part: str) -> DataLoader | SubgraphLoader | Chunks:
        c, trainer = self.config, self.trainer
        if part != "test" and trainer is not None and cast(TrainingModule, trainer.lightning_module).graphed:
            return self._packed(part)
        shard = (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)
        needs = None
        if trainer is not None and trainer.strategy.root_device.type != "cpu":
            needs = self.compiled.program.needs
        if self.labels is not None:
            assert isinstance(self.compiled, CompiledDataset), "the subgraphs of one graph are in no shards"
            chosen = self.labels, self.split[part]
            return SubgraphLoader(self.compiled, *chosen, c.batch_size, part == "train", c.seed, workers(c), needs)
        few = min(workers(c), len(self.split[part]) // (32 * c.batch_size))  # for one pass: starting them takes time, too
        return DataLoader(
            self.compiled,
            c.batch_size,
            shuffle=part == "train",
            num_workers=few if part == "test" else workers(c),
            max_rows=c.max_rows,
            seed=c.seed,
            graphs=self.split[part],
            shard=shard,
            needs=needs,
            draw=training_draw(c) if part == "train" else None,
        )

    def train_dataloader(self) -> DataLoader | SubgraphLoader | Chunks:
        return self._loader("train")

    def val_dataloader(self) -> DataLoader | SubgraphLoader | Chunks:
        return self._loader("valid")

    def test_dataloader(self) -> DataLoader | SubgraphLoader | Chunks:
        return self._loader("test")
