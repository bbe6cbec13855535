"""Your own data: lists of graphs, files of arrays, tables of molecules, and files of node and edge lists."""

from enfa.datasets.own.bad import BadRow, BadRows
from enfa.datasets.own.csv_file import from_csv
from enfa.datasets.own.graphs import from_graphs, from_npz, graphs_from_npz
from enfa.datasets.own.write import to_npz

__all__ = ["BadRow", "BadRows", "from_csv", "from_graphs", "from_npz", "graphs_from_npz", "to_npz"]
