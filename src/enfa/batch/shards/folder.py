"""Where shards lie: a folder of this machine, or a URL that fsspec knows (``s3://bucket/data``, ``memory://data``).

A file is written all at once: on a disk as :mod:`enfa.atomic` does it, in an object store because an object is there
when all of it is. Credentials and addresses of servers come from where fsspec takes them, such as ``AWS_ENDPOINT_URL``.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from enfa.atomic import write_atomically

__all__ = ["Folder"]


class Folder:
    """Files by name. Holds no connection, so that it can be sent to other processes: each makes its own."""

    def __init__(self, url: str | Path) -> None:
        text = str(url)
        if text.startswith("file://"):
            text = text.removeprefix("file://")
        # where workers of a cluster find it, too, whose own folder is another
        self.local: Path | None = None if "://" in text else Path(text).absolute()
        self.url = text
        if self.local is not None and self.local.exists() and not self.local.is_dir():
            raise ValueError(f"Expected a folder of shards, got the file {text}")

    @property
    def shared(self) -> bool:
        """Whether other processes see what one writes: not in ``memory://``."""
        return not self.url.startswith("memory://")

    def _fs(self) -> Any:
        """The file system; fsspec keeps one for each process."""
        try:
            import fsspec

            return fsspec.core.url_to_fs(self.url)[0]
        except ImportError as error:
            raise ImportError(f"{self.url} needs a package that is not there: pip install 'enfa[scale]' ({error})") from error
        except ValueError as error:
            raise ValueError(f"Expected a folder, or a URL that fsspec knows, got {self.url} ({error})") from error

    def path(self, name: str) -> str:
        """What ``name`` is called outside."""
        return str(self.local / name) if self.local is not None else f"{self.url.rstrip('/')}/{name}"

    def names(self) -> list[str]:
        """The files that are there, sorted; none where there is no folder."""
        if self.local is not None:
            return sorted(p.name for p in self.local.iterdir() if p.is_file()) if self.local.is_dir() else []
        fs = self._fs()
        fs.invalidate_cache()  # other processes write, too
        try:
            found = fs.ls(self.url, detail=True)
        except FileNotFoundError:
            return []
        return sorted(entry["name"].rsplit("/", 1)[-1] for entry in found if entry["type"] == "file")

    def read(self, name: str) -> bytes:
        """All bytes of a file. Raises FileNotFoundError where there is none."""
        if self.local is not None:
            return (self.local / name).read_bytes()
        try:
            return self._fs().cat_file(self.path(name))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"There is no file {self.path(name)}") from error

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """The old file, or the whole new one."""
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
            write_atomically(self.local / name, parts)
        else:
            self._fs().pipe_file(self.path(name), b"".join(parts))

    def remove(self, name: str) -> None:
        """Where it is there."""
        if self.local is not None:
            (self.local / name).unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError):
            self._fs().rm_file(self.path(name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
