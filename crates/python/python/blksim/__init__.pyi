"""Types of the settings; their meaning is in docs/reference/commands.md."""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from pyarrow import Table

Path = str | PathLike[str]
# A name from `list`, a path, the text of a scenario or of a fio job, or a scenario as a dict.
Scenario = Path | Mapping[str, Any]
Several = str | Iterable[str]
Paths = Path | Iterable[Path]
Value = str | int | float | bool
Set = Mapping[str, Value | Iterable[Value]] | Iterable[str]
# With fio's units: "100ms", "2s".
Time = str
# "1,2,4", "1..8", [1, 2, 4], range(1, 9)
Numbers = int | str | Iterable[int]

class Error(ValueError): ...
class Stall(RuntimeError, UserWarning): ...

def run(
    scenario: Scenario | Iterable[Path] | None,
    *,
    check: bool = ...,
    fio: Several | None = ...,
    scheduler: Several | None = ...,
    elevator: Paths | None = ...,
    linux: Path | None = ...,
    rules: Several | None = ...,
    machine: Paths | None = ...,
    threads: Numbers | None = ...,
    set: Set | None = ...,
    seeds: int | None = ...,
    seed: int | None = ...,
    device: str | None = ...,
    drive: Path | None = ...,
    runtime: Time | None = ...,
    ramp_time: Time | None = ...,
    precision: Several | None = ...,
    without: Several | None = ...,
    ignore_unmodelled: bool = ...,
    jobs: int | None = ...,
    json: Path | None = ...,
    html: Path | None = ...,
    blktrace: Path | None = ...,
    details: bool = ...,
    functions: bool = ...,
    trace_perfetto: Path | None = ...,
    trace_window: str | None = ...,
    schedule: Path | None = ...,
) -> Table: ...
def compare(
    scenarios: Scenario | Iterable[Scenario],
    *,
    check: bool = ...,
    scheduler: Several | None = ...,
    elevator: Paths | None = ...,
    linux: Path | None = ...,
    rules: Several | None = ...,
    machine: Paths | None = ...,
    threads: Numbers | None = ...,
    set: Set | None = ...,
    seeds: int | None = ...,
    seed: int | None = ...,
    device: str | None = ...,
    drive: Path | None = ...,
    runtime: Time | None = ...,
    ramp_time: Time | None = ...,
    precision: Several | None = ...,
    without: Several | None = ...,
    ignore_unmodelled: bool = ...,
    jobs: int | None = ...,
    json: Path | None = ...,
    html: Path | None = ...,
) -> Table: ...
def replay(
    capture: Paths,
    *,
    trace_device: str | None = ...,
    format: str | None = ...,
    salvage: bool = ...,
    strict: bool = ...,
    json: Path | None = ...,
    html: Path | None = ...,
    device: str | None = ...,
    machine: Path | None = ...,
    rules: str | None = ...,
    set: Set | None = ...,
    seed: int | None = ...,
    scheduler: Several | None = ...,
    from_: str = ...,
    closed_loop: bool = ...,
) -> Table: ...
def what_if(
    capture: Paths,
    *,
    trace_device: str | None = ...,
    format: str | None = ...,
    salvage: bool = ...,
    strict: bool = ...,
    json: Path | None = ...,
    html: Path | None = ...,
    device: str | None = ...,
    machine: Path | None = ...,
    rules: str | None = ...,
    set: Set | None = ...,
    seed: int | None = ...,
    scheduler: Several | None = ...,
    fit: bool = ...,
    write_fit: Path | None = ...,
    tune: bool = ...,
    open_loop: bool = ...,
    seeds: int | None = ...,
    jobs: int | None = ...,
) -> Table: ...
def analyze(
    files: Paths,
    *,
    trace_device: str | None = ...,
    format: str | None = ...,
    salvage: bool = ...,
    strict: bool = ...,
    json: Path | None = ...,
    html: Path | None = ...,
    parquet: Path | None = ...,
    plot: Path | None = ...,
) -> Table: ...
def conform(
    captures: Paths,
    *,
    mode: str | None = ...,
    trace_device: str | None = ...,
    rules: str | None = ...,
    rotational_when_chosen: int | None = ...,
    decided_before: int | None = ...,
    decided_after: int | None = ...,
    exits_after: int | None = ...,
    json: Path | None = ...,
) -> Table: ...
def calibrate(
    file: Path,
    *,
    base: str | None = ...,
    run: str | None = ...,
    set: Set | None = ...,
    iops: float | None = ...,
    busy_cpus: float | None = ...,
    clock_mhz: int | None = ...,
    name: str | None = ...,
    symbols: Path | None = ...,
    output: Path | None = ...,
    jobs: int | None = ...,
) -> Table: ...
def sweep(
    file: Path,
    output: Path | None = ...,
    *,
    client: Any | None = ...,
    shards: int | None = ...,
    check: bool = ...,
    engine: str = ...,
    sbatch: str | None = ...,
    jobs: int | None = ...,
) -> Table: ...
def report(command: str, *inputs: Scenario | None, **settings: Any) -> Any: ...
def list() -> dict[str, Any]: ...
def show(name: str) -> str: ...
