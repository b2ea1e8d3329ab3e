"""Private tables that R has opened: R holds a name, the rows stay on the Python side."""

from __future__ import annotations

import secrets

from pydpmode.errors import PydpmodeError
from pydpmode.privacy.private_data import PrivateData


class StaleHandle(PydpmodeError):
    """The handle of a private table belongs to another session, or was closed."""


class Handles:
    """Open private tables by name; a name is only good in the session that made it."""

    def __init__(self) -> None:
        self.session = secrets.token_hex(8)
        self._open: dict[str, PrivateData] = {}

    def keep(self, study: PrivateData) -> str:
        """Keep a table and return its name."""
        name = f"private{len(self._open) + 1}-{secrets.token_hex(4)}"
        self._open[name] = study
        return name

    def find(self, name: str, session: str) -> PrivateData:
        """Return the table of a name.

        Raises
        ------
        StaleHandle
            When the handle comes from another session (a saved workspace, another process), or is closed.
        """
        if session != self.session or name not in self._open:
            raise StaleHandle(
                "this private_data object belongs to another session: the rows are not in it, and cannot be "
                "saved with it. Open the data again with private_data(), with the same ledger file, so that "
                "what was spent stays spent"
            )
        return self._open[name]

    def drop(self, name: str, session: str) -> None:
        """Forget a table, so that its memory is free. Unknown names are ignored."""
        if session == self.session:
            self._open.pop(name, None)
