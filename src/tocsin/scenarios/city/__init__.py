"""A generated city and its emergencies: streets, people, reports, subscribers, channels.

After the test-bed of the multistage load-balancing paper (section 6.1.2), which took its map and its
movement from a simulator's Helsinki; this city is generated instead, from a seed.
"""

from tocsin.scenarios.city.audience import Intent, subscribers
from tocsin.scenarios.city.channels import CHANNELS, DATASETS, DEMO, Channel, channels
from tocsin.scenarios.city.emergencies import KINDS, RADIUS_M, REPORTS_PER_S, Publishers
from tocsin.scenarios.city.mobility import Mobility
from tocsin.scenarios.city.scenario import Scenario, records_of
from tocsin.scenarios.city.storms import Storms
from tocsin.scenarios.city.timetable import Residents, Timetable
from tocsin.scenarios.city.world import City, Place, Shelter

__all__ = [
    "CHANNELS",
    "DATASETS",
    "DEMO",
    "KINDS",
    "RADIUS_M",
    "REPORTS_PER_S",
    "Channel",
    "City",
    "Intent",
    "Mobility",
    "Place",
    "Publishers",
    "Residents",
    "Scenario",
    "Shelter",
    "Storms",
    "Timetable",
    "channels",
    "records_of",
    "subscribers",
]
