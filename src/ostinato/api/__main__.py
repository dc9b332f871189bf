"""`python -m ostinato.api` prints the OpenAPI document, of which the page's types are made. It needs no database."""

from __future__ import annotations

import json
import sys
from typing import cast

from ostinato.api.app import create_app
from ostinato.api.container import ApiContainer


def main() -> None:
    """Print the document."""
    # No route is called, so there need be no container.
    document = create_app(cast(ApiContainer, None)).openapi()
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
