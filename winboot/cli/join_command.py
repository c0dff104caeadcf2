"""`winboot init --join-command -` and `--join-file`: profile and token from a kubeadm command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from winboot.base.errors import ClusterError, InvalidInput, UsageError
from winboot.base.secret import Secret
from winboot.config.source import decoded, read_standard_input

if TYPE_CHECKING:
    from winboot.cli.detect import Found
    from winboot.config.join_command import JoinCommand

TOKEN_FILE: Final = "bootstrap-token"
# A line has 200 characters, a file of kubeadm a few thousand.
_MOST: Final = 1 << 16


def read(line: str | None, file: Path | None) -> JoinCommand | None:
    """What --join-command or --join-file gives; None where neither is there. Raises UsageError and InvalidInput."""
    from winboot.config.join_command import is_configuration, of_configuration, of_line

    if line is not None and file is not None:
        raise UsageError("--join-command and --join-file do not go together", hint="Give one of them.")
    if line not in (None, "-"):
        raise UsageError(
            "`--join-command` accepts only `-` (standard input): every user of this computer can read arguments, and the join "
            "command contains a token",
            hint="Pipe the output of `kubeadm token create --print-join-command` into `winboot init --join-command -`.",
        )
    if line is None and file is None:
        return None
    origin, text = ("standard input", _standard_input()) if file is None else (str(file), _file(file))
    command = of_configuration(text, origin) if is_configuration(text) else of_line(text, origin)
    for one in command.ignored:
        typer.echo(f"warning: {one} of the join command has no effect: the profile decides it", err=True)
    return command


def _standard_input() -> Secret:
    if sys.stdin.isatty():
        typer.echo("paste the line of `kubeadm token create --print-join-command`, then Ctrl-D", err=True)
    return Secret(read_standard_input(_MOST))


def _file(path: Path) -> Secret:
    try:
        with path.expanduser().open("rb") as file:
            return Secret(decoded(file.read(_MOST)))
    except OSError as error:
        raise InvalidInput(
            f"--join-file {path} cannot be read: {error.strerror}", hint="Check the path."
        ) from error
    except UnicodeDecodeError:
        # The decoder's own message has bytes of the file.
        raise InvalidInput(f"--join-file {path} is not UTF-8 text", hint="Save it as UTF-8.") from None


def authority(command: JoinCommand, server: str) -> tuple[str, str]:
    """The PEM text of the cluster's CA and the hash that it was believed by. Raises ClusterUnreachable and ClusterError."""
    from winboot.remote.cluster.discovery import fetch_ca

    refused = None
    for ca_hash in command.ca_hashes:
        try:
            return fetch_ca(server, ca_hash), ca_hash
        except ClusterError as error:
            refused = error
    assert refused is not None
    raise refused


def detected(command: JoinCommand, server: str, ca_pem: str) -> Found:
    """What the cluster shows to the token: version, networks and DNS domain in the ConfigMap kubeadm-config, which joining
    nodes may read (cmd/kubeadm/app/phases/uploadconfig/uploadconfig.go, NodesKubeadmConfigClusterRoleName)."""
    from winboot.cli.detect import detect
    from winboot.remote.cluster.kubeconfig import Kubeconfig

    return detect(Kubeconfig.of_token(server, ca_pem, command.token, "the join command"))


def renew(command: JoinCommand, folder: Path, *, dry_run: bool) -> None:
    """Replace the token that is next to a profile of the same cluster, as its CA hash says: the profile may name another
    address of it (`--server`). Raises UsageError for another cluster."""
    from winboot.config.profile import load_profile

    cluster = load_profile(folder / "profile.yaml").cluster
    reference = cluster.bootstrap_token
    if cluster.ca_hash not in command.ca_hashes:
        raise UsageError(
            f"{folder / 'profile.yaml'} is for another cluster than the join command: {cluster.server}",
            hint="Name another --folder, or overwrite the files with --force.",
        )
    if reference == "mint" or reference.file is None:
        raise UsageError(
            f"{folder / 'profile.yaml'}: cluster.bootstrap_token names no file to write the token to",
            hint=f"Set bootstrap_token: {{file: ./{TOKEN_FILE}}}, or use --force.",
        )
    if not dry_run:
        write_token(command, reference.file)
    typer.echo(f"{'would write' if dry_run else 'wrote'} {reference.file}: the new token")


def write_token(command: JoinCommand, path: Path) -> None:
    """The token in a file that only its owner reads. Raises UsageError where it cannot be written."""
    from winboot.base.private import replace_privately

    try:
        replace_privately(path, command.token.reveal() + "\n")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="Name another --folder."
        ) from error
