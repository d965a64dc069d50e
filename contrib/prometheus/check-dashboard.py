#!/usr/bin/env python3
"""Compares a Grafana dashboard with the schema of dashboards.

Grafana publishes types that are generated from its schema (grafana-foundation-sdk). The dashboard is read into
them and written again: what the schema does not know in that place is gone then, and is reported.

Usage: check-dashboard.py FILE, with `pip install grafana-foundation-sdk==1769699998!10.1.0`.
"""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def missing(given, understood, place):
    """Yields what stands in `given` and not in `understood`."""
    if isinstance(given, dict) and isinstance(understood, dict):
        for key, value in given.items():
            if value is None or value == [] and key not in understood:
                continue
            if key not in understood:
                yield f"{place}.{key}: unknown here"
            else:
                yield from missing(value, understood[key], f"{place}.{key}")
    elif isinstance(given, list) and isinstance(understood, list):
        if len(given) != len(understood):
            yield f"{place}: {len(given)} entries, {len(understood)} understood"
        for number, (one, other) in enumerate(zip(given, understood)):
            yield from missing(one, other, f"{place}[{number}]")
    elif given != understood:
        yield f"{place}: {given!r} is understood as {understood!r}"


def main():
    register_default_plugins()
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    understood = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(given)))
    problems = list(missing(given, understood, "dashboard"))
    places = [panel["gridPos"] for panel in given["panels"]]
    for number, one in enumerate(places):
        for other in places[number + 1:]:
            apart = (one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
                     or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"])
            if not apart:
                problems.append(f"panels overlap: {one} and {other}")
    if len({panel["id"] for panel in given["panels"]}) != len(places):
        problems.append("panels share an id")
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
