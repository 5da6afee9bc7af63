"""How low the highest level can be at best, so that every plan can say how far from optimal it is.

O is what subscribers are sent in all, L what all brokers fetch if each wanted subscription is fetched once.

- LB0: levels are at least their weighted mean, and the total load is at least O + L.
- LBi: whoever has the heaviest subscriber both fetches and sends all that it wants.
- LBspec: a certificate for interests without structure. Some broker has at least its fair share s of O. By expander
  mixing (W the subscriber × subscription matrix of rates, normalised; σ its second singular value) what that broker
  fetches is wanted by at least s / (s + σ²(1 - s)) of all there is, and it fetches least if that is the most popular.
  One singular value problem, so it is not part of every plan. Strong communities make σ near 1 and the bound useless.
"""

from __future__ import annotations

import numpy as np

from tocsin.policies.multistage.load import weights
from tocsin.policies.multistage.snapshot import Floats, Snapshot

SLACK = 1e-6  # σ is found by iteration from below


def lower_bound(snapshot: Snapshot) -> float:
    """The better of LB0 and LBi, in time linear in the snapshot."""
    sent = weights(snapshot)
    return max(mean_bound(snapshot, sent), heaviest_bound(snapshot, sent))


def mean_bound(snapshot: Snapshot, sent: Floats) -> float:
    """LB0."""
    wanted = np.zeros(snapshot.q, bool)
    wanted[snapshot.items] = True
    return float((sent.sum() + snapshot.rates[wanted].sum()) / snapshot.capacities.sum())


def heaviest_bound(snapshot: Snapshot, sent: Floats) -> float:
    """LBi."""
    return float(2 * sent.max(initial=0.0) / snapshot.capacities.max())


def spectral_bound(snapshot: Snapshot) -> float:
    """LBspec; with unequal capacities the least over the brokers, since any may be the one with its share."""
    sent = weights(snapshot)
    everything = sent.sum()
    if everything <= 0 or snapshot.m == 1:
        return lower_bound(snapshot)
    shares = snapshot.capacities / snapshot.capacities.sum()
    sigma2 = (second_singular_value(snapshot, sent) + SLACK) ** 2
    reached = shares / (shares + sigma2 * (1 - shares)) * everything
    return float(((shares * everything + _least_fetched(snapshot, reached)) / snapshot.capacities).min())


def second_singular_value(snapshot: Snapshot, sent: Floats) -> float:
    """Of the rates' matrix with rows and columns divided by the roots of their sums; the first is always 1."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import svds

    popular = np.bincount(snapshot.items, minlength=snapshot.q) * snapshot.rates
    root = np.sqrt(np.where(popular > 0, popular, 1.0))
    rows = np.repeat(np.sqrt(np.where(sent > 0, sent, 1.0)), np.diff(snapshot.offsets))
    values = snapshot.rates[snapshot.items] / rows / root[snapshot.items]
    matrix = csr_matrix((values, snapshot.items, snapshot.offsets), (snapshot.n, snapshot.q))
    if min(matrix.shape) < 4:
        return float(np.linalg.svd(matrix.toarray(), compute_uv=False)[1:2].max(initial=0.0))
    start = np.ones(min(matrix.shape)) + np.linspace(0, 1, min(matrix.shape))
    return float(min(1.0, svds(matrix, k=2, v0=start, return_singular_vectors=False).min()))


def _least_fetched(snapshot: Snapshot, volumes: Floats) -> Floats:
    """The least sum of rates wanted by ``volumes`` of what is sent: the most popular first, the last in part."""
    holders = np.bincount(snapshot.items, minlength=snapshot.q)
    order = np.argsort(-holders, kind="stable")[: np.count_nonzero(holders)]
    rates, sent = snapshot.rates[order], (snapshot.rates * holders)[order]
    found: Floats = np.interp(volumes, np.cumsum(np.append(0.0, sent)), np.cumsum(np.append(0.0, rates)))
    return found
