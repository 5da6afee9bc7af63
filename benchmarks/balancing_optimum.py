"""The least possible maximum of a small world, proved by OR-tools CP-SAT."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from tocsin.policies.multistage.load import weights
from tocsin.policies.multistage.snapshot import Snapshot


def optimum(snapshot: Snapshot, known: float, limit_s: float) -> float | None:
    """The optimum, or None if it was not proved in time. ``known`` is what a plan reached; rates are whole."""
    s, model = snapshot, cp_model.CpModel()
    rates, sent = s.rates.astype(np.int64).tolist(), weights(s).astype(np.int64).tolist()
    at = [[model.new_bool_var("") for _ in range(s.m)] for _ in range(s.n)]
    fetched = [[model.new_bool_var("") for _ in range(s.m)] for _ in range(s.q)]
    highest = model.new_int_var(0, int(known), "highest")
    for i in range(s.n):
        model.add_exactly_one(at[i])
        for k in s.items[s.offsets[i] : s.offsets[i + 1]]:
            for j in range(s.m):
                model.add_implication(at[i][j], fetched[k][j])
    for j in range(s.m):
        load = sum(sent[i] * at[i][j] for i in range(s.n)) + sum(rates[k] * fetched[k][j] for k in range(s.q))
        model.add(load <= highest)
    for k in set(s.items.tolist()):
        model.add_at_least_one(fetched[k])
    heaviest = int(np.argmax(sent))
    model.add(at[heaviest][0] == 1)  # brokers are equal: one of them is the heaviest subscriber's
    model.minimize(highest)
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = limit_s  # so that a busy machine proves no fewer
    solver.parameters.num_workers = 1
    return solver.objective_value if solver.solve(model) == cp_model.OPTIMAL else None
