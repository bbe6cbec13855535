import math

import numpy as np
import pytest

from enfa.graphs.numbers import real, whole


@pytest.mark.parametrize("value", [True, False, 1.0, 1.5, math.nan, "2", None, 0, -3, np.float64(2), 9])
def test_refuses_what_is_no_whole_number_in_the_range(value: object) -> None:
    with pytest.raises(ValueError, match=r"^Expected hops to be an integer >= 1 and <= 8, got "):
        whole("hops", value, 1, 8)


@pytest.mark.parametrize("value", [1, 8, np.int64(3), np.uint8(3)])
def test_whole_numbers_come_back_as_int(value: object) -> None:
    assert type(whole("hops", value, 1, 8)) is int and whole("hops", value, 1, 8) == value


@pytest.mark.parametrize("value", [True, math.nan, math.inf, "0.5", None, 0, 1, 1.5, -0.1])
def test_refuses_what_is_no_number_in_the_range(value: object) -> None:
    with pytest.raises(ValueError, match=r"^Expected rate to be a number > 0 and < 1, got "):
        real("rate", value, above=0, below=1)


def test_limits_may_belong_to_the_range() -> None:
    assert [real("rate", value, least=0, most=1) for value in (0, 1, np.float32(0.5))] == [0.0, 1.0, 0.5]
    with pytest.raises(ValueError, match=r"^Expected rate to be a number >= 0 and <= 1, got 1.1"):
        real("rate", 1.1, least=0, most=1)
    with pytest.raises(ValueError, match=r"^Expected rate to be a finite number, got inf$"):
        real("rate", math.inf)
