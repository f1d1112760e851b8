"""What Linux tells of a process, as far as it is needed to know one again (proc(5))."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Stat:
    """Fields of /proc/<pid>/stat.

    Attributes:
        state: `R`, `S`, `T` (stopped), `Z` (zombie) and so on.
        session: id of its session.
        start_ticks: start time in clock ticks since boot.
    """

    state: str
    session: int
    start_ticks: int


def stat_of(pid: int) -> Stat | None:
    """Return the state of a process, or None when there is none with that id."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything.
    fields = text.rpartition(")")[2].split()
    return Stat(state=fields[0], session=int(fields[3]), start_ticks=int(fields[19]))


def boot_id() -> str:
    """Return what is different after each boot, when start times count anew."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
