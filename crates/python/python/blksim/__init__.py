"""Simulator and reference model of the Linux multi-queue block layer.

Every function does a command of the program ``blksim`` in this process, with its checks and its
error texts. A setting is an option of the command: ``ramp_time="1s"`` is ``--ramp-time 1s``, a list
is a value with commas, ``True`` is an option without a value, and ``set={"job.iodepth": [1, 8]}`` is
``--set job.iodepth=1,8``. ``help(blksim.run)`` names the usual ones, docs/reference/commands.md all.

Results are Arrow tables: ``polars.from_arrow(table)`` and ``table.to_pandas()`` take them. Units are
in the names of columns (``_ns``, ``_ms``, ``bytes``); ``iops`` is per second, ``bw_bytes`` bytes per
second, ``usr_cpu``, ``sys_cpu``, ``cpu_busy`` and ``lock_wait`` are percent.

The interpreter's lock is free during a command, and Ctrl-C ends it. Same settings, same table.
"""

import json as _json
import numbers as _numbers
import os as _os
import shlex as _shlex
import warnings as _warnings

import pyarrow as _arrow
from pyarrow import csv as _csv
from pyarrow import parquet as _parquet

from . import _blksim

__all__ = [
    "Error",
    "Stall",
    "analyze",
    "calibrate",
    "compare",
    "conform",
    "list",
    "replay",
    "report",
    "run",
    "show",
    "sweep",
    "what_if",
]

_OK, _BAD_INPUT, _STALLED = 0, 2, 3


class Error(ValueError):
    """Bad input: what is wrong where, and what would be right, as the program says it."""


class Stall(RuntimeError, UserWarning):
    """A simulated run has I/O left that nothing will complete."""


def run(scenario, *, check=False, **settings):
    """Simulate a scenario: a row for each direction of each job of each run.

    ``scenario`` is a name from :func:`list`, a path, the text of a scenario or of a fio job, or a
    dict as the TOML of a scenario has it; several paths are fio jobs one after the other; with
    ``fio="--name=x --rw=randread ..."`` it is None.

    Settings with several values make a run with each combination, and a column of its own:
    ``scheduler``, ``rules`` (kernel releases), ``machine``, ``threads`` (numjobs of all jobs),
    ``set`` (keys of the scenario), ``seeds`` (how many, from ``seed`` on). For all runs:
    ``runtime``, ``ramp_time`` (fio's units: "100ms", "2s"), ``device``, ``drive``, ``without``,
    ``jobs`` (runs at a time; by default one a core).

    A run that stalls has ``outcome`` "stalled" and a :class:`Stall` as a warning; with ``check`` it
    is an exception.
    """
    return _runs("run", [scenario], check, settings)


def compare(scenarios, *, check=False, **settings):
    """Simulate variants with several seeds: a row for each measure of each variant, and each seed.

    ``scenarios`` is one, or a list of them, as of :func:`run`, and so are the settings; ``seeds`` is
    5 by default. ``value`` has the ``unit`` of its row, and ``half`` is half of its 95 % interval.
    """
    return _runs("compare", _listed(scenarios), check, settings)


def replay(capture, **settings):
    """Replay the arrivals of a blktrace capture: a row for the capture, and for each scheduler.

    ``capture`` is a folder, a file, or a list of files. Settings: ``scheduler``, ``from_`` ("Q" or
    "D"), ``closed_loop``, ``device``, ``machine``, ``rules``, ``set``, ``seed``, and how the capture
    is read. Latencies are in ns.
    """
    return _table(_answer("replay", _listed(capture), settings, ["--csv=-"]))


def what_if(capture, **settings):
    """Replay a capture under other schedulers: mean and 99th percentile of Q2C of each choice, ns.

    Settings: those of :func:`replay`, ``fit``, ``write_fit``, ``tune``, ``open_loop``, ``seeds``,
    ``jobs``. The percents are differences to the capture's own choice.
    """
    return _table(_answer("what-if", _listed(capture), settings, ["--csv=-"]))


