"""What imports what: no circle, in the tool or in the lab, not even one that an import inside a function hides."""

from __future__ import annotations

from collections.abc import Iterator

import grimp


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """The sets of modules that import each other, directly or through others (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []

    def enter(module: str) -> Iterator[str]:
        number[module] = lowest[module] = len(number)
        open_.append(module)
        return iter(sorted(graph.find_modules_directly_imported_by(module)))

    def leave(module: str) -> None:
        if lowest[module] != number[module]:
            return
        at = open_.index(module)
        if len(open_) - at > 1:
            found.append(sorted(open_[at:]))
        del open_[at:]

    for start in sorted(graph.modules):
        way = [] if start in number else [(start, enter(start))]
        while way:
            module, rest = way[-1]
            for imported in rest:
                if imported not in number:
                    way.append((imported, enter(imported)))
                    break
                if imported in open_:
                    lowest[module] = min(lowest[module], number[imported])
            else:
                way.pop()
                leave(module)
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[module])
    return found


def test_no_module_imports_itself_by_way_of_others():
    """Imports for type checkers alone do not count: they are not made when the program runs."""
    graph = grimp.build_graph("winboot", "winboot_lab", exclude_type_checking_imports=True, cache_dir=None)

    assert circles(graph) == []


def test_a_circle_is_found_wherever_it_begins():
    graph = grimp.ImportGraph()
    for importer, imported in ("ab", "bc", "cb", "cd", "de", "ed", "da"):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c", "d", "e"]]

    graph.remove_import(importer="d", imported="a")
    assert sorted(circles(graph)) == [["b", "c"], ["d", "e"]]
