"""
# Numbers, labels and gaps

The demo study: five hospitals, 2060 patients, eight variables. Two are labels (smoker; medication with three
drugs), six are numbers, a few entries are missing, and two mechanisms differ between hospitals. All of it is
simulated.
"""

import fedcdh
from fedcdh.reporting import save

study = fedcdh.demo.hospital_study(seed=1000)
for name, column in study.tables["north"].items():
    print(f"{name:18} {column[0]!s:6} {column[1]!s:6} {column[2]!s:6} ...")

# %%
# Text is a label and needs no coding. Numbers that are codes would need `kinds={"ward": "categorical"}`.

result = fedcdh.discover(study.tables)
print(result)
save(result, "hospitals.svg")

# %%
# ## How sure is each edge?
#
# The log Bayes factor of an edge against its absence, and of its direction against the reverse: above 3 is strong,
# around 0 a toss of a coin. There is none where the reverse would close a circle. The last word says what directed
# the edge.

for edge in result.edges():
    if edge.mark and edge.source != fedcdh.DOMAIN:
        direction = "-" if edge.log_bayes_direction is None else f"{edge.log_bayes_direction:.1f}"
        shown = f"{edge.source} {edge.mark} {edge.target}"
        why = edge.oriented_by or "open"
        print(f"{shown:32} edge {edge.log_bayes_presence:5.0f}   direction {direction:>6}   {why}")

# %%
# ## Against the truth

true, found = study.arrows, result.graph.arrows
print("arrows found:", len(found & true), "of", len(true))
print(
    "wrong arrows:",
    ", ".join(f"{tail} → {head}" for tail, head in sorted(found - true)) or "none",
)
print(
    "directions left open:",
    ", ".join(" — ".join(sorted(line)) for line in result.graph.lines) or "none",
)
print("differ, in truth:", ", ".join(sorted(study.changing)))

# %%
# **What one learns.** Labels are causes and effects like numbers. Rows with a gap are left out, counted and
# reported per hospital; that is safe where entries are lost at random, as here, and not where the sick are measured
# more often. Lines are not failures: without knowledge, a curve or a difference between hospitals that tells, both
# directions fit the data equally well. The [next example](knowledge.py) closes them.
