"""The file of a cloud inventory (`pool.aws.yaml`): which machines, what they are called, which groups they are in.

The words are those of Ansible's plugins aws_ec2 and azure_rm, so that you can reuse their files. `profile`,
`defaults` and `settings` are winboot's own, in the form of its static inventory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from winboot.base.errors import InvalidInput
from winboot.config.inventory.cloud_name import ProviderName, provider_of
from winboot.config.model import Model, OneOrMany, build, expanded, is_file
from winboot.config.source import Complaint, Table, Wrong, in_order, locate, read
from winboot.remote.cloud.base import Query

# What a static inventory calls the group that every machine is in: Ansible's plugins name it after themselves.
BASE_GROUP: Final[dict[ProviderName, str]] = {"aws": "aws_ec2", "azure": "azure"}


class KeyedGroup(Model):
    """Groups from a value: `{key: placement.region, prefix: region}` gives region_eu_west_1."""

    key: str = Field(description="an expression; text, a list or a map becomes one group or several")
    prefix: str = Field(default="", description="what the group's name starts with")
    separator: str = Field(default="_", description="between prefix and value")
    default_value: str | None = Field(default=None, description="instead of an empty value")
    parent_group: str | None = Field(default=None, description="a group that has them all as members")


class HostName(Model):
    """One way to name a machine; the first that gives a name is taken."""

    name: str = Field(
        description="node-name | tag:NAME | private-dns-name | private-ip-address | instance-id …"
    )
    prefix: str | None = Field(default=None, description="another of these words, put in front")
    separator: str = Field(default="_", description="between prefix and name")


def _host_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _condition(value: Any) -> Any:
    if not isinstance(value, str):
        raise Wrong("found no expression", expected="a condition; what a group sets belongs under `settings`")
    return str(value)


_HostName = Annotated[HostName, BeforeValidator(_host_name)]
_Condition = Annotated[str, BeforeValidator(_condition)]


class CloudFile(Model):
    """What both clouds' files have in common."""

    elsewhere: ClassVar[dict[str, str]] = {
        "use_contrib_script_compatible_sanitization": "nothing: group names have letters, digits and _",
        "cache_plugin": "nothing: the cache is a file below the state folder",
        "hostvars_prefix": "nothing: the words of `compose` are its own names",
        "allow_duplicated_hosts": "nothing: a machine has one name",
    }

    plugin: str = Field(default="", description="Ansible's name of its plugin; only checked")
    cluster: str = Field(default="", description="the cluster's name in the tag kubernetes.io/cluster/NAME")
    platform: Literal["windows", "any"] = Field(default="windows", description="windows | any")
    hostnames: tuple[_HostName, ...] = Field(
        default=(), description="how machines are named; default: [node-name]"
    )
    compose: dict[str, str] = Field(default={}, description="variables from expressions: {os: tags.os}")
    groups: dict[str, _Condition] = Field(
        default={}, description="groups from conditions: {gpu: \"'g4' in instance_type\"}"
    )
    keyed_groups: tuple[KeyedGroup, ...] = Field(default=(), description="groups from values")
    strict: bool = Field(default=False, description="an expression that fails is an error, not a warning")
    cache: bool = Field(
        default=False, description="answer from the cache while it is younger than cache_timeout"
    )
    cache_timeout: int = Field(default=3600, ge=0, description="seconds")
    profile: str | None = Field(default=None, description="the path of the profile that every machine gets")
    defaults: Any = Field(
        default=None, description="as in an inventory: os, connection, sections of the profile"
    )
    routes: Literal["auto", "winboot", "none"] = Field(
        default="none",
        description="what routes to pods: winboot; auto: winboot unless a route controller does; none",
    )
    settings: Any = Field(
        default=None, description="per group what it sets: {region_eu: {os: …, connection: …}}"
    )

    # What each cloud's file answers for itself.

    def connection(self) -> dict[str, Any]:
        """The settings that `winboot.remote.cloud.connect` takes."""
        raise NotImplementedError

    def queries(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """What to ask for; with `ids`, only those of them that the file means."""
        raise NotImplementedError

    def excluded(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """What to leave out of the answers."""
        return ()

    def owns(self, tags: Mapping[str, str]) -> bool:
        """Whether a machine with these tags is the cluster's: decided by the answer, whatever the query was."""
        return True

    def contradictions(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Keys of the file that mean other machines than `cluster` does, and what each says."""
        yield from ()

    @property
    def chooses_states(self) -> bool:
        """Whether its filters say in which state a machine must be."""
        return False

    @property
    def forgives_refusals(self) -> bool:
        """Whether a query that the cloud refuses is left out with a warning."""
        return False

    @property
    def names(self) -> tuple[HostName, ...]:
        """The ways to name a machine, in order."""
        return self.hostnames or (HostName(name="node-name"),)


def _filters(value: Any) -> Any:
    """`{name: value}` or `{name: [values]}`: values are text for the API, whatever YAML makes of them."""
    if not isinstance(value, Mapping):
        return value
    return {
        str(name): tuple(str(one) for one in (given if isinstance(given, list | tuple) else [given]))
        for name, given in value.items()
    }


_Filters = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_filters)]


_CLUSTER_TAG: Final = "kubernetes.io/cluster/"


class AwsFile(CloudFile):
    """`*.aws.yaml`."""

    elsewhere: ClassVar[dict[str, str]] = {
        **CloudFile.elsewhere,
        "boto_profile": "aws_profile",
        **dict.fromkeys(
            ("access_key", "aws_access_key", "secret_key", "aws_secret_key", "session_token"),
            "nothing: credentials come from the environment, a profile or a role",
        ),
        "use_ssm_inventory": "nothing: winboot asks EC2 alone",
    }

    regions: OneOrMany[str] = Field(
        default=(), description="the regions to ask; default: that of the session"
    )
    aws_profile: str | None = Field(default=None, description="a profile of ~/.aws/config")
    filters: _Filters = Field(default={}, description="filters of DescribeInstances: {tag:pool: windows}")
    include_filters: tuple[_Filters, ...] = Field(
        default=(), description="more queries; their machines are added"
    )
    exclude_filters: tuple[_Filters, ...] = Field(
        default=(), description="queries; their machines are left out"
    )
    strict_permissions: bool = Field(default=True, description="false: a region that refuses is a warning")
    routes: Literal["auto", "winboot", "none"] = Field(
        default="auto",
        description="source/destination check and routes to pods: winboot; auto: winboot unless a route controller does; none",
    )

    def connection(self) -> dict[str, Any]:
        """Regions, profile and the cluster's tag."""
        return {"regions": tuple(self.regions), "profile": self.aws_profile, "cluster": self.cluster}

    def queries(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """One for `filters`, and one for each of `include_filters`; the cluster's tag holds in all of them."""
        asked = (self.filters, *self.include_filters) if self.filters else self.include_filters or ({},)
        return tuple(Query(ids=ids, filters={**self._own(filters), **filters}) for filters in asked)

    def _own(self, filters: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The cluster's tag as a filter that the file's own filters leave room for: one name is in a query once."""
        if not self.cluster:
            return {}
        return {f"tag:{self.tag}": ("*",)} if "tag-key" in filters else {"tag-key": (self.tag,)}

    @property
    def tag(self) -> str:
        """The key of the cluster's tag."""
        return f"{_CLUSTER_TAG}{self.cluster}"

    def owns(self, tags: Mapping[str, str]) -> bool:
        """By the tag kubernetes.io/cluster/NAME."""
        return not self.cluster or self.tag in tags

    def contradictions(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Filters that ask for another cluster's tag."""
        wheres: list[tuple[tuple[str | int, ...], Mapping[str, tuple[str, ...]]]] = [
            (("filters",), self.filters),
            *((("include_filters", at), one) for at, one in enumerate(self.include_filters)),
        ]
        for path, filters in wheres if self.cluster else ():
            for name, values in filters.items():
                keys = values if name == "tag-key" else (name.removeprefix("tag:"),)
                others = [one for one in keys if one.startswith(_CLUSTER_TAG) and one != self.tag]
                if others and self.tag not in keys:
                    yield (*path, name), others[0]

    def excluded(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """The machines of `exclude_filters`."""
        return tuple(Query(ids=ids, filters=filters) for filters in self.exclude_filters)

    @property
    def chooses_states(self) -> bool:
        """Whether the filters name states."""
        return any("instance-state-name" in filters for filters in (self.filters, *self.include_filters))

    @property
    def forgives_refusals(self) -> bool:
        """`strict_permissions: false`."""
        return not self.strict_permissions


_MACHINE: Final = "Microsoft.Compute/virtualMachines"
_INSTANCE: Final = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"


class AzureFile(CloudFile):
    """`*.azure.yaml`."""

    elsewhere: ClassVar[dict[str, str]] = {
        **CloudFile.elsewhere,
        "auth_source": "nothing: environment, workload identity, managed identity or `az login`, the first that answers",
        "client_id": "nothing: credentials come from the environment, an identity or `az login`",
        "secret": "nothing: credentials come from the environment, an identity or `az login`",
        "exclude_host_filters": "exclude_filters",
        "include_host_filters": "filters",
        "hostvar_expressions": "compose",
        "conditional_groups": "groups",
        "plain_host_names": "nothing: names are those of `hostnames`",
    }

    routes: Literal["none"] = Field(
        default="none", description="none: the cloud controller manager writes Azure's route tables"
    )
    subscription_id: str = Field(default="", description="default: AZURE_SUBSCRIPTION_ID")
    include_vm_resource_groups: OneOrMany[str] = Field(
        default=("*",), description="resource groups of virtual machines and Flexible scale sets; * is all"
    )
    include_vmss_resource_groups: OneOrMany[str] = Field(
        default=("*",), description="resource groups of Uniform scale sets; * is all"
    )
    filters: _Filters = Field(default={}, description="words of azure_rm, and tags: {tag:pool: windows}")
    exclude_filters: tuple[_Filters, ...] = Field(
        default=(), description="filters of machines that are left out"
    )

    def connection(self) -> dict[str, Any]:
        """The subscription."""
        return {"subscription": self.subscription_id}

    def queries(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """One for both kinds of machines where their resource groups are the same, else one for each kind."""
        machines, instances = (
            _groups(self.include_vm_resource_groups),
            _groups(self.include_vmss_resource_groups),
        )
        if machines == instances:
            return (Query(ids, self.filters, machines),)
        return (
            Query(ids, {**self.filters, "resource_type": (_MACHINE,)}, machines),
            Query(ids, {**self.filters, "resource_type": (_INSTANCE,)}, instances),
        )

    def excluded(self, ids: tuple[str, ...] = ()) -> tuple[Query, ...]:
        """The machines of `exclude_filters`."""
        return tuple(Query(ids=ids, filters=filters) for filters in self.exclude_filters)

    @property
    def chooses_states(self) -> bool:
        """Whether the filters name states."""
        return "powerstate" in self.filters


def _groups(named: tuple[str, ...]) -> tuple[str, ...]:
    return () if "*" in named else tuple(sorted(one.lower() for one in named))


MODELS: Final[dict[ProviderName, type[CloudFile]]] = {"aws": AwsFile, "azure": AzureFile}


def read_cloud_file(path: Path) -> tuple[CloudFile, Table]:
    """The settings of a cloud inventory and its nodes. Raises InvalidInput with every complaint."""
    provider = provider_of(path)
    assert provider is not None
    top = read(path)
    file, complaints = build(MODELS[provider], top)
    if file is None:
        count = f"{len(complaints)} error{'s' if len(complaints) != 1 else ''}"
        raise InvalidInput(
            f"{path}: {count}", problems=tuple(in_order(complaints)), hint="Correct the places named."
        )
    _check_profile(path, file, top)
    _check_plugin(path, provider, file, top)
    _check_cluster(path, file, top)
    return file, top


def _check_profile(path: Path, file: CloudFile, top: Table) -> None:
    """Ansible's `profile` is one of AWS (amazon.aws, plugins/doc_fragments/common.py). winboot reads its own profile after the
    cloud's answer."""
    named = file.profile or ""
    if named and not named.endswith((".yaml", ".yml")) and not is_file(path.parent / expanded(named)):
        place = top.entries["profile"].value.place
        expected = "the path of winboot's profile; a profile of ~/.aws/config is aws_profile"
        wrong = Complaint(place, "profile", f"there is no file {named}", expected)
        raise InvalidInput(f"{path}: 1 error", problems=(wrong,), hint="Correct the place named.")


def _check_plugin(path: Path, provider: ProviderName, file: CloudFile, top: Table) -> None:
    known = {"aws": ("aws_ec2", "amazon.aws.aws_ec2"), "azure": ("azure_rm", "azure.azcollection.azure_rm")}
    if file.plugin and file.plugin not in known[provider]:
        place = top.entries["plugin"].value.place
        wrong = Complaint(place, "plugin", repr(str(file.plugin)), " or ".join(known[provider]))
        raise InvalidInput(f"{path}: 1 error", problems=(wrong,), hint="Correct the place named.")


def _check_cluster(path: Path, file: CloudFile, top: Table) -> None:
    """Raises InvalidInput for filters that ask for the machines of another cluster."""
    found = tuple(
        Complaint(
            locate(top, keys, key=True),
            ".".join(str(key) for key in keys),
            f"it asks for the tag {other}",
            f"a filter that goes with `cluster: {file.cluster}`, or no filter of that name",
        )
        for keys, other in file.contradictions()
    )
    if found:
        count = f"{len(found)} error{'s' if len(found) != 1 else ''}"
        raise InvalidInput(f"{path}: {count}", problems=found, hint="Correct the places named.")
