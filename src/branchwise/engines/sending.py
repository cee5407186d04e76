"""Jobs and answers on their way between who grows the tree and who has the rows.

They travel as pickles: only ever what this library made itself, between its own
processes; nothing that a stranger wrote is opened. A plan is known on both sides
before the first job, so the jobs that refer to it do without: a job is then as large
as the splits so far, not as the values of the table.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from branchwise.engines.task import Plan

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
    """Pack a job that may refer to a plan."""
    file = io.BytesIO()
    _Sender(file, plan).dump(thing)
    return file.getvalue()


def received(data: bytes, plan: Plan) -> Any:
    """Unpack a job where the plan is known, too."""
    return _Receiver(io.BytesIO(data), plan).load()
