"""Where a secret is. The value itself is never in one of our files."""

from __future__ import annotations

import os
import re
import subprocess
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from pydantic import Field, PrivateAttr, field_validator, model_validator

from winboot.base.errors import InvalidInput
from winboot.base.secret import Secret
from winboot.config.model import LocalPath, Model
from winboot.config.source import Wrong


class Reference(Model):
    """Where a secret is; exactly one of `env`, `file`, `command`."""

    env: str | None = Field(default=None, description="the name of an environment variable of winboot")
    file: LocalPath | None = Field(default=None, description="a file, relative to the file with this key")
    command: tuple[str, ...] | None = Field(
        default=None, description="a program and its arguments; the program's output is the value"
    )

    @model_validator(mode="before")
    @classmethod
    def _is_a_reference(cls, value: object) -> object:
        if isinstance(value, str):
            raise Wrong(
                "found the secret itself instead of a reference",
                expected="a reference: {env: NAME}, {file: PATH} or {command: [...]}",
            )
        return value

    @model_validator(mode="after")
    def _names_one_place(self) -> Reference:
        named = [one for one in (self.env, self.file, self.command) if one]
        if len(named) != 1:
            raise Wrong(f"found {len(named)} of these keys", expected="exactly one of env, file, command")
        return self

    @field_validator("env", mode="after")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        # What a shell can export (POSIX, Base Definitions 8.1), and the dots and dashes that containers bring.
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", value):
            raise Wrong(
                "this is not the name of a variable",
                expected="the name of an environment variable, such as WINBOOT_PASSWORD",
            )
        return value

    @field_validator("file", mode="before")
    @classmethod
    def _names_a_file(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise Wrong("the path is empty", expected="the path of a file on winboot's computer")
        return value

    @property
    def instance_key(self) -> Path | None:
        """The private key that a cloud's password for this machine is decrypted with; None where it is missing."""
        return None

    def read(self, owner: str) -> Secret:
        """The secret, read now. `owner` names the owner (`win-a1: connection.password`) where that fails."""
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
                hint=f"Set {name} in winboot's environment, or change the reference in the file.",
            )
        return value

    def __str__(self) -> str:
        if self.env is not None:
            return f"env {self.env}"
        return f"file {self.file}" if self.file is not None else f"command {' '.join(self.command or ())}"


class LoginReference(Reference):
    """Where the password of a machine is: a reference, or what EC2 made for the instance (`ec2_key`)."""

    ec2_key: LocalPath | None = Field(
        default=None, description="the private key that decrypts the instance's password from EC2"
    )

    @model_validator(mode="after")
    def _names_one_place(self) -> LoginReference:
        named = [one for one in (self.env, self.file, self.command, self.ec2_key) if one]
        if len(named) != 1:
            raise Wrong(
                f"found {len(named)} of these keys", expected="exactly one of env, file, command, ec2_key"
            )
        return self

    @property
    def instance_key(self) -> Path | None:
        """`ec2_key`."""
        return self.ec2_key

    def read(self, owner: str) -> Secret:
        """The secret; `winboot.remote.cloud` requests an EC2 password, not this."""
        if self.ec2_key is None:
            return one_line(super().read(owner), owner, self)
        raise InvalidInput(
            f"{owner}: winboot cannot ask EC2 for the password: the machine has no provider id",
            hint="Give the machine `provider_id: aws:///ZONE/INSTANCE`, or use an inventory `*.aws.yaml`.",
        )

    def __str__(self) -> str:
        return f"EC2, with the key {self.ec2_key}" if self.ec2_key is not None else super().__str__()


class Held(LoginReference):
    """A secret that was fetched already. It is in no file, and is made only by `of`."""

    _secret: Secret = PrivateAttr()

    @model_validator(mode="after")
    def _names_one_place(self) -> Held:
        return self

    @classmethod
    def of(cls, secret: Secret) -> Held:
        """A reference that gives this secret."""
        made = cls()
        made._secret = secret
        return made

    def read(self, owner: str) -> Secret:
        """The secret."""
        return self._secret

    def __str__(self) -> str:
        return "a fetched value"


def one_line(secret: Secret, owner: str, where: Reference) -> Secret:
    """The secret if it is one line. Raises InvalidInput otherwise: no password has a line break."""
    lines = len(secret.reveal().splitlines())
    if lines > 1:
        raise InvalidInput(
            f"{owner}: {where} has {lines} lines; a password is one line",
            hint="Remove all but the line with the password.",
        )
    return secret


def _file_text(path: Path, owner: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{owner}: {path} cannot be read ({error})", hint="Check the path.") from error
    # PowerShell 5.1 writes UTF-16 with a byte-order mark by `>`, and UTF-8 with one by Set-Content -Encoding UTF8.
    encoding = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        # The decoder's own message has a byte of the secret, and so has its traceback.
        raise InvalidInput(
            f"{owner}: {path} is not UTF-8 text", hint="Save the file as UTF-8 without a byte-order mark."
        ) from None


def _output(command: tuple[str, ...], owner: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        # The program's own output is left out: it may hold the secret.
        raise InvalidInput(
            f"{owner}: the command {command[0]} printed no value ({type(error).__name__})",
            hint="Run the command by hand and check its output and exit code.",
        ) from error
    return done.stdout
