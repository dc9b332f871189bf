"""The picture of a message in the guide: the text that people get, as a phone shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from html import escape
from string import Template

from ostinato.notifications.text import Facts, compose
from tests.unit.test_notification_text import AT, DELIVERY, RUN, SCHEDULE

_PAGE = Template("""<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 28px; background: #e8ecf1; font: 15px/1.45 system-ui, sans-serif; }
div.card { width: 360px; padding: 14px 16px; border-radius: 16px; background: #fff; color: #1b1f24; }
div.card { box-shadow: 0 6px 24px #0002; }
div.from { display: flex; justify-content: space-between; margin-bottom: 6px; font-size: 12px; color: #5b636d; }
div.title { font-weight: 600; margin-bottom: 4px; }
div.body { white-space: pre-wrap; overflow-wrap: anywhere; }
</style><title>A message</title>
<div class="card"><div class="from"><span>phone</span><span>03:04</span></div>
<div class="title">$title</div><div class="body">$body</div></div>""")


def message_html() -> str:
    """A page with one message."""
    reason = "exited with status 3: no space left on device"
    run = replace(RUN, schedule="backup", finished_at=AT + timedelta(minutes=4, seconds=10), attempt=1)
    facts = Facts(
        run=run,
        schedule=replace(SCHEDULE, name="backup"),
        lines=["scanning /srv, 41,223 files", "no space left on device"],
        public_url="https://jobs.example.org",
    )
    data = {"cause": "exit_status", "reason": reason, "count": 1}
    delivery = replace(DELIVERY, key="39e19c82d4fb", subject="backup", schedule="backup", data=data)
    message = compose([delivery], delivery.key, facts)
    return _PAGE.substitute(title=escape(message.title), body=escape(message.body))
