"""A folder of a program's own for one attempt: its home, and where it works."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")
"""What a program gets of our environment, besides PATH and what names the user."""


@dataclass(frozen=True, slots=True)
class ClientFolder:
    """Folders that are there for one attempt, and nobody else's."""

    root: Path

    @property
    def home(self) -> Path:
        """The program's home folder: nothing of the user's own settings is in it."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """Its working folder, empty."""
        return self.root / "work"

    def write(self, name: str, text: str) -> Path:
        """Write a file beside home and work, for the user alone; gives its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return what a program gets as its environment.

        Of ours it is next to nothing, so that it asks no API and sends to no proxy that the eval
        does not know of. `Command` adds PATH and what names the user.

        Args:
            extra: what the client and its options set; it counts over the rest.

        """
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        own = {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp")}
        return {**kept, **own, **extra}


@contextmanager
def client_folder() -> Iterator[ClientFolder]:
    """Make the folders of one attempt, and remove them at the end."""
    root = Path(tempfile.mkdtemp(prefix="mst-client-"))
    try:
        for name in ("home", "work", "tmp"):
            (root / name).mkdir(mode=0o700)
        yield ClientFolder(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
