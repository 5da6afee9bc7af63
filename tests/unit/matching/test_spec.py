import pytest

from tocsin.matching.spec import Compare, Equal, HasWord, Member, Metric, Near, Op


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (Equal("__k0", "kind"), "__k0 = :kind"),
        (Member("__k0", "kinds"), "__k0 IN (:kinds)"),
        (Compare("__k0", Op.GE, "level"), "__k0 >= :level"),
        (HasWord("__k0", "word"), "has_word(__k0, :word)"),
        (Near(Metric.PLANAR, "a", "b", "x", "y", False, radius_param="r"), "distance(a, b, :x, :y) < :r"),
        (Near(Metric.PLANAR, "a", "b", "x", "y", False, radius_probe="c"), "distance(a, b, :x, :y) < c"),
        (Near(Metric.SPHERE, "a", "b", "x", "y", True, radius_const=0.0), "distance_m(a, b, :x, :y) <= 0.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_predicate_reads_as_it_was_written(predicate, text):
    assert str(predicate) == text
