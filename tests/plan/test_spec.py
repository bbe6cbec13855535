import pytest

from enfa import Spec


@pytest.mark.parametrize("layers", [0, -1, 2.0, "3", None, True])
def test_layers_are_a_number_from_one_on(layers: object) -> None:
    with pytest.raises(ValueError, match=f"Expected num_layers to be an integer >= 1, got {layers!r}"):
        Spec(layers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": "both"}, "Expected context to be None, 'input' or 'output', got 'both'"),
        ({"context_encoder": True}, "Expected a context for context_encoder=True, got context=None"),
        ({"share": "batch"}, "Expected share to be 'dataset' or 'graph', got 'batch'"),
    ],
)
def test_refuses_nonsense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Spec(2, **options)


def test_is_a_value() -> None:
    assert Spec(2) == Spec(2) and hash(Spec(2)) == hash(Spec(2)) and Spec(2) != Spec(3)
    with pytest.raises(AttributeError):
        Spec(2).num_layers = 3


def test_says_where_two_differ() -> None:
    assert Spec(2).differences(Spec(2)) == []
    assert Spec(2, degrees=True).differences(Spec(3)) == [
        "num_layers: 2 here, 3 there",
        "degrees: True here, False there",
    ]