def analyze(files, **settings):
    """Latencies of a capture, as btt has them, in ns: a row for each span of each table."""
    return _table(_answer("analyze", _listed(files), settings, ["--csv=-"]))


def conform(captures, **settings):
    """Compare each dispatch of captured kernels with the model's: a row for each capture.

    ``captures`` is a folder or a list of folders. Settings: ``mode``, ``rules``, ``trace_device``
    and what no file of the capture says. ``conforms`` is true if the model predicted all that the
    capture can decide about; ``report("conform", folder)`` has the first difference.
    """
    rows = []
    for folder in _listed(captures):
        code, out = _answer("conform", [folder], settings, ["--json=-"])
        verdict = {"conforms": code in (_OK, 4), **_json.loads(out)}
        rows.append([verdict[column] for column, _ in _VERDICT])
    columns = zip(*rows) if rows else [[] for _ in _VERDICT]
    columns = [_arrow.array(values, of) for values, (_, of) in zip(columns, _VERDICT)]
    return _arrow.table(columns, [column for column, _ in _VERDICT])


def calibrate(file, **settings):
    """Fit a machine profile to measurements: a row for each measured figure and its simulation.

    ``file`` is a path, and ``output`` the path of the new profile, for ``machine``.
    """
    return _table(_answer("calibrate", [file], settings, ["--csv=-"]))


def sweep(file, output=None, *, client=None, shards=None, check=False, **settings):
    """Make the runs of a sweep's file, or those that are missing: a row for each run and job.

    ``file`` is TOML (docs/reference/formats.md), ``output`` the folder of the results, by default
    beside it. An interrupted sweep goes on with the same call; runs are made once, and the table
    does not depend on where. Settings: ``jobs``, ``engine``, ``sbatch``.

    With the ``client`` of a Dask cluster its workers make the runs, ``shards`` tasks (by default one
    for each of their threads) in ``output``, a folder that all of them see.
    """
    file = _os.path.abspath(file)
    output = _os.path.abspath(output or _os.path.splitext(file)[0] + ".sweep")
    if client is None:
        settings = {"output": output, "shards": shards, **settings}
        _answer("sweep", [file], settings, [], check)
    else:
        count = shards or sum(client.nthreads().values())
        futures = client.map(_shard, [(file, output, index + 1, count) for index in range(count)],
                             pure=False)
        try:
            client.gather(futures)
        except BaseException:
            client.cancel(futures)
            raise
        _answer("sweep", [file], {"output": output, **settings}, ["merge"], check)
    return _parquet.read_table(_os.path.join(output, "results.parquet"))


def _shard(shard):
    """Makes a shard on one thread of a worker."""
    file, output, index, count = shard
    settings = {"output": output, "shard": f"{index}/{count}", "jobs": 1}
    _answer("sweep", [file], settings, ["run"])


def report(command, *inputs, **settings):
    """The whole JSON report of a command, such as ``report("run", "disk-random", details=True)``.

    A dict, or a list of dicts for several runs; times in ns unless a name says otherwise.
    """
    return _json.loads(_answer(command, inputs, settings, ["--json=-"])[1])


def list():
    """Names of the built-in scenarios, machines and drives, with a description of each."""
    return _json.loads(_answer("list", [], {}, ["--json"])[1])


def show(name):
    """The text of a built-in scenario, machine or drive."""
    return _answer("show", [name], {}, [])[1].decode()


def _runs(command, scenarios, check, settings):
    return _table(_answer(command, scenarios, settings, ["--csv=-"], check))


