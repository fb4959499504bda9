"""
# What is known beforehand

Nobody's age is caused by how much they exercise. The data cannot know this, people do: tiers, required and
forbidden arrows are kept strictly, whatever the data say.
"""

import fedcdh
from fedcdh.reporting import save

study = fedcdh.demo.hospital_study(seed=1000)


def still_open(result):
    """The edges whose direction is left open."""
    return ", ".join(" — ".join(sorted(line)) for line in result.graph.lines) or "nothing"


print("open without knowledge:", still_open(fedcdh.discover(study.tables)))

# %%
# ## Tiers
#
# Nothing in a later tier causes anything in an earlier one. Variables in no tier are free.

known = fedcdh.Knowledge(
    tiers=[
        ["age", "smoker"],
        ["exercise", "bmi"],
        ["systolic_pressure", "cholesterol"],
        ["medication", "risk_score"],
    ],
    forbidden=[("medication", "risk_score")],  # the score comes before the prescription
)
result = fedcdh.discover(study.tables, knowledge=known)
print("open with tiers:", still_open(result))
print("the truth, arrow by arrow:", result.graph.arrows == study.arrows)
save(result, "with_tiers.svg")

# %%
# The domain, which stands for all that differs between sites, can be part of it: here, that age and smoking come
# about alike everywhere, and that the devices for pressure are known to differ.

about_sites = fedcdh.Knowledge(
    tiers=known.tiers,
    forbidden=[(fedcdh.DOMAIN, "age"), (fedcdh.DOMAIN, "smoker")],
    required=[(fedcdh.DOMAIN, "systolic_pressure")],
)
told = fedcdh.discover(study.tables, knowledge=about_sites)
print("differ:", ", ".join(sorted(told.changing)))

# %%
# ## Wrong knowledge
#
# It is kept, too. What it costs in evidence can be seen: the search is forced to say that the score causes the
# pressure, and makes up for it elsewhere.

wrong = fedcdh.Knowledge(required=[("risk_score", "systolic_pressure")])
forced = fedcdh.discover(study.tables, knowledge=wrong)
made_up = sorted(forced.graph.arrows - study.arrows)
print("made up:", ", ".join(f"{tail} → {head}" for tail, head in made_up))
try:
    fedcdh.discover(
        study.tables,
        knowledge=fedcdh.Knowledge(required=[("bmi", "age")], tiers=[["age"], ["bmi"]]),
    )
except fedcdh.FedCDHError as error:
    print(error)

# %%
# **What one learns.** A little knowledge closes what the data leave open, and it is the cheapest way to a better
# graph. Contradictions are refused before anything is computed. Errors are not noticed, and one wrong arrow brings
# others along: run the search once without knowledge, and be suspicious where the two disagree.
