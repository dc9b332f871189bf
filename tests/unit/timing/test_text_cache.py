"""Long texts are kept with what was read from them, so fewer of them are."""

from __future__ import annotations

from ostinato.timing.text_cache import TextCache


def test_many_short_texts_are_kept_and_few_long_ones() -> None:
    read: list[str] = []

    def size(text: str, more: int) -> int:
        read.append(text)
        return len(text) + more

    cache = TextCache(size, 4_096)
    short = [f"daily at {number}" for number in range(4_000)]
    long = [f"{number:04}".ljust(11_000, "x") for number in range(300)]
    for text in (*short, *long):
        assert cache(text, 1) == len(text) + 1
    read.clear()
    for text in short:
        cache(text, 1)
    assert read == []
    for text in long[::-1]:
        cache(text, 1)
    assert read == long[:44][::-1]
    cache.cache_clear()
    cache(short[0], 1)
    cache(long[-1], 1)
    assert read[-2:] == [short[0], long[-1]]
