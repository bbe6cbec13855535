"""When a run gets no better. Importing this file needs Lightning."""

from typing import Any

from enfa.training.loop.lightning import pl

__all__ = ["EarlyStopping"]


class EarlyStopping(pl.callbacks.EarlyStopping):  # of the same name: checkpoints keep what it knows under that
    """Lightning's, but a resumed run has the patience of its settings, not that of the checkpoint."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({**state_dict, "patience": self.patience})
