"""What is told when Spark's Java process is gone."""

from __future__ import annotations

import pytest

from tocsin.datacluster.spark.session import needing_spark, spark_answers
from tocsin.errors import NotFound, Unavailable


def test_without_a_jvm_a_failure_is_unavailable_and_our_own_errors_stay() -> None:
    if spark_answers():
        pytest.skip("a session runs in this process")
    with pytest.raises(Unavailable, match="Java process has ended"), needing_spark():
        raise ConnectionRefusedError("no gateway")
    with pytest.raises(NotFound), needing_spark():
        raise NotFound("dataset", "D")
