"""The Terraform examples: they parse, use arguments that their providers have, refer to what is there, and fit winboot.

No provider is installed here: `terraform validate` runs in the hosted workflow (.github/workflows/terraform.yml). The
arguments below are those of the providers' own pages, as far as the examples or their neighbours use them. Read were
website/docs/r/<resource without its prefix>.html.markdown in hashicorp/terraform-provider-aws (each page as it is stored,
5.x and 6.x) and in hashicorp/terraform-provider-azurerm at v4.50.0, v4.65.0 and v5.2.0 (69697b7).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import hcl2
import pytest
import yaml

from winboot.remote.cloud.azure import Repairs, ScaleSet
from winboot.remote.cloud.azure_queue import seconds_of, unfit
from winboot.remote.cloud.pool import Pool

FOLDER: Final = Path(__file__).parents[2] / "docs" / "examples" / "terraform"
WORKFLOW: Final = Path(__file__).parents[2] / ".github" / "workflows" / "terraform.yml"
CLOUDS: Final = ("aws", "azure")

# Resource (or its block) → what it takes; the required ones are marked by `!`.
ARGUMENTS: Final[dict[str, str]] = {
    "aws_sqs_queue": "name message_retention_seconds visibility_timeout_seconds redrive_policy sqs_managed_sse_enabled tags",
    "aws_sqs_queue_policy": "!queue_url !policy",
    "aws_cloudwatch_event_rule": "name description event_pattern tags",
    "aws_cloudwatch_event_target": "!rule !arn target_id",
    "aws_launch_template": "name_prefix image_id instance_type key_name vpc_security_group_ids update_default_version "
    "metadata_options user_data tag_specifications",
    "aws_launch_template.metadata_options": "http_endpoint http_tokens http_put_response_hop_limit",
    "aws_launch_template.tag_specifications": "resource_type tags",
    "aws_autoscaling_group": "name !min_size !max_size vpc_zone_identifier health_check_type health_check_grace_period "
    "launch_template tag",
    "aws_autoscaling_group.launch_template": "id name version",
    "aws_autoscaling_group.tag": "!key !value !propagate_at_launch",
    "aws_autoscaling_lifecycle_hook": "!name !autoscaling_group_name !lifecycle_transition heartbeat_timeout "
    "default_result notification_target_arn role_arn",
    "aws_iam_policy": "count name !policy",
    "azurerm_windows_virtual_machine_scale_set": "!name !resource_group_name !location !sku !instances !admin_username "
    "!admin_password computer_name_prefix tags overprovision single_placement_group upgrade_mode health_probe_id "
    "source_image_reference !os_disk !network_interface winrm_listener termination_notification extension "
    "automatic_instance_repair rolling_upgrade_policy lifecycle",
    "azurerm_windows_virtual_machine_scale_set.source_image_reference": "!publisher !offer !sku !version",
    "azurerm_windows_virtual_machine_scale_set.os_disk": "!caching !storage_account_type disk_size_gb",
    "azurerm_windows_virtual_machine_scale_set.network_interface": "!name primary !ip_configuration",
    "azurerm_windows_virtual_machine_scale_set.network_interface.ip_configuration": "!name primary subnet_id version",
    "azurerm_windows_virtual_machine_scale_set.winrm_listener": "!protocol certificate_url",
    "azurerm_windows_virtual_machine_scale_set.termination_notification": "!enabled timeout",
    "azurerm_windows_virtual_machine_scale_set.extension": "!name !publisher !type !type_handler_version "
    "auto_upgrade_minor_version settings protected_settings",
    "azurerm_windows_virtual_machine_scale_set.automatic_instance_repair": "!enabled grace_period action",
    "azurerm_windows_virtual_machine_scale_set.lifecycle": "ignore_changes",
    "azurerm_user_assigned_identity": "!name !resource_group_name !location tags",
    # v4.65.0 on; its predecessors ask for parent_id, and until v4.50.0 for resource_group_name, which v5 no longer has
    # (CHANGELOG.md, #31921; website/docs/guides/5.0-upgrade-guide.html.markdown).
    "azurerm_federated_identity_credential": "!name !user_assigned_identity_id !audience !issuer !subject",
    # One of the two names is needed. The provider finds custom roles by role_definition_name, too: it lists the scope's
    # definitions by `roleName eq` (internal/services/authorization/role_assignment_resource.go).
    "azurerm_role_assignment": "!scope role_definition_name role_definition_id !principal_id principal_type",
}


def plain(node: Any) -> Any:
    """hcl2's form without its marks: quotes around names and texts, notes on blocks and comments."""
    match node:
        case dict():
            return {plain(key): plain(value) for key, value in node.items() if not str(key).startswith("__")}
        case list():
            return [plain(one) for one in node]
        case str():
            return node[1:-1] if node.startswith('"') and node.endswith('"') else node
    return node


