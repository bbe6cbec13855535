"""Runs the Python blocks of a page in order, with whatever ``enfa`` is installed: ``python run_readme.py README.md``."""

import re
import sys
from pathlib import Path

import enfa

if __name__ == "__main__":
    names: dict[str, object] = {}  # later blocks go on from earlier ones
    for block in re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL):
        exec(block, names)
    print(f"enfa {enfa.__version__} from {Path(enfa.__file__).parent}: all blocks of {sys.argv[1]} run")
