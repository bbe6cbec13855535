"""The pages of the documentation: their blocks, the commands in these, and the reasons why some are not run."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from from_file import from_file

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = ("sh", "bash")
INDENTED = re.compile(r"(?<=\n\n)(?: {4,}\S[^\n]*\n)+")
# of a whole block, or of those of its commands that begin with these words: "not run (pip, make): they install"
REASON = re.compile(r"not run(?: \(([^)]+)\))?: (.+)")

make = from_file(ROOT / "docs" / "notebooks" / "make.py")
BLOCKS: dict[Path, list[Any]] = {page: make.blocks(page.read_text()) for page in PAGES}


@dataclass(frozen=True)
class Command:
    """One command of a page, and why it is not run there, if it is not."""

    words: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        return " ".join(self.words)


def lines_of(code: str) -> list[list[str]]:
    """The words of each command, without comments."""
    lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
    return [words for words in lines if words]


def commands_of(block: Any) -> list[Command]:
    """Of a block of shell commands."""
    found = REASON.fullmatch(block.mark)
    firsts = None if found is None or found[1] is None else [word.strip() for word in found[1].split(",")]
    reason = found[2] if found else ""
    return [Command(tuple(w), reason if firsts is None or w[0] in firsts else "") for w in lines_of(block.code)]


def commands(page: Path) -> list[Command]:
    """All of a page, in order."""
    return [command for block in BLOCKS[page] if block.language in SHELL for command in commands_of(block)]


def sentences(page: Path) -> list[Command]:
    """Commands between backquotes in the text, with arguments; ``enfa train`` alone is a name."""
    prose = make.BLOCK.sub("", page.read_text())
    found = [text.partition(" > ")[0].split() for text in re.findall(r"`((?:enfa|python|pip|make) [^`]+)`", prose)]
    return [Command(tuple(words)) for words in found if (len(words) > 2 or words[1].startswith("-")) and "..." not in words]


def to_run(page: Path) -> list[Command]:
    """Those of blocks that have no reason not to be run, and those of ``enfa`` in the text."""
    return [c for c in commands(page) if not c.reason] + [c for c in sentences(page) if c.words[0] == "enfa"]


def indented(page: Path) -> list[str]:
    """Indented blocks: what is printed, and rows of data. What can be run stands between lines of ```."""
    return INDENTED.findall(make.BLOCK.sub("", page.read_text()))
