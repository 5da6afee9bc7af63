"""Names for a city that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

DISTRICTS = (
    "Old Town",
    "Harbour",
    "Northgate",
    "Millfield",
    "Castle Hill",
    "Eastbank",
    "Fairview",
    "Willow Park",
    "Ironworks",
    "Saint Anna",
    "Southmoor",
    "Lakeside",
    "Orchard",
    "Glassworks",
    "Westmark",
    "Linden",
    "Quarry",
    "Sunfield",
    "Rookery",
    "Ferry Point",
)
# fmt: off
_STEMS = (
    "Alder", "Amber", "Anchor", "Ash", "Baker", "Barley", "Beacon", "Birch", "Bishop", "Bridge", "Brook",
    "Candle", "Canal", "Cedar", "Chapel", "Cherry", "Clover", "Cooper", "Copper", "Coral", "Cotton", "Crane",
    "Dove", "Elm", "Falcon", "Fern", "Field", "Fisher", "Flint", "Foundry", "Fox", "Garden", "Glover", "Granary",
    "Grove", "Hazel", "Heath", "Heron", "Hill", "Holly", "Hop", "Ivy", "Juniper", "Kiln", "King", "Lantern",
    "Lark", "Laurel", "Lime", "Maple", "Market", "Meadow", "Mercer", "Mill", "Mint", "Moor", "Nettle", "Oak",
    "Olive", "Otter", "Park", "Pear", "Pepper", "Pine", "Plum", "Poplar", "Potter", "Quay", "Queen", "Raven",
    "Reed", "River", "Robin", "Rose", "Rowan", "Saddler", "Sage", "School", "Silver", "Spring", "Station",
    "Stone", "Swan", "Tanner", "Thistle", "Thorn", "Tower", "Vine", "Walnut", "Water", "Weaver", "Wharf", "Wheat",
    "Willow", "Wood", "Yarrow", "Yew",
)
# fmt: on
_ENDINGS = ("Street", "Road", "Lane", "Row", "Way", "Rise", "Close", "Gate")
SHELTER_KINDS = (  # what it is, fewest and most places
    ("School", 250, 900),
    ("Sports Hall", 300, 1500),
    ("Community Centre", 80, 350),
    ("Church Hall", 60, 250),
    ("Library", 60, 200),
    ("Metro Station", 400, 2000),
    ("Town Hall", 150, 500),
    ("Civil Shelter", 200, 1200),
)


def street_names(rng: np.random.Generator) -> Iterator[str]:
    """Street names without end, none twice."""
    names = [f"{stem} {ending}" for ending in _ENDINGS for stem in _STEMS]
    order = rng.permutation(len(names)).tolist()
    turn = 0
    while True:
        turn += 1
        for i in order:
            yield names[i] if turn == 1 else f"{names[i]} {turn}"


def district_names(count: int) -> list[str]:
    """The first is the centre."""
    known = len(DISTRICTS)
    return [DISTRICTS[i % known] + (f" {i // known + 1}" if i >= known else "") for i in range(count)]
