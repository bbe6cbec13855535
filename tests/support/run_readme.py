"""Runs the Python blocks of a page with whatever ``enfa`` is installed: ``python run_readme.py README.md``."""

import re
import sys
from pathlib import Path

import enfa

if __name__ == "__main__":
    for block in re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL):
        exec(block, {})
    print(f"enfa {enfa.__version__} from {Path(enfa.__file__).parent}: all blocks of {sys.argv[1]} run")
