"""Who does the work on Dask: the workers of a client, or threads of this process.

Work is given out part by part and put together in groups, so that this process gets
one answer however many parts there are. Nothing is kept where it could not be made
again: whatever a lost worker had is computed anew from the table.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol
from weakref import WeakSet

import dask
import distributed

from branchwise.engines.remote import Refused, put_together
from branchwise.errors import BranchwiseError, DataError, ParameterError, counted
from branchwise.threads import in_order

#: So many answers are put together at a time.
FAN_IN = 8
#: How long a scheduler may take to answer.
_PATIENCE = "10s"
_OF_DISTRIBUTED = (None, "distributed", "dask.distributed")
_LOST = (asyncio.CancelledError, concurrent.futures.CancelledError, OSError)
_ONE_THREAD = ("sync", "synchronous", "single-threaded")


class Crew(Protocol):
    """Who does work on parts; what it returns stands for results made elsewhere."""

    @property
    def n_threads(self) -> int:
        """How much can be done at the same time."""

    def begin(self, delayed: Sequence[Any]) -> list[Any]:
        """Begin with the parts as Dask describes them."""

    def share(self, value: object, name: str) -> Any:
        """Have something where the work is done, to be used in many places."""

    def each(
        self, name: str, work: Callable[..., Any], *items: Sequence[Any], **shared: Any
    ) -> list[Any]:
        """Do the same with each of several items; what is shared is the same."""

    def at_home(
        self,
        name: str,
        work: Callable[..., Any],
        parts: Sequence[Any],
        *items: Sequence[Any],
        **shared: Any,
    ) -> list[Any]:
        """Do the same with each part, where it lies."""

    def get(self, wanted: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        """Bring results here; ``parts`` are what they are made of, one for each part.

        What is wrong with a part is raised, with the number of the part.
        """

    def release(self, cancel: bool = False) -> None:
        """Let go of everything."""


def crew_of(client: Any, retries: int) -> Crew:
    """Return the client's workers or, where there is no client, threads."""
    if client is None:
        client = _current_client()
    if client is None:
        return LocalCrew()
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ParameterError(
            "client must be a distributed.Client that is not asynchronous, or None for "
            f"the current one. Got {client!r}."
        )
    return ClientCrew(client, retries)


def connect(address: str) -> None:
    """Make the workers of a scheduler those that do all further work."""
    try:
        # A client that fails stays the current one, so this one is not to be it.
        distributed.Client(address, timeout=_PATIENCE, set_as_default=False).close()
        distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"No Dask scheduler answers at {address!r}: give the address of one that "
            "runs, such as tcp://host:8786."
        ) from error


def _current_client() -> Any:
    if dask.config.get("scheduler", None) not in _OF_DISTRIBUTED:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def put_together_by(crew: Crew, answers: Sequence[Any]) -> Any:
    """Merge answers group by group, the earlier first, down to one."""
    while len(answers) > 1:
        groups = [
            list(answers[begin : begin + FAN_IN])
            for begin in range(0, len(answers), FAN_IN)
        ]
        answers = crew.each("merge", put_together, groups)
    return answers[0]


class LocalCrew:
    """Threads of this process; Dask's own scheduler reads the parts."""

    @property
    def n_threads(self) -> int:
        """How many threads there are."""
        if dask.config.get("scheduler", None) in _ONE_THREAD:
            return 1
        return int(dask.config.get("num_workers", None) or os.cpu_count() or 1)

    def begin(self, delayed: Sequence[Any]) -> list[Any]:
        """Read the parts."""
        try:
            return list(dask.compute(*delayed))
        except BranchwiseError:
            raise
        except Exception as error:
            raise DataError(f"The Dask table cannot be read: {_told(error)}") from error

    def share(self, value: object, name: str) -> Any:  # noqa: ARG002
        """Return it: it is here."""
        return value

    def each(
        self,
        name: str,  # noqa: ARG002
        work: Callable[..., Any],
        *items: Sequence[Any],
        **shared: Any,
    ) -> list[Any]:
        """Do the same with each of several items."""
        return in_order(
            lambda given: work(*given, **shared),
            list(zip(*items, strict=True)),
            self.n_threads,
        )

    at_home = each

    def get(self, wanted: Sequence[Any], parts: Sequence[Any]) -> list[Any]:  # noqa: ARG002
        """Return the results, none of which may be a refusal."""
        return _accepted(wanted)

    def release(self, cancel: bool = False) -> None:
        """Do nothing: what nobody refers to is gone."""


