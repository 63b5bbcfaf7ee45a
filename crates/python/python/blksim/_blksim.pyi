from collections.abc import Sequence

def command(arguments: Sequence[str], input: str | None) -> tuple[int, bytes, str]:
    """Does a command: its exit code, its standard output and its standard error."""

def toml_of(json: str) -> str:
    """The TOML of a JSON object."""
