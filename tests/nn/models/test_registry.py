"""What stands in plain data, so that configs can be checked without PyTorch, is what the constructors say."""

import pytest

from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import DEFAULTS, MODELS
from enfa.training.settings.arguments import OWN_DEFAULT


@pytest.mark.parametrize("name", MODELS)
def test_defaults_are_those_of_the_constructor(name: str) -> None:
    takes = arguments(MODELS[name])
    given = {of: takes[of].default for of in OWN_DEFAULT if of in takes}
    assert DEFAULTS[name] == dict.fromkeys(OWN_DEFAULT) | given
