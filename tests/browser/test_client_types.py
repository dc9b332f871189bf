"""What the page knows of the server is generated: web/openapi.json from the code, src/api/schema.ts from that, and
src/api/policies.ts from the table of policies.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ostinato.api.policy_form import policy_form
from tests.browser.scenario import NODE

WEB = Path(__file__).parents[2] / "web"
MEND = "the API changed: run `make types`, and look at what changed for the page"


def test_the_openapi_document_of_the_page_is_that_of_the_code() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "ostinato.api"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert json.loads((WEB / "openapi.json").read_text()) == json.loads(printed), MEND
    assert (WEB / "openapi.json").read_text() == printed, MEND


def test_the_policies_of_the_page_are_those_of_the_table() -> None:
    assert (WEB / "src/api/policies.ts").read_text() == policy_form(), MEND


def test_the_types_of_the_page_are_those_of_the_document(tmp_path: Path) -> None:
    script = json.loads((WEB / "package.json").read_text())["scripts"]["types"]
    command = script.replace("src/api/schema.ts", str(tmp_path / "schema.ts")).split()
    program = WEB / "node_modules" / command[0] / "bin" / "cli.js"
    assert program.exists(), f"{program} is not there: `make page` installs the packages of the page"
    done = subprocess.run(
        [str(NODE), str(program), *command[1:]], cwd=WEB, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (WEB / "src/api/schema.ts").read_text() == (tmp_path / "schema.ts").read_text(), MEND
