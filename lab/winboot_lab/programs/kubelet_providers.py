"""The kubelet's image credential providers, as far as its start depends on them: pkg/credentialprovider/plugin of
kubernetes, RegisterCredentialProviderPlugins (plugin.go) and validateCredentialProviderConfig (config.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from winboot.config.compat.version import Version
from winboot_lab.programs.base import GoError, Run
from winboot_lab.programs.settings import Settings

GROUP: Final = "kubelet.config.k8s.io"
# The forms that each minor reads (KEP-2133, graduation); v1alpha1 stays readable.
_FORMS: Final = {"v1alpha1": "1.20", "v1beta1": "1.24", "v1": "1.26"}


class ProviderError(GoError):
    """What ends the kubelet with "Failed to register CRI auth plugins" (NewKubeGenericRuntimeManager)."""


def register_providers(run: Run, settings: Settings) -> None:
    """Raises ProviderError where the kubelet would end because of its providers."""
    folder = settings.flags.text("image-credential-provider-bin-dir")
    file = settings.flags.text("image-credential-provider-config")
    if not folder and not file:
        return
    if not run.machine.files.is_directory(run.path(folder)):
        raise ProviderError(f"plugin binary directory {folder} did not exist")
    config = _read(run, file)
    problems = list(_problems(config, Version.parse(run.version)))
    if problems:
        raise ProviderError(f"failed to validate credential provider config: [{', '.join(problems)}]")
    for provider in config["providers"]:
        # exec.LookPath takes a name with an extension as it is, and tries those of PATHEXT for one without.
        path = rf"{folder}\{provider['name']}"
        if not any(run.exists(one) for one in (path, f"{path}.exe")):
            raise ProviderError("plugin binary executable  did not exist")


def _read(run: Run, file: str) -> Mapping[str, Any]:
    if not run.exists(file):
        raise ProviderError(f'unable to access path "{file}": The system cannot find the file specified.')
    config = yaml.safe_load(run.read(file).decode("utf-8"))
    group, _, form = str(config.get("apiVersion")).partition("/")
    if config.get("kind") != "CredentialProviderConfig" or group != GROUP or form not in _FORMS:
        raise ProviderError(f'error decoding config "{file}": no kind {config.get("kind")!r} is registered')
    if not Version.parse(run.version).at_least(_FORMS[form]):
        raise ProviderError(
            f'error decoding config "{file}": no kind is registered for version "{group}/{form}"'
        )
    return dict(config)


def _problems(config: Mapping[str, Any], version: Version) -> Iterator[str]:
    if not config.get("providers"):
        yield "providers: Required value: at least 1 item in plugins is required"
    seen: set[str] = set()
    for provider in config.get("providers") or ():
        name, form = str(provider.get("name")), str(provider.get("apiVersion")).rpartition("/")[2]
        if "/" in name or " " in name or name in (".", ".."):
            yield f'providers.name: Invalid value: "{name}"'
        if name in seen:
            yield f'providers.name: Duplicate value: "{name}"'
        seen.add(name)
        if form not in _FORMS or not version.at_least(_FORMS[form]):
            yield f'providers.apiVersion: Unsupported value: "{provider.get("apiVersion")}"'
        if not provider.get("matchImages"):
            yield "providers.matchImages: Required value: at least 1 item in matchImages is required"
        if not provider.get("defaultCacheDuration"):
            yield "providers.defaultCacheDuration: Required value"
