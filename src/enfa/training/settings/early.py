"""What can be seen to be wrong with a run before PyTorch is imported, which takes seconds."""

from enfa.datasets.known import check_known
from enfa.edits.made_for import check_policy
from enfa.edits.policies import policy_from
from enfa.training.settings.config import Config

__all__ = ["check_early"]


def check_early(config: Config) -> None:
    """Refuse a dataset or a policy that does not exist, parameters that the policy does not take, and a model that is not made
    for it."""
    check_known(config.dataset, config.root)
    name, *params = config.policy.split(":")
    if params:
        instead = " ".join([f"policy={name}", *(f"policy_params.{param}" for param in params)])
        raise ValueError(f"Expected a policy's name, and parameters in policy_params, got {config.policy!r}: write {instead}")
    check_policy(config.model, policy_from(config.policy, **config.policy_params))
