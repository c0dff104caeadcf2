"""What the API says when it says no: an HTTP status with a Kubernetes Status object."""

from __future__ import annotations

from typing import Any, Final

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class ApiFailure(Exception):
    """A refused request. `code` is the HTTP status, `reason` the word for machines."""

    def __init__(
        self, code: int, message: str, *, reason: str = "", details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "Unknown")
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """The Status object that goes over the wire."""
        found: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            found["details"] = self.details
        return found


def not_found(plural: str, name: str, group: str = "") -> ApiFailure:
    """404 as the API server words it."""
    kind = f"{plural}.{group}" if group else plural
    return ApiFailure(
        404, f'{kind} "{name}" not found', details={"name": name, "group": group, "kind": plural}
    )


def already_exists(plural: str, name: str, group: str = "") -> ApiFailure:
    """409 on create."""
    kind = f"{plural}.{group}" if group else plural
    return ApiFailure(
        409,
        f'{kind} "{name}" already exists',
        reason="AlreadyExists",
        details={"name": name, "group": group, "kind": plural},
    )


def conflict(plural: str, name: str, group: str = "") -> ApiFailure:
    """409 on update with an old resourceVersion."""
    kind = f"{plural}.{group}" if group else plural
    return ApiFailure(
        409,
        f'Operation cannot be fulfilled on {kind} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        details={"name": name, "group": group, "kind": plural},
    )


def invalid(kind: str, name: str, field: str, problem: str) -> ApiFailure:
    """422 with the field that is wrong."""
    return ApiFailure(
        422,
        f'{kind} "{name}" is invalid: {field}: {problem}',
        details={"name": name, "kind": kind, "causes": [{"message": problem, "field": field}]},
    )


def without_version(kind: str, group: str, name: str) -> ApiFailure:
    """422 on an update that does not say which state it changes, where the kind wants that."""
    qualified = f"{kind}.{group}" if group else kind
    problem = "Invalid value: 0: must be specified for an update"
    return ApiFailure(
        422,
        f'{qualified} "{name}" is invalid: metadata.resourceVersion: {problem}',
        details={
            "name": name,
            "group": group,
            "kind": kind,
            "causes": [
                {"reason": "FieldValueInvalid", "message": problem, "field": "metadata.resourceVersion"}
            ],
        },
    )