class ClientCrew:
    """The workers of a client."""

    def __init__(self, client: Any, retries: int) -> None:
        self._client = client
        self._retries = retries
        #: What the scheduler keeps for us.
        self._futures: WeakSet[Any] = WeakSet()

    @property
    def n_threads(self) -> int:
        """How many threads all workers have."""
        return max(1, sum(map(int, self._client.nthreads().values())))

    def begin(self, delayed: Sequence[Any]) -> list[Any]:
        """Begin with the parts as Dask describes them."""
        return self._ours(self._client.compute(list(delayed), retries=self._retries))

    def share(self, value: object, name: str) -> Any:
        """Have something on a worker, from where the others fetch it once each.

        As the result of a task it can be had again if that worker is lost, which what
        is scattered cannot.
        """
        return self.each(name, _itself, [value])[0]

    def each(
        self, name: str, work: Callable[..., Any], *items: Sequence[Any], **shared: Any
    ) -> list[Any]:
        """Do the same with each of several items."""
        return self._begun(name, work, items, shared)

    def _begun(
        self,
        name: str,
        work: Callable[..., Any],
        items: Sequence[Sequence[Any]],
        shared: Mapping[str, Any],
        workers: Sequence[str] = (),
    ) -> list[Any]:
        # Others may help, too: a worker that is lost must not be waited for.
        where = {"workers": list(workers), "allow_other_workers": True}
        return self._ours(
            self._client.map(
                work,
                *items,
                key=f"branchwise-{name}",
                pure=False,
                retries=self._retries,
                **(where if workers else {}),
                **shared,
            )
        )

    def at_home(
        self,
        name: str,
        work: Callable[..., Any],
        parts: Sequence[Any],
        *items: Sequence[Any],
        **shared: Any,
    ) -> list[Any]:
        """Do the same with each part, where it lies.

        Left to itself the scheduler goes by all that a task needs, and sends parts to
        where the job is.
        """
        lying = self._client.who_has(list(parts))
        by_home: dict[tuple[str, ...], list[int]] = {}
        for at, part in enumerate(parts):
            home = tuple(sorted(lying.get(part.key, ())))
            by_home.setdefault(home, []).append(at)
        found: list[Any] = [None] * len(parts)
        for home, chosen in by_home.items():
            theirs = [[given[at] for at in chosen] for given in (parts, *items)]
            results = self._begun(name, work, theirs, shared, home)
            for at, result in zip(chosen, results, strict=True):
                found[at] = result
        return found

    def _ours(self, futures: list[Any]) -> list[Any]:
        self._futures.update(futures)
        return futures

    def get(self, wanted: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
        """Bring results here, or raise what is wrong with the first part."""
        try:
            for future in wanted:
                error = future.exception()
                if error is not None:
                    self._raise(error, parts)
            return _accepted(self._client.gather(list(wanted)))
        except _LOST as error:
            raise BranchwiseError(
                "The work was lost: the Dask cluster was closed or restarted while the "
                "tree was grown, or cannot be reached any more. Nothing was fitted; "
                "fit again."
            ) from error

    def _raise(self, error: BaseException, parts: Sequence[Any]) -> NoReturn:
        failed = [n for n, future in enumerate(parts) if future.status == "error"]
        where = f"Partition {failed[0]} of the Dask table" if failed else "A partition"
        tries = counted(self._retries + 1, "time") if self._retries else "once"
        # Where it was raised on a worker helps nobody to find it here.
        raise DataError(
            f"{where} cannot be computed, tried {tries}; nothing was fitted. The cause "
            f"is {_told(error)}"
        ) from error.with_traceback(None)

    def release(self, cancel: bool = False) -> None:
        """Let the scheduler forget everything, and stop what is under way."""
        futures = list(self._futures)
        self._futures.clear()
        if cancel and self._client.status == "running":
            self._client.cancel(futures, force=True)
        for future in futures:
            future.release()


def _itself(value: object) -> object:
    return value


def _accepted(results: Sequence[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, Refused):
            raise _raised(result) from None
    return list(results)


def _raised(refused: Refused) -> BranchwiseError:
    error, number = refused.error, refused.number
    if number is None:
        return error
    return type(error)(f"{error} (In partition {number}, whose rows start at 0.)")


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ") + "."
