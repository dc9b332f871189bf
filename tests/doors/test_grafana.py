"""The dashboard for Grafana: it asks only for metrics that there are, and has what Grafana needs to import it."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_METRIC = re.compile(r"\bscheduler_\w+")
_OF_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy/grafana/ostinato.json").read_text(encoding="utf-8"))
    return found


def queries(dashboard: dict[str, Any]) -> list[str]:
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return asked + [one["definition"] for one in dashboard["templating"]["list"] if one["type"] == "query"]


def test_every_metric_that_it_asks_for_is_one_of_ours(dashboard: dict[str, Any]) -> None:
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src/ostinato").rglob("*.py"))
    known = dict(re.findall(r'Family\(\s*"(scheduler_\w+)",\s*"(\w+)"', source))
    assert "scheduler_nodes" in known
    asked = {name for query in queries(dashboard) for name in _METRIC.findall(query)}
    for name in sorted(asked):
        family = _OF_HISTOGRAM.sub("", name)
        is_histogram = known.get(family) == "histogram"
        assert is_histogram if family != name else name in known, f"{name} is in no answer of /metrics"
    page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    assert {_OF_HISTOGRAM.sub("", name) for name in asked} <= set(_METRIC.findall(page))


def test_it_has_what_grafana_needs(dashboard: dict[str, Any]) -> None:
    assert (dashboard["uid"], dashboard["title"], dashboard["id"]) == ("ostinato", "Ostinato", None)
    assert dashboard["schemaVersion"] >= 36
    (source,) = [one for one in dashboard["templating"]["list"] if one["type"] == "datasource"]
    assert (source["name"], source["query"]) == ("datasource", "prometheus")
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["targets"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_no_panel_lies_over_another(dashboard: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
