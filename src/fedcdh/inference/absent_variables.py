"""prototype"""
from __future__ import annotations
import numpy as np
from dataclasses import replace
from fedcdh.summaries.encoder import GRID
from fedcdh.summaries.summary import Summary
from fedcdh.summaries.aggregation import Cohort

RIDGE = 1e-3
PRIOR_ROWS = 20.0
STEPS = 60

def complete(cohort, absent, ridge=RIDGE, prior_rows=PRIOR_ROWS, steps=STEPS, shift=1.0):
    plan = cohort.plan
    p = plan.layout.n_columns
    n = np.array(cohort.client_rows, float)
    obs, means, scat = [], [], []
    spans = plan.layout.spans
    for s in cohort.summaries:
        o = np.ones(p, bool); o[0] = False
        for name in absent.get(s.clients[0], ()):
            o[spans[name]] = False
        obs.append(o); means.append(s.means); scat.append(s.scatter(slice(None)))
    held = sum(o * w for o, w in zip(obs, n))
    # start: block-diagonal pooled scatter
    sd2 = sum(np.where(o, np.diag(S), 0) for o, S in zip(obs, scat)) / np.maximum(held, 1)
    sd = np.sqrt(np.maximum(sd2, 1e-12)); sd[0] = 1
    block = np.zeros((p, p), bool)
    for sp in spans.values():
        block[sp, sp] = True
    mu = sum(np.where(o, m * w, 0) for o, m, w in zip(obs, means, n)) / np.maximum(held, 1)
    pair = sum(np.outer(o, o) * w for o, w in zip(obs, n))
    raw = sum(np.outer(o, o) * S for o, S in zip(obs, scat))
    corr0 = np.where(block, raw / np.maximum(pair, 1), 0) / np.outer(sd, sd)
    sigma = corr0.copy()
    cols = np.arange(1, p)
    N = n.sum()
    for step in range(steps):
        acc = np.zeros((p, p)); macc = np.zeros(p); done = []
        for o, m, S, w in zip(obs, means, scat, n):
            O, A = np.flatnonzero(o), np.flatnonzero(~o)[1:]
            Z = S / np.outer(sd, sd)
            z = (m - mu) / sd
            if len(A):
                soo = sigma[np.ix_(O, O)] + ridge * np.eye(len(O))
                B = np.linalg.solve(soo, sigma[np.ix_(O, A)]).T
                Z = Z.copy(); z = z.copy()
                Z[np.ix_(A, O)] = B @ Z[np.ix_(O, O)]
                Z[np.ix_(O, A)] = Z[np.ix_(A, O)].T
                Z[np.ix_(A, A)] = B @ Z[np.ix_(O, O)] @ B.T + w * (sigma[np.ix_(A, A)] - B @ sigma[np.ix_(O, A)])
                z[A] = shift * (B @ z[O])
            acc += Z; macc += w * z; done.append((Z, z))
        new = (acc + prior_rows * corr0) / (N + prior_rows)
        new[0] = 0; new[:, 0] = 0
        mu = mu + macc / N * sd
        change = np.abs(new - sigma).max()
        sigma = new
        if change < 1e-4:
            break
    out = []
    for s, o, (Z, z), w in zip(cohort.summaries, obs, done, n):
        if o[1:].all():
            out.append(s); continue
        m = mu + z * sd; m[0] = 1
        M = Z * np.outer(sd, sd) + w * np.outer(m, m)
        M[0, 0] = w
        M = np.rint(M * GRID**2)
        most = w * GRID**2
        M = np.clip(M, -most, most).astype(np.int64)
        M = np.triu(M) + np.triu(M, 1).T
        keep = o.copy(); keep[0] = True
        I = np.ix_(keep, keep)
        M[I] = s.moments[I]
        out.append(replace(s, moments=M))
    return Cohort(plan, tuple(out)), pair, sigma, step
