import io
import re

from rich.console import Console

from enfa.cli.training.telling import Telling
from enfa.training.results.parts import NAMES


def test_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    telling = Telling(Console(file=out, force_terminal=False))
    for name in NAMES:
        telling(name)
    lines = out.getvalue().splitlines()
    assert len(lines) == len(NAMES) and all(re.match(r" *\d+\.\d s  ", line) for line in lines)
    assert lines[0].endswith(NAMES["import"])


def test_only_gpus_capture_steps() -> None:
    assert "on a GPU, steps captured" in NAMES["kernels"]


def test_a_status_until_a_bar_shows() -> None:
    out = io.StringIO()
    telling = Telling(Console(file=out, force_terminal=True))
    telling("read")
    assert telling._status is not None and NAMES["read"] in str(telling._status.status)
    telling("compile")  # which has a bar of its own
    assert telling._status is None and NAMES["compile"] not in out.getvalue()
    telling.stop()