def _answer(command, inputs, settings, form, check=False):
    """Exit code and standard output of a command; `form` are the options that give it its form."""
    inputs = [value for value in inputs if value is not None]
    texts = [text for text in map(_text_of, inputs) if text is not None]
    if len(texts) > 1:
        raise Error("scenario: several texts; expected one, and others as names or paths")
    words = ["-" if _text_of(value) is not None else _word(value) for value in inputs]
    options = [word for name, value in settings.items() for word in _options(name, value)]
    fio = settings.get("fio")
    fio = ["--", *(_shlex.split(fio) if isinstance(fio, str) else map(_word, fio))] if fio else []
    arguments = [command, *form, *options, *words, *fio]
    code, out, err = _blksim.command(arguments, texts[0] if texts else None)
    if code == _BAD_INPUT:
        raise Error(err.strip().replace("error: ", ""))
    if code == _STALLED and (check or not out):
        raise Stall(err.strip())
    if code == _STALLED:
        _warnings.warn(err.strip(), Stall, stacklevel=4)
    elif err:
        for line in err.splitlines():
            _warnings.warn(line, stacklevel=4)
    return code, out


def _options(name, value):
    """A setting as options: lists have commas, and `set` has an option for each key."""
    option = "--" + name.rstrip("_").replace("_", "-")
    if value is None or value is False or name == "fio":
        return []
    if value is True:
        return [option]
    if name == "set":
        if isinstance(value, dict):
            return [f"{option}={key}={_values(of)}" for key, of in value.items()]
        return [f"{option}={_word(of)}" for of in _listed(value)]
    return [f"{option}={','.join(map(_word, _listed(value)))}"]


def _values(value):
    """Values of a key: texts with a comma are quoted, so that they stay one."""
    of = [_word(one) for one in _listed(value)]
    return ",".join(f'"{one}"' if "," in one and one[0] not in "\"'[" else one for one in of)


def _word(value):
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, _numbers.Number) else _os.fspath(value)


def _listed(value):
    """The values of what may be one or several."""
    if isinstance(value, (str, bytes, dict, _os.PathLike)) or not hasattr(value, "__iter__"):
        return [value]
    return [*value]


def _text_of(scenario):
    """The text, if it is one and neither a name nor a path."""
    if isinstance(scenario, dict):
        try:
            return _blksim.toml_of(_json.dumps(scenario))
        except (TypeError, ValueError) as error:
            raise Error(str(error)) from None
    return scenario if isinstance(scenario, str) and "\n" in scenario else None


# Columns that are not whole numbers; a column of neither kind is a varied setting, or whole.
_FLOATS = """
    iops iops_low iops_high clat_mean_ns clat_mean_low_ns clat_mean_high_ns
    clat_p50_low_ns clat_p50_high_ns clat_p99_low_ns clat_p99_high_ns clat_p99_9_low_ns
    clat_p99_9_high_ns usr_cpu sys_cpu cpu_busy lock_wait worst_lock_wait_share device_depth_mean
    mean_ns mean_percent p99_percent value half difference difference_half measured simulated
"""
_TEXTS = """
    scenario rules machine scheduler device outcome job direction worst_lock capture from pace column
    group choice kind name span variant measure difference_unit unit run figure
"""
_BOOLS = "mean_differs p99_differs"
_VERDICT = [
    ("capture", _arrow.string()),
    ("rules", _arrow.string()),
    ("scheduler", _arrow.string()),
    ("mode", _arrow.string()),
    ("total", _arrow.int64()),
    ("predicted", _arrow.int64()),
    ("diverged", _arrow.int64()),
    ("unjudged", _arrow.int64()),
    ("conforms", _arrow.bool_()),
]
_READ = _csv.ReadOptions(use_threads=False, block_size=1 << 28)
_CONVERT = _csv.ConvertOptions(
    column_types={
        **dict.fromkeys(_FLOATS.split(), _arrow.float64()),
        **dict.fromkeys(_TEXTS.split(), _arrow.string()),
        **dict.fromkeys(_BOOLS.split(), _arrow.bool_()),
    },
    null_values=[""],
    strings_can_be_null=True,
    true_values=["true"],
    false_values=["false"],
)


def _table(answer):
    """The table of a command's CSV."""
    _, out = answer
    return _csv.read_csv(_arrow.py_buffer(out), _READ, convert_options=_CONVERT)
