"""Whether the service is ready: it is not to end, and its database answers, soon, with the tables of this version."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from service.errors import DatabaseUnavailable, ShuttingDown
from service.store import migrate
from service.store.database import Database


class Readiness:
    """Asks the database, one question at a time, and waits no longer than it may.

    In a thread of its own: those of the requests may all wait for the same database. Whoever asks while a question
    has no answer yet waits for that one, so that a database that hangs is not asked ever more often.

    Args:
        database: Which one.
        within_seconds: How long a question may take.
    """

    def __init__(self, database: Database, *, within_seconds: float) -> None:
        self._database = database
        self._within_seconds = within_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readiness")
        self._asked: asyncio.Future[bool] | None = None
        self._is_ending = False

    def end(self) -> None:
        """Be ready no more: the process was told to end. May be called from a signal handler."""
        self._is_ending = True

    async def require(self) -> None:
        """Return where the database is ready.

        Raises:
            ShuttingDown: The process was told to end.
            DatabaseUnavailable: It does not answer, not in time, or is not at the migrations' head.
        """
        if self._is_ending:
            raise ShuttingDown("This process was told to end.")
        loop = asyncio.get_running_loop()
        if self._asked is None or self._asked.done() or self._asked.get_loop() is not loop:
            self._asked = loop.run_in_executor(self._thread, migrate.is_at_head, self._database)
            # Nobody may be left to hear of a failure.
            self._asked.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        done, _ = await asyncio.wait([self._asked], timeout=self._within_seconds)
        if not done:
            raise DatabaseUnavailable(f"The database does not answer within {self._within_seconds:g} s.")
        if not self._asked.result():
            raise DatabaseUnavailable(
                "The database is not at this version's migrations: run `stallbudget migrate`."
            )

    def close(self) -> None:
        """Wait for no further answer."""
        self._thread.shutdown(wait=False, cancel_futures=True)
