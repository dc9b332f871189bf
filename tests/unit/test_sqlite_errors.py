"""What SQLite says is told in words that name the fix; what may pass is told apart from what does not."""

from __future__ import annotations

import apsw
import pytest

from ostinato.errors import StoreError, StoreUnavailable
from ostinato.stores.sqlite.jobs import named_error


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (apsw.FullError("full"), StoreUnavailable, "the disk is full: make room"),
        (
            apsw.IOError("disk I/O error"),
            StoreUnavailable,
            r"the disk could not be written \(disk I/O error\): is it full",
        ),
        (apsw.BusyError("busy"), StoreUnavailable, "another process held the lock of /srv/jobs.db for 10 s"),
        (apsw.ReadOnlyError("read-only"), StoreError, "check the folder and its rights"),
        (apsw.NotADBError("no"), StoreError, "not an SQLite database"),
        (apsw.SQLError("syntax"), StoreError, "SQLite refused: syntax"),
    ],
)
def test_an_error_of_sqlite_names_the_fix(error: apsw.Error, kind: type[StoreError], says: str) -> None:
    with pytest.raises(StoreError, match=says) as raised:
        raise named_error(error, "/srv/jobs.db", 10.0)
    assert type(raised.value) is kind


def test_what_is_not_of_sqlite_stays_what_it_is() -> None:
    error = ValueError("no")
    assert named_error(error, "/srv/jobs.db", 10.0) is error
