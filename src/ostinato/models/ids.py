"""Typed ids: a schedule's number is not a run's number."""

from __future__ import annotations

from typing import NewType

__all__ = ["DeliveryId", "IncidentId", "NodeId", "RuleId", "RunId", "ScheduleId"]

ScheduleId = NewType("ScheduleId", int)
RunId = NewType("RunId", int)
NodeId = NewType("NodeId", str)
IncidentId = NewType("IncidentId", int)
RuleId = NewType("RuleId", int)
DeliveryId = NewType("DeliveryId", int)
