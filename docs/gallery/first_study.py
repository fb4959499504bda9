"""
# Three CSV files, one graph, one effect

Three hospitals have the same eight columns about their patients. They cannot share the rows, and want to know: does
exercise lower blood pressure, and by how much? This page goes from their files to a graph and from the graph to the
effect. It was run to make what you see; the notebook at its end does the same on your machine, after
`pip install 'fedcdh[plot]'`.

The files are simulated, so that the truth is known. Each stays at its hospital.
"""

import csv

import fedcdh

study = fedcdh.demo.hospital_study(seed=1000)
hospitals = ["city", "north", "valley"]
for hospital in hospitals:
    with open(f"{hospital}.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(study.names)
        table.writerows(zip(*study.tables[hospital].values(), strict=True))
with open("north.csv", encoding="utf-8") as file:
    print(*[next(file) for _ in range(4)], sep="")

# %%
# ## What leaves a hospital
#
# First a **profile**: counts, means, a few quantiles and labels per column. From the profiles of all, the coordinator
# makes the **plan**: how every hospital scales its columns.

profiles = [fedcdh.profile(fedcdh.open_tables(f"{hospital}.csv"), hospital) for hospital in hospitals]
plan = fedcdh.StudyPlan.from_profiles(profiles)
plan

# %%
# Then one **summary**: sums over the rows, and not the rows. That is all that the search below sees. (Between
# organisations that do not trust each other, `fedcdh.release` or the command line makes it, and refuses what would
# give people away.)

summaries = [
    fedcdh.summarize(fedcdh.open_tables(f"{hospital}.csv"), plan, hospital) for hospital in hospitals
]
summaries[1]

# %%
# ## One graph

result = fedcdh.discover_from(summaries, plan)
result

# %%
# Arrows lead from causes to effects, a dashed line is an edge whose direction is open, and boxes with cut corners
# differ between hospitals. Numbers are probabilities.
#
# ## One effect
#
# How much does an hour of exercise a week change the blood pressure? The direction of two edges of *exercise* is open,
# and with it the answer. `fedcdh` says so, and gives the effect in each of the graphs that are possible.

result.effect("exercise", "systolic_pressure")

# %%
# Something is known that the rows do not say: exercise does not make anybody older. Age and smoking come before the
# rest, so they go into an earlier tier.

known = fedcdh.Knowledge(tiers=[["age"], ["exercise", "smoker"]])
result = fedcdh.discover_from(summaries, plan, knowledge=known)
effect = result.effect("exercise", "systolic_pressure")
effect

# %%
# The effect at every hospital, and over all of them. Nobody computed it from rows: the sums are enough. The interval
# over all allows for effects that differ between hospitals, and three hospitals say little about how much they do.

from matplotlib import pyplot

shown = {**effect.by_client, "all together": effect}
figure, axes = pyplot.subplots(figsize=(7.0, 2.4), layout="constrained")
for place, (name, one) in enumerate(shown.items()):
    low, high = one.interval
    marker = "D" if one is effect else "o"
    axes.plot([low, high], [place, place], color="black", linewidth=1.5)
    axes.plot(one.value, place, marker, color="black")
axes.axvline(0, color="grey", linewidth=1)
axes.set_yticks(range(len(shown)), shown)
axes.invert_yaxis()
axes.set_xlabel("mmHg per hour of exercise a week, with 95 % interval")
figure.savefig("effect.svg")

# %%
# The simulation knows the truth: exercise acts on the pressure through the body mass index, along a curve that is
# steepest at six hours a week. The straight line nearest to that curve, at the same ages:

import numpy as np

age, exercise = (np.concatenate([study.tables[h][name] for h in hospitals]) for name in ("age", "exercise"))
there = ~np.isnan(exercise)
change = 7 / 2.4 * -3 * np.tanh((exercise[there] - 6) / 2)
columns = np.column_stack([np.ones(there.sum()), age[there], exercise[there]])
slope = np.linalg.lstsq(columns, change, rcond=None)[0][2]
low, high = effect.interval
print(f"truth {slope:.2f} mmHg, estimate {effect.value:.2f} ({low:.2f} to {high:.2f})")

# %%
# ## To keep and to hand on
#
# `write_result` writes a folder that `read_result` gives back whole, `report` writes a page for everybody, and with a
# site a letter to that hospital, which has no numbers of the others.

fedcdh.write_result(result, "result", result.stability())
again = fedcdh.read_result("result")
pages = [again.report("study.html"), *[again.report(f"{h}.letter.html", site=h) for h in hospitals]]
print(again == fedcdh.read_result("result"), *[page.name for page in pages])

# %%
# Does it hang on one of the three? Each is left out in turn, which needs no further message.

again.stability()

# %%
# **What one learns.** A graph answers *whether*, an effect *how much*, and both come from one message per hospital. The
# data left a direction open, and one sentence of knowledge closed it: without it, the honest answer was a list. The
# effect holds if the graph is right and no common cause is missing. [The tutorial](../tutorial.md) does the same by
# file, with keys and policies; [reading a result](../how-to/results.md) explains the numbers.
