"""URLs and quiet hours of channels: what is taken."""

from __future__ import annotations

import pytest

from ostinato.errors import InvalidInput
from ostinato.models.channel_values import check_quiet, check_url


@pytest.mark.parametrize(
    "url", ["", "phone", "json:/example.org", "telegram://bob", "telegram:42", "json://ex\nample.org", "json://***", 7]
)
def test_what_is_no_url_is_refused_and_not_repeated(url: object) -> None:
    with pytest.raises(InvalidInput) as error:
        check_url(url)
    assert error.value.field == "url"
    assert not url or str(url) not in str(error.value).removesuffix(error.value.hint or "") or url in (7, "json://***")


def test_a_url_is_taken_without_the_spaces_around_it() -> None:
    assert check_url(" json://example.org/a\n") == "json://example.org/a"
    assert check_url("env:PHONE_URL") == "env:PHONE_URL"
    assert check_url("telegram://-1001234") == "telegram://-1001234"


def test_quiet_hours_are_written_in_one_way() -> None:
    assert check_quiet("22:00-07:00") == check_quiet(" 22:00 - 7:00 ") == "22:00-07:00"


@pytest.mark.parametrize("text", ["", "22-7", "24:00-07:00", "22:00", "22:60-07:00", "07:00-07:00", None])
def test_wrong_quiet_hours_are_refused_at_their_field(text: object) -> None:
    with pytest.raises(InvalidInput) as error:
        check_quiet(text)
    assert error.value.field == "quiet"
