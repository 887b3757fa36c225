#!/usr/bin/env python3
"""Reads what the workers have noted, and says whether it is as it should be."""

import collections
import pathlib

lines = [line.split() for line in pathlib.Path("log").read_text().splitlines()]
finished = {(job, worker) for what, job, worker in lines if what == "end"}
begun, ended, inside, most = collections.Counter(), collections.Counter(), set(), 0
for what, job, worker in lines:
    if what == "end":
        ended[job] += 1
        inside.remove(worker)
        continue
    begun[job] += 1
    # Nobody notes when the one that is killed is gone, so it is not counted.
    if (job, worker) in finished:
        inside.add(worker)
        most = max(most, len(inside))
jobs = sorted(path.name for path in pathlib.Path("jobs").iterdir())
right = all((pathlib.Path("done") / job).read_text() == job.upper() for job in jobs)
once = set(ended) == set(jobs) and set(ended.values()) == {1}
print(f"{len(jobs)} jobs, each ended once: {once}, with the right result: {right}")
print(f"begun anew after its worker was killed: {sum(begun.values()) - len(jobs)}")
print(f"never more than 2 at work: {most <= 2}")