def parsed(cloud: str) -> dict[str, list[Any]]:
    """All files of an example as one module."""
    found: dict[str, list[Any]] = {}
    for file in sorted((FOLDER / cloud).glob("*.tf")):
        with file.open(encoding="utf-8") as text:
            for kind, blocks in plain(hcl2.load(text)).items():
                found.setdefault(kind, []).extend(blocks)
    return found


def resources(cloud: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (kind, name): body
        for block in parsed(cloud)["resource"]
        for kind, named in block.items()
        for name, body in named.items()
    }


def blocks(where: str, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A resource and the blocks in it, by their path."""
    yield where, body
    for key, value in body.items():
        if f"{where}.{key}" in ARGUMENTS:
            for one in value if isinstance(value, list) else [value]:
                yield from blocks(f"{where}.{key}", one)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_only_arguments_of_the_providers_are_used_and_none_that_is_required_is_missing(cloud: str) -> None:
    wrong = []
    for (kind, _), resource in resources(cloud).items():
        for where, body in blocks(kind, resource):
            words = ARGUMENTS[where].split()
            known, required = {word.lstrip("!") for word in words}, {w[1:] for w in words if w[0] == "!"}
            wrong += [f"{where}: no argument {key}" for key in body.keys() - known]
            wrong += [f"{where}: {key} is missing" for key in required - body.keys()]
    assert wrong == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_whatever_is_referred_to_is_declared_and_every_variable_is_used(cloud: str) -> None:
    module = parsed(cloud)
    text = "\n".join(file.read_text(encoding="utf-8") for file in (FOLDER / cloud).glob("*.tf"))
    variables = {name for block in module["variable"] for name in block}
    names = {f"{kind}.{name}" for kind, name in resources(cloud)}

    assert set(re.findall(r"\bvar\.(\w+)", text)) == variables
    assert set(re.findall(r"\b((?:aws|azurerm)_\w+\.\w+)\.\w+", text)) <= names | {
        f"{kind}.{name}"
        for block in module.get("data", ())
        for kind, named in block.items()
        for name in named
    }


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_inventory_of_an_example_is_one_that_winboot_reads(cloud: str) -> None:
    pool = Pool.read(FOLDER / cloud / f"pool.{cloud}.yaml")
    assert (pool.name, pool.file.profile) == (cloud, "profile.yaml")


def test_the_hooks_of_the_group_are_those_that_the_worker_answers() -> None:
    hooks = {
        body["lifecycle_transition"]: (body["default_result"], body["heartbeat_timeout"])
        for (kind, _), body in resources("aws").items()
        if kind == "aws_autoscaling_lifecycle_hook"
    }
    assert hooks == {
        "autoscaling:EC2_INSTANCE_LAUNCHING": ("ABANDON", 900),
        "autoscaling:EC2_INSTANCE_TERMINATING": ("CONTINUE", 900),
    }
    # EventBridge → SQS, as the message parser's second envelope has it.
    rule = resources("aws")["aws_cloudwatch_event_rule", "hooks"]["event_pattern"]
    assert "aws.autoscaling" in rule and "EC2 Instance-terminate Lifecycle Action" in rule
    notices = resources("aws")["aws_cloudwatch_event_rule", "notices"]["event_pattern"]
    assert all(
        one in notices for one in ("Spot Instance Interruption", "Rebalance", "State-change", "aws.health")
    )


def test_the_groups_machines_carry_the_tag_that_inventory_and_policy_ask_for() -> None:
    (tag,) = resources("aws")["aws_autoscaling_group", "windows"]["tag"]
    assert (tag["key"], tag["propagate_at_launch"]) == ("${local.cluster_tag}", True)
    locals_ = {key: value for block in parsed("aws")["locals"] for key, value in block.items()}
    assert locals_["cluster_tag"] == "kubernetes.io/cluster/${var.cluster}"


def test_user_data_has_no_secret_and_asks_for_the_session_token() -> None:
    template = resources("aws")["aws_launch_template", "windows"]
    (metadata,) = template["metadata_options"]
    text = (FOLDER / "aws" / "winrm.ps1.tftpl").read_text(encoding="utf-8")
    assert (metadata["http_tokens"], metadata["http_put_response_hop_limit"]) == ("required", 1)
    assert not re.search(r"password|secret|token|key", text, re.IGNORECASE)


def the_set() -> dict[str, Any]:
    return resources("azure")["azurerm_windows_virtual_machine_scale_set", "windows"]


def test_the_scale_set_is_one_that_the_hook_can_work_with() -> None:
    """Its own complaints about a scale set find nothing here."""
    found = the_set()
    (notice,), (repair,) = found["termination_notification"], found["automatic_instance_repair"]
    assert notice["enabled"] is True and 300 <= seconds_of(notice["timeout"]) <= 900
    assert 600 <= seconds_of(repair["grace_period"]) <= 5400
    read = ScaleSet(
        "pools",
        found["name"],
        True,
        0,
        Repairs(repair["enabled"], repair["grace_period"], repair["action"]),
        notice["timeout"],
    )
    assert list(unfit(read, 2400.0)) == []


def test_repairs_have_a_health_signal_and_upgrades_are_left_to_winboot() -> None:
    """`health_probe_id` goes with Automatic and Rolling alone (the page of the resource); Manual needs the extension."""
    found = the_set()
    (extension,) = found["extension"]
    assert found["upgrade_mode"] == "Manual" and "health_probe_id" not in found
    assert extension["type"] == "ApplicationHealthWindows"
    assert found["overprovision"] is False and found["single_placement_group"] is True


def test_the_identity_is_federated_with_the_account_of_the_manifest() -> None:
    credential = resources("azure")["azurerm_federated_identity_credential", "hook"]
    assert credential["subject"] == "system:serviceaccount:winboot-system:winboot-hook"
    assignment = resources("azure")["azurerm_role_assignment", "hook"]
    from winboot.remote.cloud.azure_policy import role

    assert json.loads(role("/subscriptions/s"))["Name"] == assignment["role_definition_name"]


def test_the_providers_version_is_one_that_has_the_arguments() -> None:
    """`parent_id` until 4.64, `user_assigned_identity_id` from 4.65 on: see ARGUMENTS."""
    (terraform,) = parsed("azure")["terraform"]
    (providers,) = terraform["required_providers"]
    assert providers["azurerm"]["version"].startswith(">= 4.65,")


@pytest.mark.skipif(shutil.which("terraform") is None, reason="no terraform: see docs/contributing.md")
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("words", [("fmt", "-check", "-diff"), ("providers",)], ids=lambda words: words[0])
def test_terraform_itself_reads_the_example_and_would_format_it_so(
    cloud: str, words: tuple[str, ...]
) -> None:
    """What the hosted workflow does first, and what of it needs no provider."""
    done = subprocess.run(
        ["terraform", *words], cwd=FOLDER / cloud, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_terraform_validate_runs_for_each_example_in_a_hosted_workflow() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["cloud"] == list(CLOUDS)
    commands = " ".join(step.get("run", "") for step in job["steps"])
    assert "terraform init -backend=false" in commands and "terraform validate" in commands
