"""The order of the tests themselves: nothing is lost, and each worker has its part of what is slow at the start."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.ordering import SLOW, share_out

Test = tuple[str, int]
FOLDERS = st.sampled_from([*SLOW, "engine", "stores", "unit"])


def folder(test: Test) -> str:
    return test[0]


@given(st.lists(FOLDERS, max_size=200), st.integers(1, 9))
def test_every_test_is_run_once(folders: list[str], workers: int) -> None:
    tests = list(zip(folders, range(len(folders)), strict=True))
    assert sorted(share_out(tests, folder, workers)) == sorted(tests)


def test_each_worker_begins_with_its_part_of_what_is_slow_and_ends_with_what_is_quick() -> None:
    tests = [(name, number) for name in (*SLOW, "unit") for number in range(8 if name in SLOW else 400)]
    ordered = share_out(tests, folder, 4)
    shares = [ordered[start:end] for start, end in pairwise(range(0, len(tests) + 1, len(tests) // 4))]
    for share in shares:
        names = [name for name, _ in share]
        assert sorted(names[:8]) == sorted([*SLOW, *SLOW])
        assert set(names[8:]) == {"unit"}
    assert [share[0][0] for share in shares] == list(SLOW)
