"""A strict reader of Prometheus' text format 0.0.4: what it does not know, or finds in the wrong place, is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["Metric", "read_metrics"]

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (-?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Inf)|\+Inf|NaN)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
_ESCAPES = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}
_KINDS = ("counter", "gauge", "histogram")

Labels = tuple[tuple[str, str], ...]


@dataclass
class Metric:
    """One family."""

    kind: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)
    """By name and sorted labels."""

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, tuple(sorted(labels.items()))]


def read_metrics(text: str) -> dict[str, Metric]:
    """Every family by its name."""
    assert text.endswith("\n"), "the last line has no end"
    metrics: dict[str, Metric] = {}
    name, help = "", ""
    for line in text.removesuffix("\n").split("\n"):
        if (found := re.fullmatch(rf"# HELP ({_NAME}) (.*)", line)) is not None:
            name, help = found[1], found[2]
            assert name not in metrics, f"{name} is described twice, or its samples are not together"
        elif (found := re.fullmatch(rf"# TYPE ({_NAME}) (\w+)", line)) is not None:
            assert found[1] == name, "a type without its help"
            assert found[2] in _KINDS
            metrics[name] = Metric(found[2], help)
        else:
            _read_sample(metrics[name], name, line)
    for name, metric in metrics.items():
        assert metric.samples, f"{name} has no sample"
        if metric.kind == "counter":
            assert name.endswith("_total")
        if metric.kind == "histogram":
            _check_histogram(name, metric)
    return metrics


def _read_sample(metric: Metric, family: str, line: str) -> None:
    found = _SAMPLE.fullmatch(line)
    assert found is not None, f"not a sample: {line!r}"
    allowed = [f"{family}{suffix}" for suffix in ("_bucket", "_sum", "_count")]
    assert found[1] in (allowed if metric.kind == "histogram" else [family]), f"{line!r} is not of {family}"
    key = (found[1], tuple(sorted(_labels(found[2] or "").items())))
    assert key not in metric.samples, f"told twice: {line!r}"
    metric.samples[key] = float(found[3])


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        assert found is not None, f"not a label: {text[place:]!r}"
        assert found[1] not in labels
        labels[found[1]] = re.sub(r'\\[\\n"]', lambda escape: _ESCAPES[escape[0]], found[2])
        place = found.end()
    assert not text.endswith(",")
    return labels


def _check_histogram(name: str, metric: Metric) -> None:
    """Buckets grow with their bound up to +Inf, which is the count; each has a sum."""
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, labels), value in metric.samples.items():
        if sample == f"{name}_bucket":
            bound = float(dict(labels)["le"])
            series.setdefault(tuple(pair for pair in labels if pair[0] != "le"), []).append((bound, value))
    assert series
    for labels, buckets in series.items():
        assert buckets == sorted(buckets), "bounds or counts go down"
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
        assert buckets[-1] == (float("inf"), metric.samples[f"{name}_count", labels])
        assert (f"{name}_sum", labels) in metric.samples
