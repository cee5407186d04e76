"""Options of subcommands that write a model: its metadata and its columns."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from branchwise.cli.options import SHARED, check_idle
from branchwise.data.descriptions import Metadata
from branchwise.errors import ParameterError, quoted
from branchwise.train.described_model import DescribedModel

AnyModel = TypeVar("AnyModel", bound=DescribedModel)


@dataclass(frozen=True)
class ModelOptions:
    """What a model is to hold beside what it predicts."""

    name: str | None = SHARED.option("--name")
    notes: str | None = SHARED.option("--notes")
    date: str | None = SHARED.option("--date")
    labels: str | None = SHARED.option("--labels")
    drop_unused: bool = SHARED.flag("--drop-unused")

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata that was given."""
        given = {"name": self.name, "notes": self.notes, "date": self.date}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def given(self) -> bool:
        """Whether any of the options was given."""
        return bool(self.metadata) or self.drop_unused or self.labels is not None

    @property
    def orders(self) -> list[str]:
        """The orders of values that the labels have, as --order takes them."""
        return orders_of(self.labels)

    def check(self, output: str | None, output_format: str, **more: bool) -> None:
        """Reject metadata that a model cannot have, and what would not be seen."""
        if output is None and output_format == "text":
            idle = {"--drop-unused": self.drop_unused, **more}
            check_idle(idle, "without -o FILE, the model file that it is for.")
        if self.labels is not None:
            _labels_in(self.labels)
        try:
            Metadata(**self.metadata)
        except ParameterError as error:
            raise ParameterError(f"--{error}") from None

    def applied(
        self,
        model: AnyModel,
        found: Mapping[str, Mapping[str, str]] | None = None,
        **more: str,
    ) -> AnyModel:
        """Return the model with its metadata and labels, without unused columns.

        ``found`` are titles and units that the file of the table has.
        """
        if found:
            from branchwise.text.labels import with_found_labels

            model = model.with_schema(with_found_labels(model.schema, found))
        metadata = self.metadata | more
        if metadata:
            model = model.with_metadata(**metadata)
        model = with_labels_of(self.labels, model)
        return model.drop_unused() if self.drop_unused else model


def _labels_in(path: str) -> dict[str, dict[str, Any]]:
    from branchwise.text.labels import read_labels

    return read_labels(path)


def orders_of(labels: str | None) -> list[str]:
    """Return the orders of values in a file of labels, as --order takes them."""
    entries = []
    for name, label in ({} if labels is None else _labels_in(labels)).items():
        if label.get("order"):
            line = StringIO()
            csv.writer(line, lineterminator="").writerow(label["order"])
            entries.append(f"{name}={line.getvalue()}")
    return entries


def with_labels_of(labels: str | None, model: AnyModel) -> AnyModel:
    """Return the model with the labels of a file."""
    return model if labels is None else model.with_labels(labels)


def hash_of_files(paths: Sequence[str]) -> str:
    """Return the SHA-256 of the bytes of a file, or of the sorted ones of several."""
    absent = [path for path in paths if not Path(path).is_file()]
    if absent:
        raise ParameterError(
            "--data-hash is that of the bytes of files, and these are none: "
            f"{quoted(absent)}. Leave it out, or read files."
        )
    digests = []
    for path in paths:
        with Path(path).open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(digests) == 1:
        return f"sha256:{digests[0]}"
    joined = "\n".join(sorted(digests)).encode()
    return f"sha256:{hashlib.sha256(joined).hexdigest()}"
