#!/usr/bin/env python3
"""A pool of workers: each job is done once, whatever happens to a worker.

    pool.py WORKERS         works on the files in jobs/ until all of them are in done/
    pool.py --worker NAME   is one worker
"""

import os
import pathlib
import subprocess
import sys
import time

import catraca

ADDRESS = "127.0.0.1:7879"
JOBS, DONE = pathlib.Path("jobs"), pathlib.Path("done")
LICENCES = 2  # the program that does the work has so many


def work(name: str) -> None:
    with catraca.Client(ADDRESS) as client:
        while open_jobs := [job for job in sorted(JOBS.iterdir()) if not (DONE / job.name).exists()]:
            for job in open_jobs:
                lock = client.try_lock(f"jobs/{job.name}", label=name)
                if lock is None:
                    continue  # somebody else is at it
                with lock:
                    # It may have been done between the look and the lock.
                    if not (DONE / job.name).exists():
                        with client.semaphore("licence", LICENCES, label=name):
                            do(job, name, lock.fence)
            time.sleep(0.05)


def do(job: pathlib.Path, name: str, fence: int) -> None:
    note(f"begin {job.name} {name}")
    time.sleep(0.2)
    text = job.read_text().upper()
    # Under its name at once or not at all: nobody ever reads half a result.
    result = DONE / f".{job.name}.{fence}"
    result.write_text(text)
    # Before the result is there for all to see: a worker that is killed has not done the job.
    note(f"end {job.name} {name}")
    result.rename(DONE / job.name)


def note(line: str) -> None:
    with open("log", "a") as log:
        log.write(line + "\n")


def pool(workers: int) -> None:
    DONE.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--worker"]
    running = [subprocess.Popen([*command, f"worker-{number}"]) for number in range(workers)]
    # The first worker that begins is killed in the middle of its job.
    while not os.path.exists("log"):
        time.sleep(0.01)
    victim = pathlib.Path("log").read_text().split()[2]
    running[int(victim.removeprefix("worker-"))].kill()
    codes = [process.wait() for process in running]
    print(f"{codes.count(0)} workers have ended, {codes.count(-9)} was killed")


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        work(sys.argv[2])
    else:
        pool(int(sys.argv[1]))
