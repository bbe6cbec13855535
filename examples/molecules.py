"""Two CSV files of made-up molecules, as they come from a laboratory: python examples/molecules.py [ROWS]

molecules.csv has 500 rows (or ROWS): of every five, three are ordinary molecules, one has a rare atom and one cannot be read.
soluble is yes or no, logp a number; both follow from the groups of a molecule, and some were not measured. new.csv is to
predict for: a tenth as many rows, with atoms that no molecule of the other file has.
"""

import csv
import random
import sys

RINGS = ("c1ccc({})cc1{}", "C1CC({})CCC1{}", "c1cc({})ncc1{}", "C1CN({})CCC1{}", "c1cc({})sc1{}", "c1cc({})c2ccccc2c1{}",
         "C1C({})COC1{}", "CC({})CC{}", "c1cc({})oc1{}", "O=C1CC({})CN1{}")  # fmt: skip
GROUPS = {"O": -1.2, "N": -1.0, "C(=O)O": -0.9, "C(N)=O": -1.4, "OC": -0.1, "C": 0.5, "CC": 1.0, "CCC": 1.5, "C(C)(C)C": 1.9,
          "Cl": 0.7, "Br": 0.9, "F": 0.2}  # fmt: skip
RARE = ("[Se]C", "[Si](C)(C)C", "B(O)O", "[As](C)C", "[Te]C", "[Sn](C)(C)C", "[Hg]C", "[Ge](C)(C)C", "P(C)C", "I")
NEW = ("[Bi](C)C", "[Pb](C)(C)C", "[Po]C", "[Og]")
BAD = ("c1ccc(C)cc", "CC(C)(C)(C)(C)C", "C1CC(", "n/a", "", "C%", "[Xx]CC", "O=C=C=O=C")


def row(number: int, kind: str, draw: random.Random) -> list[object]:
    one, other = draw.choice(list(GROUPS)), draw.choice(list(GROUPS))
    last = draw.choice({"rare": RARE, "new": NEW}.get(kind, (other,)))
    ring = draw.randrange(len(RINGS))
    logp = 2 - 0.2 * ring + GROUPS[one] + (GROUPS[other] if last == other else 0.4) + draw.gauss(0, 0.2)
    smiles = draw.choice(BAD) if kind == "bad" else RINGS[ring].format(one, last)
    soluble = "" if draw.random() < 0.05 else "yes" if logp < 1 else "no"
    return [f"M{number:04}", smiles, soluble, "" if draw.random() < 0.05 else f"{logp:.2f}"]


def write(path: str, kinds: list[str], seed: int) -> None:
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "smiles", "soluble", "logp"])
        table.writerows(row(number, kind, draw) for number, kind in enumerate(kinds))


count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
write("molecules.csv", ["plain", "rare", "plain", "bad", "plain"] * (count // 5), seed=0)
write("new.csv", ["plain", "new", "plain", "bad", "plain"] * max(count // 50, 1), seed=1)
print(f"molecules.csv: {count // 5 * 5} rows; new.csv: {max(count // 50, 1) * 5} rows")
