"""Executors of the Dask engine: the workers of a client, or local threads.

Work is submitted partition by partition and merged in groups, so that this process
gets one result however many partitions there are. All data on workers can be
recomputed from the table if a worker is lost.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn
from weakref import WeakSet

import dask
import dask.dataframe as dd
import distributed
import pandas as pd

from branchwise.engines.dask.workers import Rejected, merge_results
from branchwise.engines.level_engine import Texts
from branchwise.errors import BranchwiseError, DataError, ParameterError, counted
from branchwise.files.typed_columns import declared_columns
from branchwise.threads import in_order

#: The number of results that are merged at a time.
FAN_IN = 8
#: The timeout of connecting to a scheduler.
_PATIENCE = "10s"
_OF_DISTRIBUTED = (None, "distributed", "dask.distributed")
_LOST = (asyncio.CancelledError, concurrent.futures.CancelledError, OSError)
_ONE_THREAD = ("sync", "synchronous", "single-threaded")


def connect(address: str) -> None:
    """Connect to a scheduler, whose workers do all further work."""
    try:
        # A client that fails would stay the current one, so it is not made so.
        distributed.Client(address, timeout=_PATIENCE, set_as_default=False).close()
        distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"There is no Dask scheduler at {address!r}: give the address of a running "
            "one, such as tcp://host:8786."
        ) from error


def parquet_frame(
    files: Texts, names: Texts, missing: Texts, address: str | None = None
) -> Any:
    """Return columns of Parquet files as a DataFrame; some texts are missing values."""
    if address is not None:
        connect(address)
    frame = dd.read_parquet(list(files))
    declared = declared_columns(files[0])
    if not set(names) <= set(frame.columns):
        frame = frame.reset_index()  # a column that pandas has written as the index
    return frame[list(names)].map_partitions(_as_read, tuple(missing), declared)


def _as_read(
    chunk: pd.DataFrame, missing: Sequence[str], declared: AbstractSet[str]
) -> pd.DataFrame:
    """Return columns as files are read: some texts are missing values.

    A dictionary that is not declared is only a way to store values.
    """
    chunk = chunk.copy(deep=False)
    for name, column in chunk.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            gone = [text for text in missing if text in column.cat.categories]
            kept = column.cat.remove_categories(gone)
            plain = kept.astype(column.cat.categories.dtype)
            chunk[name] = kept if name in declared else plain
        elif pd.api.types.is_string_dtype(column.dtype):
            chunk[name] = column.mask(column.isin(missing))
    return chunk


def _current_client() -> Any:
    if dask.config.get("scheduler", None) not in _OF_DISTRIBUTED:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


class LocalExecutor:
    """Threads of this process; Dask's own scheduler reads the partitions."""

    @property
    def n_threads(self) -> int:
        """The number of threads."""
        if dask.config.get("scheduler", None) in _ONE_THREAD:
            return 1
        return int(dask.config.get("num_workers", None) or os.cpu_count() or 1)

    def begin(self, delayed: Sequence[Any]) -> list[Any]:
        """Read the partitions."""
        try:
            return list(dask.compute(*delayed))
        except BranchwiseError:
            raise
        except Exception as error:
            raise DataError(
                f"The Dask table cannot be read: {_described(error)}"
            ) from error

    def share(self, value: object, name: str) -> Any:  # noqa: ARG002
        """Return the value: it is local."""
        return value

    def each(
        self,
        name: str,  # noqa: ARG002
        work: Callable[..., Any],
        *items: Sequence[Any],
        **shared: Any,
    ) -> list[Any]:
        """Apply a function to each of several items."""
        return in_order(
            lambda given: work(*given, **shared),
            list(zip(*items, strict=True)),
            self.n_threads,
        )

    each_partition = each

    def get(self, wanted: Sequence[Any], chunks: Sequence[Any]) -> list[Any]:  # noqa: ARG002
        """Return the results; raise if one of them is an error."""
        return _accepted(wanted)

    def release(self, cancel: bool = False) -> None:
        """Do nothing: unreferenced results are freed."""


