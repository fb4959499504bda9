"""
# A test of one's own

For methodologists: a search asks queries, and what answers them can be exchanged. Here a perfect test,
d-separation in a known graph, takes the place of statistics. It shows what the best imaginable test could find, and
what it could not.
"""

from dataclasses import replace
from random import Random

import fedcdh
from fedcdh.graphs import make_d_separation_test
from fedcdh.reporting import save
from fedcdh.search import find_skeleton, orient_skeleton, separating_set_rule

study = fedcdh.demo.hospital_study()
truth = fedcdh.PartialGraph((*study.names, fedcdh.DOMAIN), arrows=study.augmented)


def search(test):
    """PC-stable on the variables and the domain, then rules for directions; with any test."""
    skeleton = find_skeleton(truth.nodes, test, alpha=0.05)
    return orient_skeleton(skeleton, separating_set_rule).graph.drop(fedcdh.DOMAIN)


perfect = search(make_d_separation_test(truth))
print("arrows found:", len(perfect.arrows & study.arrows), "of", len(study.arrows))
print("none of them wrong:", perfect.arrows <= study.arrows)
print("open:", ", ".join(" — ".join(sorted(line)) for line in perfect.lines))
save(perfect, "perfect.svg", changing=study.changing)

# %%
# ## A test that errs
#
# Any function from queries to answers will do. This one asks the perfect test, and gives the opposite answer to
# one query in a hundred, drawn at random.


def erring(queries):
    return [
        replace(answer, p_value=1 - answer.p_value)
        if Random(f"1000 {answer.query}").random() < 0.01
        else answer
        for answer in make_d_separation_test(truth)(queries)
    ]


blurred = search(erring)
print(
    "lost:",
    ", ".join(" — ".join(pair) for pair in sorted(map(sorted, perfect.skeleton - blurred.skeleton))),
)
print(
    "wrong arrows:",
    ", ".join(f"{tail} → {head}" for tail, head in sorted(blurred.arrows - study.arrows)) or "none",
)

# %%
# **What one learns.** The lines that remain are nobody's fault: without assumptions on the form of mechanisms, no
# test can direct them, whatever the number of rows. Curved mechanisms carry more than independence, which is why
# `method="evidence"` directs one of them in [the example before](mixed_types.py). And errors of tests do not stay
# where they are made: one pair that is wrongly parted turns arrows elsewhere.
