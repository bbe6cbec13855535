import pytest

import enfa
from enfa.testing import random_graphs


def test_a_plan_serves_its_spec_and_no_other() -> None:
    model = enfa.DSGNN(3, 4, 2, 3)
    plan = enfa.make_plan(random_graphs(2), enfa.NodeMarking(), enfa.Spec(2, degrees=True))
    message = (
        r"^Expected a plan made with this model's spec \(make_plan\(..., spec=model.spec\)\), got one that differs: "
        r"num_layers: 3 here, 2 there; degrees: False here, True there$"
    )
    with pytest.raises(ValueError, match=message):
        model(plan)
