"""A generated city and its emergencies: streets, people, reports, subscribers, channels.

After the test-bed of the multistage load-balancing paper (section 6.1.2), which took its map and its
movement from a simulator's Helsinki; this city is generated instead, from a seed.
"""

from tocsin.scenarios.city.mobility import Mobility
from tocsin.scenarios.city.world import City, Place, Shelter

__all__ = ["City", "Mobility", "Place", "Shelter"]
