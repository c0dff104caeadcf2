"""Where a secret is. The value itself never stands in a file of ours."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pydantic import Field, model_validator

from winboot.errors import InvalidInput
from winboot.model import LocalPath, Model
from winboot.secret import Secret
from winboot.source import Wrong


class Reference(Model):
    """Where a secret is; exactly one of `env`, `file`, `command`."""

    env: str | None = Field(default=None, description="the name of an environment variable here")
    file: LocalPath | None = Field(default=None, description="a file here; relative to the file that says so")
    command: tuple[str, ...] | None = Field(
        default=None, description="a program and its arguments; its output is the value"
    )

    @model_validator(mode="before")
    @classmethod
    def _is_a_reference(cls, value: object) -> object:
        if isinstance(value, str):
            raise Wrong(
                "found the value itself",
                expected="a reference: {env: NAME}, {file: PATH} or {command: [...]}",
            )
        return value

    @model_validator(mode="after")
    def _names_one_place(self) -> Reference:
        named = [one for one in (self.env, self.file, self.command) if one]
        if len(named) != 1:
            raise Wrong(f"{len(named)} places are named", expected="exactly one of env, file, command")
        return self

    def read(self, owner: str) -> Secret:
        """The secret, read now. `owner` says for whom (`win-a1: connection.password`) where that fails."""
        if self.env is not None:
            return Secret(self._from_environment(self.env, owner))
        if self.file is not None:
            return Secret(_file_text(self.file, owner).rstrip("\r\n"))
        return Secret(_output(self.command or (), owner).rstrip("\r\n"))

    @staticmethod
    def _from_environment(name: str, owner: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise InvalidInput(
                f"{owner}: the environment variable {name} is not set",
                hint=f"Set {name} in the environment that starts winboot, or name another place in the file.",
            )
        return value

    def __str__(self) -> str:
        if self.env is not None:
            return f"env {self.env}"
        return f"file {self.file}" if self.file is not None else f"command {' '.join(self.command or ())}"


def _file_text(path: Path, owner: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{owner}: {path} cannot be read ({error})", hint="Check the path.") from error


def _output(command: tuple[str, ...], owner: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        # The program's own output is left out: it may hold the secret.
        raise InvalidInput(
            f"{owner}: the command {command[0]} gave no value ({type(error).__name__})",
            hint="Run the command by hand and look at its exit code.",
        ) from error
    return done.stdout
