import pytest

from enfa import make_plan
from enfa.report.pages.how_it_works import how_it_works_data
from enfa.report.picture import molecule
from enfa.report.pictures.sharing import sharing_of
from enfa.report.program import ds_program
from enfa.report.settings import POLICIES


@pytest.mark.parametrize("policy", list(POLICIES))
def test_classes_are_the_rows_of_the_distinct_plan(policy: str) -> None:
    data = how_it_works_data(layers=3)["policies"][policy]
    plan = make_plan([molecule()[0]], POLICIES[policy](), ds_program(3))
    for layer, count in enumerate([len(plan.feature), *plan.cost().rows]):
        classes = {r for rows in data["rows"][layer] for r in rows if r >= 0}
        assert len(classes) == count == data["distinct"][layer]
    assert data["conventional"] == plan.num_pairs
    assert data["reached"] == sorted(data["reached"])


def test_a_plan_that_shares_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_less(*args: object) -> object:
        sharing = sharing_of(*args)  # type: ignore[arg-type]
        sharing.distinct[-1] -= 1
        return sharing

    monkeypatch.setattr("enfa.report.pages.how_it_works.sharing_of", one_less)
    with pytest.raises(ValueError, match="distinct rows in table 4"):
        how_it_works_data()
