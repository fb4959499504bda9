"""
# Would it be the same without one of us?

Summaries add up, so the search can be repeated without one site after the other, and no site has to be asked again.
Here, something went wrong at one of the five hospitals of the demo study: at *valley*, somebody sorted the column
of cholesterol and left the others as they were.
"""

import numpy as np

import fedcdh
from fedcdh.reporting import save

study = fedcdh.demo.hospital_study(seed=1000)
tables = {site: dict(table) for site, table in study.tables.items()}
tables["valley"]["cholesterol"] = np.sort(tables["valley"]["cholesterol"])

result = fedcdh.discover(tables, max_conditioning_size=4)  # at most four causes: faster
print("differ between sites:", ", ".join(sorted(result.changing)))
wrong = sorted(result.graph.arrows - study.arrows)
print("wrong arrows:", ", ".join(f"{tail} → {head}" for tail, head in wrong))
save(result, "with_a_fault.svg")

# %%
# ## Leaving each out once
#
# The share of runs in which a pair is joined, and in which it is as in the result; then, what is otherwise without
# whom.

stability = result.stability()
for edge in stability.edges:
    pair = f"{edge.source} {edge.mark or 'and'} {edge.target}"
    print(f"{pair:34}{edge.adjacent:5.0%} joined {edge.same:5.0%} as here")
for client, what in stability.changes_without.items():
    print(f"without {client}: {', '.join(what)}")

# %%
# ## What differs, and where

flagged = [drift for drift in result.drift(["cholesterol"]) if drift.flagged]
for drift in sorted(flagged, key=lambda drift: -abs(drift.deviation))[:6]:
    where = f"{drift.quantity} at {drift.client}"
    print(f"{where}: {drift.estimate:.2f}, elsewhere {drift.pooled:.2f}")

# %%
# **What one learns.** The fault was in the file, and a valid summary came of it: no check on arrival can see it
# ([arrival.md](../arrival.md)). One faulty site spoils the graph of all. But what is wrong goes when *valley* goes,
# and the mechanism of cholesterol points there, too: only at *valley* it has no causes. So ask *valley*. Shares of
# runs are not probabilities: as long as *valley* takes part, all runs agree on a wrong arrow.
