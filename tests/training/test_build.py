from pathlib import Path

import pytest

from enfa.training import open_benchmark, read_config


def test_attributes_that_a_table_of_molecules_does_not_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("smiles,y\nC,0.5\nCC,1.5\n")
    with pytest.raises(ValueError, match=r"Expected no use_node_attr for a table of molecules, got .*m\.csv"):
        open_benchmark(read_config(path, ["use_node_attr=true"]))
