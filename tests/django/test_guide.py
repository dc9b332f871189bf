"""The code of the guide is that of the example."""

from __future__ import annotations

import re

from tests.doors.test_documentation import ROOT
from tests.doors.web_servers import EXAMPLES

_BLOCK = re.compile(r"^```python\n(# ([\w/]+\.py)\b.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide_shows_the_files_of_the_example_as_they_are() -> None:
    shown = {path: code for code, path in _BLOCK.findall((ROOT / "docs/guides/django.md").read_text(encoding="utf-8"))}
    wanted = ["mysite/asgi.py", "mysite/urls.py", "shop/models.py", "shop/tasks.py", "shop/tests.py", "shop/views.py"]
    assert shown == {path: (EXAMPLES / "django_app" / path).read_text(encoding="utf-8") for path in wanted}
