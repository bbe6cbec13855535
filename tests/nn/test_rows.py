import pytest
import torch

from enfa.nn.rows import Rows, current_rows, rows_in_flight


def _rows(count: int) -> Rows:
    return Rows(torch.ones(count, dtype=torch.long), count, lambda: torch.arange(count), False)


def test_the_innermost_rows_are_in_flight() -> None:
    assert current_rows() is None
    with rows_in_flight(_rows(1)):
        with rows_in_flight(_rows(2)):
            assert current_rows().total == 2
        assert current_rows().total == 1
    assert current_rows() is None


def test_an_error_takes_them_down_again() -> None:
    with pytest.raises(RuntimeError), rows_in_flight(_rows(1)):
        raise RuntimeError
    assert current_rows() is None
