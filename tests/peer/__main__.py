"""A room as a process: `python -m tests.peer FILE` reads its plan from FILE, and says ports and places on a line.

Each line that comes in is answered by one that says what is left behind; the end of the input ends the process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.peer.room import Room, RoomPlan


def main(file: Path) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    plan = RoomPlan(data["version"], tuple(data["steps"]), data["taint"], data["nodes"])
    with Room(plan) as room:
        kubeconfig, authority = file.with_name("kubeconfig"), file.with_name("ca.crt")
        room.write_kubeconfig(kubeconfig)
        authority.write_text(room.authority, encoding="ascii")
        print(json.dumps(room.ports), flush=True)
        for _ in sys.stdin:
            print(json.dumps(room.left()), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
