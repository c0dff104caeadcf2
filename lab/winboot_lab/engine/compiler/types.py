"""Type names in a script: resolved when they are first needed, because a type that does not exist is a run-time error."""

from __future__ import annotations

from collections.abc import Callable

from winboot_lab.engine.dotnet import DotNetType
from winboot_lab.engine.exceptions import RuntimeException
from winboot_lab.engine.refusal import Refusal
from winboot_lab.engine.scopes import Scope
from winboot_lab.engine.typenames import find_type
from winboot_lab.language.syntax import TypeName


def resolve_type(scope: Scope, name: TypeName) -> DotNetType:
    """The type a name means here, `using namespace` included. Raises TypeNotFound or a Refusal."""
    text = name.full
    own = scope.session.types.get(text.lower())
    if own is not None:
        return own
    try:
        return find_type(text)
    except (RuntimeException, Refusal) as failure:
        for namespace in scope.session.namespaces:
            try:
                return find_type(f"{namespace}.{text}")
            except (RuntimeException, Refusal):
                continue
        if isinstance(failure, Refusal):
            failure.at(*name.extent.position)
        raise


def type_getter(name: TypeName) -> Callable[[Scope], DotNetType]:
    """Code that gives the type, looked up once."""
    known: list[DotNetType] = []

    def get(scope: Scope) -> DotNetType:
        if not known:
            found = resolve_type(scope, name)
            if scope.session.types:
                return found
            known.append(found)
        return known[0]

    return get
