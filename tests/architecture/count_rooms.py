# SPDX-License-Identifier: Apache-2.0
"""Counts the layout of nndeploy/: rooms, arrows between them, floors, circles, loose files.

    python tests/architecture/count_rooms.py [FOLDER]        FOLDER: another tree of the project

A room is a folder of nndeploy/ or a file beside them; an arrow leads from a room to one that it imports from, imports
for types counted. Floors are the longest way down. A circle is a set of modules that import each other.
"""

import ast
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path


def modules_of(root: Path) -> dict[str, Path]:
    """Returns every module of nndeploy/ by its dotted name."""
    found = {}
    for path in sorted((root / "nndeploy").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def nodes_of(path: Path) -> Iterable[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def imports_of(modules: dict[str, Path], nodes: Callable[[Path], Iterable[ast.AST]] = nodes_of) -> dict[str, set[str]]:
    """Returns for each module the modules of nndeploy/ that it imports, wherever in it."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        named = set[str]()
        for node in nodes(path):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                named |= (inner & modules.keys()) or {node.module}
        found[name] = (named & modules.keys()) - {name}
    return found


def room_of(module: str) -> str:
    """Returns the folder of nndeploy/ that a module lies in, or its own name."""
    return ".".join(module.split(".")[:2])


def circles_of(graph: dict[str, set[str]]) -> list[set[str]]:
    """Returns the sets of nodes that reach each other."""
    reach = {start: _reached(graph, start) for start in graph}
    circles = {frozenset(other for other in reach[one] if one in reach[other]) for one in graph if one in reach[one]}
    return [set(circle) for circle in circles]


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, waiting = set[str](), [*graph[start]]
    while waiting:
        if (node := waiting.pop()) not in seen:
            seen.add(node)
            waiting += graph.get(node, ())
    return seen


def main() -> None:
    """Prints the counts."""
    root = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).resolve().parents[2])
    modules = modules_of(root)
    imports = imports_of(modules)
    rooms: dict[str, set[str]] = {room_of(name): set() for name in modules if name != "nndeploy"}
    for name, others in imports.items():
        if name != "nndeploy":  # the door leads everywhere
            rooms[room_of(name)] |= {room_of(other) for other in others if other != "nndeploy"} - {room_of(name)}
    room_circles = circles_of(rooms)

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(other) for other in rooms[room]), default=0)

    loose = [room for room in rooms if modules[room].name != "__init__.py"]
    largest = max(rooms, key=lambda room: sum(room_of(name) == room for name in modules))
    print(f"modules {len(modules)}, rooms {len(rooms)}, of these loose files {len(loose)}")
    print(f"arrows {sum(map(len, rooms.values()))}, floors {floor('nndeploy.__main__') if not room_circles else '-'}")
    print(f"circles of modules {len(circles_of(imports))}, of rooms {len(room_circles)}")
    print(f"the largest room {largest}, {sum(room_of(name) == largest for name in modules)} modules")


if __name__ == "__main__":
    main()
