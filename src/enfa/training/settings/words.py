"""A run in a few words."""

from enfa.training.settings.config import Config

__all__ = ["in_words"]


def in_words(config: Config) -> str:
    """Its data, its policy and its model.

    >>> in_words(Config(dataset="CSL", policy="ego_nets", policy_params={"hops": 2}))
    'CSL (fold 0, seed 0) with ego_nets(hops=2), ds, gin'
    """
    parameters = ", ".join(f"{name}={value}" for name, value in config.policy_params.items())
    policy = f"{config.policy}({parameters})" if parameters else config.policy
    conv = "" if config.conv is None else f", {config.conv}"
    return f"{config.dataset} (fold {config.fold}, seed {config.seed}) with {policy}, {config.model}{conv}"
