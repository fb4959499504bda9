"""
# Which site differs in what

The domain points to mechanisms that differ between sites. That is a question with an answer: *who* differs, and in
what? Level, effects and noise of each mechanism are estimated at every site, from the summaries that are there
already.
"""

from matplotlib import pyplot

import fedcdh
from fedcdh.discovery import tabulate_drift

study = fedcdh.demo.hospital_study(seed=1000)
result = fedcdh.discover(study.tables)
drifts = result.drift()
for drift in drifts:
    if drift.variable == "systolic_pressure" and drift.quantity in ("level", "noise"):
        where = f"{drift.quantity} at {drift.client}"
        interval = f"[{drift.low:.1f}, {drift.high:.1f}]"
        flag = "stands out" if drift.flagged else ""
        print(f"{where:16}{drift.estimate:6.1f} mmHg  {interval:16}{flag}")

# %%
# The truth of the simulation, for comparison: what each hospital's device adds, and how much its readings spread.

for name, hospital in fedcdh.demo.HOSPITALS.items():
    offset, spread = hospital.pressure_offset, hospital.pressure_noise
    print(f"{name:7} reads {offset:+5.1f} mmHg, spread {spread:.0f} mmHg")

# %%
# ## All at a glance
#
# Per variable and site, the quantity that deviates most from the other sites, in standard errors. All mechanisms
# are asked for here, also those that are the same everywhere.

rows = tabulate_drift(result.drift(study.names))
clients = list(result.cohort.clients)
shades = [
    [abs(row[client].deviation) if row[client] else 0 for client in clients] for row in rows.values()
]
figure, axes = pyplot.subplots(figsize=(8.0, 4.2), layout="constrained")
image = axes.imshow(shades, cmap="Blues", vmin=0, vmax=15, aspect="auto")
axes.set_xticks(range(len(clients)), clients)
axes.set_yticks(range(len(rows)), rows)
for y, row in enumerate(rows.values()):
    for x, client in enumerate(clients):
        if row[client] and row[client].flagged:
            what = row[client].quantity.split(" of ")[0]
            ink = "white" if shades[y][x] > 9 else "black"
            axes.text(x, y, what, ha="center", va="center", fontsize=8, color=ink)
figure.colorbar(image, label="standard errors from the other sites")
figure.savefig("map.svg")

# %%
# **What one learns.** A mechanism that differs is a lead, not a verdict: here devices that read too high, there
# another rule for prescribing. The deviation is from the *other sites*; who is right, they cannot tell. Flags are
# corrected for the many quantities of a mechanism, and one mechanism in twenty that is the same everywhere has one
# by chance. And *risk_score* is flagged although hospitals give it by the same rule: effects are straight lines
# here, the true one bends, and a hospital that reads higher pressures sees a steeper part of it. So ask the site
# before you believe it.
