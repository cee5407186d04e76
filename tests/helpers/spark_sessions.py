"""A session of Spark on this machine, where there is one to be had."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import branchwise


@contextmanager
def local_spark() -> Iterator[Any]:
    """Open a session of two cores in which a task may fail once."""
    pyspark = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none")
    here = [str(Path(__file__).parent), str(Path(branchwise.__file__).parents[1])]
    paths = [*here, *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        # Workers must find what this process has, and what tests send them.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        builder = pyspark.SparkSession.builder.master("local[2, 2]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": folder,
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()
