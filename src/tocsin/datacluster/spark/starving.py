"""Jobs that wait for others: they have begun, and no task of theirs gets a place.

Spark shares places between pools fairly, but only as tasks end: one whose tasks take for ever shares nothing.
"""

from __future__ import annotations

from pyspark import SparkContext


class Starving:
    """Looked at now and then; remembers since when each job has been without a task."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._active: set[int] = set()
        self._since: dict[int, float] = {}

    def look(self, now: float) -> float:
        """For how long the one that waits longest has been waiting."""
        tracker = self._context.statusTracker()
        self._active = set(tracker.getActiveJobsIds())
        idle = [job for job in self._active if not self._has_task(job)]
        self._since = {job: self._since.get(job, now) for job in idle}
        return now - min(self._since.values(), default=now)

    def forget(self) -> None:
        self._since.clear()

    def holds(self, group: str) -> bool:
        """Whether a job of the group had a task at the last look."""
        return bool(set(self._context.statusTracker().getJobIdsForGroup(group)) & self._active - self._since.keys())

    def _has_task(self, job: int) -> bool:
        tracker = self._context.statusTracker()
        info = tracker.getJobInfo(job)
        stages = [tracker.getStageInfo(stage) for stage in info.stageIds] if info else []
        return info is None or any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
