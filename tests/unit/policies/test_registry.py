import pytest

from tocsin.errors import ConfigError
from tocsin.policies.placement.least_loaded import LeastLoaded
from tocsin.policies.placement.nearest import Nearest
from tocsin.policies.registry import PLACEMENT, placement_policy


def test_options_are_the_fields_as_written():
    assert placement_policy("nearest", {"metric": "sphere"}) == Nearest("sphere")
    assert placement_policy("least_loaded", {"newcomer_weight": "0.5"}) == LeastLoaded(0.5)
    assert all(placement_policy(name) == PLACEMENT[name]() for name in PLACEMENT)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        pytest.param("nearst", {}, "did you mean 'nearest'?", id="a misspelt name"),
        pytest.param("nearest", {"metrik": "plane"}, "did you mean 'metric'?", id="a misspelt option"),
        pytest.param("round_robin", {"k": "2"}, "options are none", id="an option of a policy without any"),
        pytest.param("least_loaded", {"newcomer_weight": "-1"}, "at least 0", id="a weight below zero"),
        pytest.param("nearest", {"metric": "cube"}, "placement policy nearest", id="a value that does not fit"),
    ],
)
def test_what_is_not_known_is_refused(name: str, options: dict, said: str):
    with pytest.raises(ConfigError, match="placement policy") as caught:
        placement_policy(name, options)
    assert said in str(caught.value)
