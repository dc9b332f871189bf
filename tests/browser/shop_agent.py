"""The agent of the screenshots: a stand-in for the Claude Code CLI that knows the answers of a small shop.

It is copied to the folder of the shop as an executable, so it uses nothing but the standard library. A question to
which it has no answer keeps it busy until it is ended.
"""

from __future__ import annotations

import json
import signal
import sys
import uuid
from typing import Any

ANSWERS = {
    "Is the blue lamp in stock": (
        "Yes: 14 of them are in Hamburg and 3 in Munich.\nOrdered before 15:00, it would be here by Thursday."
    ),
}
COSTS = {"total_cost_usd": 0.21, "num_turns": 3, "duration_ms": 4200}
USAGE = {"input_tokens": 40, "cache_read_input_tokens": 96_140, "output_tokens": 380}
MODELS = {"opus": {"contextWindow": 200_000, "costUSD": 0.21}}


def tell(session: str, **event: Any) -> None:
    sys.stdout.write(json.dumps({**event, "session_id": session}) + "\n")
    sys.stdout.flush()


def say(session: str, *content: dict[str, Any]) -> None:
    message = {"role": "assistant", "model": "opus", "content": list(content), "usage": USAGE}
    tell(session, type="assistant", message=message, parent_tool_use_id=None)


def main() -> None:
    given = dict(argument.split("=", 1) for argument in sys.argv if argument.startswith(("--resume=", "--session-id=")))
    session = next(iter(given.values()), str(uuid.uuid4()))
    prompt = sys.stdin.read()
    tell(session, type="system", subtype="init", model="opus", tools=["Bash"], apiKeySource="none")
    answer = next((text for question, text in ANSWERS.items() if prompt.startswith(question)), None)
    if answer is None:
        say(session, {"type": "text", "text": "I put two blue lamps into the cart and look for the cheapest parcel."})
        look = {"description": "compare parcels", "command": "shop parcels --weight 2.4"}
        say(session, {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": look})
        signal.pause()
    say(session, {"type": "text", "text": str(answer)})
    end = {"type": "result", "subtype": "success", "is_error": False, "result": answer}
    tell(session, **end, **COSTS, usage=USAGE, modelUsage=MODELS)


if __name__ == "__main__":
    main()
