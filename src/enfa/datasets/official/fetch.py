"""Raw files: found where they belong, else downloaded there, else asked for in one sentence.

The loaders of PyG and OGB download too, but only on the way to a pickled cache, and PyG's without checking
certificates. Here only the files that were asked for leave the archive, and they appear complete or not
at all.
"""

import http.client
import logging
import os
import shutil
import tempfile
import urllib.request
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

__all__ = ["ensure_files", "ensure_tu"]

TU = "https://www.chrsmrrs.com/graphkerneldatasets"  # where PyG's TUDataset has it from, too
TIMEOUT = 20  # seconds without a byte
log = logging.getLogger(__name__)


def ensure_files(name: str, folder: Path, files: Sequence[str], url: str, also: Sequence[str] = ()) -> None:
    """Make sure that ``files`` lie in ``folder``, downloading ``url`` if one of them does not.

    An archive's members are taken without its top folder, if they match ``files`` or the patterns ``also``;
    any other ``url`` is the one file itself.
    """
    missing = _missing(folder, files)
    if not missing:
        return
    try:
        _download(url, folder, files, also)
        reason = "does not hold them"
    except (OSError, http.client.HTTPException, zipfile.BadZipFile) as error:
        reason = f"could not be read ({error})"
    missing = _missing(folder, files)
    if missing:
        raise FileNotFoundError(
            f"{name} needs {', '.join(missing)} in {folder}: not there, and {url} {reason}; "
            f"download that yourself and put the files there."
        )


def ensure_tu(name: str, root: Path) -> Path:
    """The folder of the raw files of a dataset of the TU collection, once they are there."""
    folder = root / name / "raw"
    files = [f"{name}_{part}.txt" for part in ("A", "graph_indicator", "graph_labels")]
    ensure_files(name, folder, files, f"{TU}/{name}.zip", also=[f"{name}_*.txt"])
    return folder


def _missing(folder: Path, files: Sequence[str]) -> list[str]:
    return [file for file in files if not (folder / file).is_file()]


def _download(url: str, folder: Path, files: Sequence[str], also: Sequence[str]) -> None:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        log.info("Downloading %s to %s", url, folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that moving a finished file to its place is atomic.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
            whole = Path(scratch) / "whole"
            with whole.open("wb") as file:
                shutil.copyfileobj(response, file)
            if not zipfile.is_zipfile(whole) and len(files) == 1:
                _place(whole, folder / files[0])
                return
            with zipfile.ZipFile(whole) as archive:
                for member in archive.infolist():
                    inner = PurePosixPath(*PurePosixPath(member.filename).parts[1:])
                    wanted = any(fnmatchcase(str(inner), pattern) for pattern in (*files, *also))
                    if wanted and ".." not in inner.parts and not member.is_dir():
                        part = Path(scratch) / "part"
                        with archive.open(member) as source, part.open("wb") as target:
                            shutil.copyfileobj(source, target)
                        _place(part, folder / inner)


def _place(path: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, destination)