class ClientExecutor:
    """The workers of a client."""

    def __init__(self, client: Any, retries: int) -> None:
        self._client = client
        self._retries = retries
        #: The futures that the scheduler holds for this executor.
        self._futures: WeakSet[Any] = WeakSet()

    @property
    def n_threads(self) -> int:
        """The number of threads of all workers."""
        return max(1, sum(map(int, self._client.nthreads().values())))

    def begin(self, delayed: Sequence[Any]) -> list[Any]:
        """Start reading the partitions, given as delayed tasks."""
        return self._ours(self._client.compute(list(delayed), retries=self._retries))

    def share(self, value: object, name: str) -> Any:
        """Send a value to a worker, from which the others fetch it once each.

        As the result of a task it can be recomputed if that worker is lost, unlike
        scattered data.
        """
        return self.each(name, _itself, [value])[0]

    def each(
        self,
        name: str,
        work: Callable[..., Any],
        *items: Sequence[Any],
        workers: Sequence[str] = (),
        **shared: Any,
    ) -> list[Any]:
        """Apply a function to each of several items, on some workers if possible."""
        # Other workers are allowed, too, in case this one is lost.
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

    def each_partition(
        self,
        name: str,
        work: Callable[..., Any],
        chunks: Sequence[Any],
        *items: Sequence[Any],
        **shared: Any,
    ) -> list[Any]:
        """Apply a function to each partition, on the worker that holds it.

        By default the scheduler considers all inputs of a task, and would move
        partitions to the worker that has the job.
        """
        holders = self._client.who_has(list(chunks))
        by_worker: dict[tuple[str, ...], list[int]] = {}
        for at, chunk in enumerate(chunks):
            worker = tuple(sorted(holders.get(chunk.key, ())))
            by_worker.setdefault(worker, []).append(at)
        every: list[Any] = [None] * len(chunks)
        for worker, chosen in by_worker.items():
            arguments = [[given[at] for at in chosen] for given in (chunks, *items)]
            results = self.each(name, work, *arguments, workers=worker, **shared)
            for at, result in zip(chosen, results, strict=True):
                every[at] = result
        return every

    def _ours(self, futures: list[Any]) -> list[Any]:
        self._futures.update(futures)
        return futures

    def get(self, wanted: Sequence[Any], chunks: Sequence[Any]) -> list[Any]:
        """Fetch results; ``chunks`` are the partitions that they are computed from.

        The error of the first partition that has one is raised with its number.
        """
        try:
            for future in wanted:
                error = future.exception()
                if error is not None:
                    self._raise(error, chunks)
            return _accepted(self._client.gather(list(wanted)))
        except _LOST as error:
            raise BranchwiseError(
                "The work was lost: the Dask cluster was closed or restarted while the "
                "tree was grown, or cannot be reached any more. Nothing was fitted; "
                "fit again."
            ) from error

    def _raise(self, error: BaseException, chunks: Sequence[Any]) -> NoReturn:
        failed = [n for n, future in enumerate(chunks) if future.status == "error"]
        where = f"Partition {failed[0]} of the Dask table" if failed else "A partition"
        tries = counted(self._retries + 1, "time") if self._retries else "once"
        # The traceback on the worker is of no use here.
        raise DataError(
            f"{where} cannot be computed, tried {tries}; nothing was fitted. The cause "
            f"is {_described(error)}"
        ) from error.with_traceback(None)

    def release(self, cancel: bool = False) -> None:
        """Release all futures, and cancel running work."""
        futures = list(self._futures)
        self._futures.clear()
        if cancel and self._client.status == "running":
            self._client.cancel(futures, force=True)
        for future in futures:
            future.release()


#: Runs work on partitions; what it returns may be futures of remote results.
Executor = LocalExecutor | ClientExecutor


def executor_of(client: Any, retries: int) -> Executor:
    """Return the executor of a client or, without a client, of local threads."""
    if client is None:
        client = _current_client()
    if client is None:
        return LocalExecutor()
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise ParameterError(
            "client must be a distributed.Client that is not asynchronous, or None for "
            f"the current one. Got {client!r}."
        )
    return ClientExecutor(client, retries)


def merge_results_on(executor: Executor, partial_results: Sequence[Any]) -> Any:
    """Merge results in groups, in order, down to one."""
    while len(partial_results) > 1:
        groups = [
            list(partial_results[begin : begin + FAN_IN])
            for begin in range(0, len(partial_results), FAN_IN)
        ]
        partial_results = executor.each("merge", merge_results, groups)
    return partial_results[0]


def _itself(value: object) -> object:
    return value


def _accepted(results: Sequence[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, Rejected):
            error, where = result.error, ""
            if result.number is not None:
                where = f" (In partition {result.number}, whose rows start at 0.)"
            raise type(error)(f"{error}{where}") if where else error from None
    return list(results)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ") + "."
