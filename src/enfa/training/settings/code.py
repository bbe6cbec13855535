"""The user's own files that a run is made of: models, convs and policies that are in none of the package's."""

from pathlib import Path
from typing import Any

from enfa.own_code import code_of, own, tell_changed
from enfa.training.settings.config import Config

__all__ = ["code_of_run", "of_own_code", "tell_changed_code", "unused_code"]


def of_own_code(config: Config) -> bool:
    """Whether the user's own files compute rows, so that it is not known here what may be done to these."""
    return bool(code_of((config.model, config.conv)))


def code_of_run(config: Config) -> dict[str, str] | None:
    """Fingerprints of the files that a run is made of; None where it has none."""
    return code_of((config.model, config.policy, config.conv, *_texts(config.policy_params))) or None


def unused_code(config: Config) -> str | None:
    """A line where there are files of the user's own, and a run is made of none of them: another model was meant."""
    defined = own(lambda value: True)
    if not defined or code_of_run(config):
        return None
    return (
        f"--code defines {', '.join(sorted(defined))}, and none is named by model=NAME, conv=NAME or policy=NAME: the model is "
        f"{config.model}, of the package, with {config.policy}"
    )


def _texts(value: Any) -> list[str]:
    """All texts in the parameters of a policy: some are names of other policies, however deep."""
    if isinstance(value, dict | list):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def tell_changed_code(where: Path, there: Any, config: Config) -> None:
    """Where a run was made of other files than it is now."""
    tell_changed(where, there, code_of_run(config) or {})
