"""Federated methods by scores."""

from __future__ import annotations

from fedcdh.evaluation.baselines.entry import BaselineEntry

ENTRIES: tuple[BaselineEntry, ...] = ()
