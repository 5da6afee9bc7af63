"""Building an index directory from parameter sets.

Files: the hash table (``slots``, ``key1``, ``key2``, ``starts``: see ``table``); the entries, one for each key
of each subscription, in the order of the buckets (``entry_id``, ``entry_owner``, and what the scan by
distance reads); ``ids`` and ``p<i>_<part>``, one value a subscription, for the residual tests. Where
entries are sorted by ``Compare`` parameters, they are there once for each, one order after the other, and
``range_values`` holds what each is sorted by.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.access import Access, check_spec, choose_access
from tocsin.matching.distance import chord_band, unit_vectors
from tocsin.matching.encode import Columns, Side, encode_params
from tocsin.matching.fingerprint import Seed, process_seed
from tocsin.matching.spec import IndexSpec, Metric, Near
from tocsin.matching.spec_json import spec_to_json
from tocsin.matching.spread import Keys, param_keys
from tocsin.matching.storage import write_directory
from tocsin.matching.table import bucket_order, group_keys

Arrays = dict[str, NDArray[Any]]


def build_index(
    spec: IndexSpec, params: Columns, ids: NDArray[np.uint32], directory: Path, *, seed: Seed | None = None
) -> None:
    """Write the index of the subscriptions ``ids``, whose parameters stand at the same places of ``params``.

    The directory appears whole or not at all. ``seed`` keys the hashes; indexes that are probed together
    are best built with one.
    """
    arrays, meta = index_contents(spec, params, ids, seed or process_seed())
    write_directory(directory, arrays, meta)


def index_contents(
    spec: IndexSpec, params: Columns, ids: NDArray[np.uint32], seed: Seed
) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the meta data of an index."""
    check_spec(spec)
    _check_distinct(ids)
    access = choose_access(spec)
    side = encode_params(spec, params, ids.size, seed)
    keys = param_keys(spec, access, side, seed)
    arrays = {"ids": ids.astype(np.uint32, copy=False)} | _arrays(spec, access, side, keys, ids)
    meta = {"spec": spec_to_json(spec), "seed": [str(s) for s in seed], "levels": keys.levels}
    return arrays, meta | {"count": ids.size, "max_id": int(ids.max(initial=0))}


def _check_distinct(ids: NDArray[np.uint32]) -> None:
    repeated = np.flatnonzero(np.diff(np.sort(ids)) == 0)
    if repeated.size:
        raise BadArgument("ids", "distinct ids", f"{repeated.size} repetitions")


def _arrays(spec: IndexSpec, access: Access, side: Side, keys: Keys, ids: NDArray[np.uint32]) -> Arrays:
    bucket, slots, key1, key2 = group_keys(*keys.lanes)
    starts, place = bucket_order(bucket, key1.size)
    owner = np.empty(keys.owner.size, np.uint32)
    owner[place] = keys.owner
    arrays: Arrays = {"slots": slots, "key1": key1, "key2": key2, "starts": starts}
    if access.ranges:
        owner, arrays["range_values"] = _sorted_ranges(access, side, bucket[np.argsort(place)], owner)
    arrays["entry_id"] = ids[owner].astype(np.uint32, copy=False)
    return arrays | _spread_arrays(spec, access, side, owner) | _residual_arrays(access, side)


def _sorted_ranges(
    access: Access, side: Side, bucket: NDArray[np.int32], owner: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The owners once for each range, in its order within the buckets, and the values of that order."""
    owners, values = [], []
    for i in access.ranges:
        high = side.parts[i, "high"][owner]
        order = np.lexsort((high, bucket))
        owners.append(owner[order])
        values.append(high[order])
    return np.concatenate(owners), np.concatenate(values)


def _spread_arrays(spec: IndexSpec, access: Access, side: Side, owner: NDArray[np.uint32]) -> Arrays:
    i = access.spread
    near = spec.predicates[i] if i is not None else None
    if i is None or not isinstance(near, Near) or near.radius_probe:
        return {"entry_owner": owner} if access.residuals else {}
    x, y, limit = (side.parts[i, part] for part in ("x", "y", "limit"))
    if near.metric is Metric.PLANAR:
        arrays = {"entry_x": x[owner], "entry_y": y[owner], "entry_limit": limit[owner]}
        return arrays | ({"entry_owner": owner} if access.residuals else {})
    names = ("entry_u", "entry_v", "entry_w", "entry_low", "entry_high")
    vectors = zip(names, (*unit_vectors(x, y), *chord_band(limit)), strict=True)
    places = {f"p{i}_x": x, f"p{i}_y": y, f"p{i}_limit": limit}
    return {name: values[owner] for name, values in vectors} | places | {"entry_owner": owner}


def _residual_arrays(access: Access, side: Side) -> Arrays:
    return {f"p{i}_{part}": values for (i, part), values in side.parts.items() if i in access.residuals}
