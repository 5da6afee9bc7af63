"""What emergency reports say."""

from __future__ import annotations

OPENINGS = {
    "fire": ("Building on fire", "Flames in a kitchen", "Heavy smoke from a roof", "Warehouse on fire"),
    "flood": ("Street under water", "River over its bank", "Burst water main", "Basements flooding"),
    "crash": ("Two cars collided", "Lorry overturned", "Tram and van collided", "Cyclist hit by a car"),
    "storm": ("Trees down in the storm", "Roof tiles falling", "Hail and violent gusts", "Scaffolding torn loose"),
    "gas": ("Smell of gas", "Gas pipe broken by diggers", "Gas leak in a cellar", "Chlorine escaping"),
    "crime": ("Armed robbery", "Break-in under way", "Shots heard", "Fight with several people"),
    "medical": ("Person collapsed", "Several people fainted", "Cardiac arrest", "Suspected poisoning"),
    "outage": ("Power failure", "Traffic lights dark", "Substation tripped", "Telephone network down"),
}

ADVICE = {
    "fire": (
        "Keep windows and doors closed because of the smoke.",
        "Do not use the lifts; leave by the stairs and stay low.",
        "Hydrants on both sides of the road must be kept free.",
    ),
    "flood": (
        "Do not drive through standing water.",
        "Move valuables and people out of basements now.",
        "Sandbags are handed out at the nearest fire station.",
    ),
    "crash": (
        "One lane is blocked; expect long delays in both directions.",
        "Keep a lane open for the ambulances.",
        "Fuel is on the road; do not smoke nearby.",
    ),
    "storm": (
        "Stay away from trees, scaffolds and facades.",
        "Trams and ferries have stopped running.",
        "Bring in whatever the wind could carry away.",
    ),
    "gas": (
        "Do not switch on lights and do not ring doorbells.",
        "Open the windows and leave the house on foot.",
        "The network operator is closing the valves.",
    ),
    "crime": (
        "Stay indoors and away from the windows.",
        "Do not approach anybody; ring the police with what you saw.",
        "Officers are searching the side streets.",
    ),
    "medical": (
        "A defibrillator hangs at the nearest station entrance.",
        "First aiders close by are asked to come and help.",
        "An ambulance is on its way; please show it the entrance.",
    ),
    "outage": (
        "Treat dark crossings as four-way stops.",
        "Repairs are expected to take about two hours.",
        "Look after neighbours who depend on medical devices.",
    ),
    "any": (
        "Follow the instructions of the crews on the spot.",
        "Emergency services are on the scene.",
        "Avoid the area and leave the approach roads free.",
        "People nearby should move to the nearest shelter.",
        "Further information follows within fifteen minutes.",
        "The cause is not known yet.",
        "No injuries have been confirmed so far.",
        "Bus lines in this part of town are being diverted.",
        "Please tell neighbours who may not have received this message.",
    ),
}
