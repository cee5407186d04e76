"""What the Dask and Spark engines share: their tables, and jobs sent to workers.

Jobs are sent without the plan, which the workers have already.
"""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from branchwise.engines.fit_plan import Plan
from branchwise.errors import DataError, quoted
from branchwise.files.options import ENDINGS

Texts = Sequence[str]
#: Endings of the names of Parquet files.
_PARQUET = tuple(
    ending for ending, file_format in ENDINGS.items() if file_format == "parquet"
)


class RemoteTable(ABC):
    """A table whose partitions are on workers.

    Use it in a ``with`` statement, or call :meth:`close`: workers hold encoded rows
    until then.
    """

    engine_name: ClassVar[str]
    label: str
    #: Returns a DataFrame for files, names, missing values and an address.
    _read_parquet: ClassVar[staticmethod[[Texts, Texts, Texts, str | None], Any]]

    @classmethod
    def frame_of(
        cls,
        paths: Texts,
        names: Texts,
        missing: Texts,
        address: str | None = None,
    ) -> Any:
        """Return Parquet files as a DataFrame, and connect to a cluster.

        Dask and Spark infer the types of text files from their first rows, and not as
        branchwise does: the tree would be different. So these are rejected.

        Parameters
        ----------
        paths : sequence of str
            The files.
        names : sequence of str
            The columns.
        missing : sequence of str
            The texts that are missing values.
        address : str or None
            The scheduler of Dask, or the master of Spark such as ``"local[2]"``, unless
            there is a client or a session.
        """
        files = [str(path) for path in paths]
        others = [path for path in files if not path.lower().endswith(_PARQUET)]
        if others:
            raise DataError(
                f"engine={cls.engine_name!r} reads Parquet files. Got "
                f"{quoted(others)}; write the table to Parquet, or use "
                "engine='chunked'."
            )
        return cls._read_parquet(files, names, missing, address)

    @abstractmethod
    def close(self) -> None:
        """Release the data on the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_PLAN = "plan"


class _Sender(pickle.Pickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._plan = plan

    def persistent_id(self, thing: Any) -> str | None:
        return _PLAN if thing is self._plan else None


class _Receiver(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file)
        self._plan = plan

    def persistent_load(self, pid: Any) -> Plan:
        if pid != _PLAN:
            raise pickle.UnpicklingError(f"nothing is known as {pid!r}")
        return self._plan


def sent(thing: Any, plan: Plan) -> bytes:
    """Serialise a job that may refer to a plan."""
    file = io.BytesIO()
    _Sender(file, plan).dump(thing)
    return file.getvalue()


def received(data: bytes, plan: Plan) -> Any:
    """Deserialise a job with the plan that it refers to."""
    return _Receiver(io.BytesIO(data), plan).load()
