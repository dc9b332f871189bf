# plain_script.py: python plain_script.py
import threading
from contextlib import suppress

from ostinato import Every, Ostinato, RunContext

jobs = Ostinato("sqlite:///script.db")


@jobs.task("refresh", schedule=Every(minutes=5))
def refresh() -> str:
    return "fresh"


@jobs.task
def copy(run: RunContext, files: int) -> int:
    for done in range(1, files + 1):
        if run.draining:  # the script is about to end
            return done - 1
        run.progress(done, files)
    return files


def main() -> None:
    jobs.start()  # in the background; SIGTERM drains it
    print("copied", copy.enqueue(3).result(timeout="1m"), flush=True)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()  # your own work, or nothing
    jobs.stop()


if __name__ == "__main__":
    main()
