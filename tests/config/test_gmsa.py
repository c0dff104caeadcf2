"""Group managed service accounts: what the profile refuses, and what `winboot manifests gmsa` prints."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.config.scene import CA, a_spec, complaints
from winboot.base.errors import InvalidInput
from winboot.config.profile.checks.gmsa import holds_password
from winboot.remote.manifests import manifest

GUID = "244818ae-87ac-4fcd-92ec-e79e5252348a"
DOMAIN = {
    "dns_name": "corp.example",
    "netbios_name": "CORP",
    "sid": "S-1-5-21-2126729477-2524075714-3094792973",
    "guid": GUID,
}
ACCOUNT = {"name": "WebApp", "service_accounts": ["shop/web", "shop/admin", "bills/web"]}


def a_profile(**keys: Any) -> str:
    return yaml.safe_dump({"gmsa": {"domain": DOMAIN, "accounts": {"webapp": ACCOUNT}, **keys}})


def objects(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_the_credential_spec_has_both_scopes_and_the_domains_values(tmp_path: Path) -> None:
    spec, *_ = objects(manifest("gmsa", [a_spec(tmp_path, profile=a_profile())]))

    assert (spec["apiVersion"], spec["kind"]) == ("windows.k8s.io/v1", "GMSACredentialSpec")
    assert spec["metadata"] == {"name": "webapp"}
    assert spec["credspec"] == {
        "ActiveDirectoryConfig": {
            "GroupManagedServiceAccounts": [
                {"Name": "WebApp", "Scope": "corp.example"},
                {"Name": "WebApp", "Scope": "CORP"},
            ]
        },
        "CmsPlugins": ["ActiveDirectory"],
        "DomainJoinConfig": {
            "DnsName": "corp.example",
            "DnsTreeName": "corp.example",
            "Guid": GUID,
            "MachineAccountName": "WebApp",
            "NetBiosName": "CORP",
            "Sid": DOMAIN["sid"],
        },
    }


def test_a_machine_outside_a_domain_has_the_plugin_and_its_reference(tmp_path: Path) -> None:
    reference = "ObjectId=1;SecretUri=https://vault.example/secrets/a"
    text = a_profile(plugin_guid=GUID, accounts={"webapp": {**ACCOUNT, "plugin_input": reference}})
    spec, *_ = objects(manifest("gmsa", [a_spec(tmp_path, profile=text)]))

    assert spec["credspec"]["ActiveDirectoryConfig"]["HostAccountConfig"] == {
        "PluginGUID": f"{{{GUID}}}",
        "PluginInput": reference,
        "PortableCcgVersion": "1",
    }


def test_only_the_named_service_accounts_may_use_it(tmp_path: Path) -> None:
    _, role, *bindings = objects(manifest("gmsa", [a_spec(tmp_path, profile=a_profile())]))

    assert role["rules"] == [
        {
            "apiGroups": ["windows.k8s.io"],
            "resources": ["gmsacredentialspecs"],
            "verbs": ["use"],
            "resourceNames": ["webapp"],
        }
    ]
    assert {(one["metadata"]["namespace"], *(s["name"] for s in one["subjects"])) for one in bindings} == {
        ("shop", "web", "admin"),
        ("bills", "web"),
    }
    assert {one["roleRef"]["name"] for one in bindings} == {role["metadata"]["name"]}


def test_the_values_of_the_webhook_hold_no_key(tmp_path: Path) -> None:
    (values,) = objects(manifest("gmsa-webhook", [a_spec(tmp_path, profile=a_profile())]))
    assert values == {"certificates": {"certManager": {"enabled": True}}}

    (tmp_path / "hook.crt").write_text(CA, encoding="ascii")
    own = {"certificates": "own", "ca_bundle": {"file": str(tmp_path / "hook.crt")}, "secret": "hook"}
    (values,) = objects(manifest("gmsa-webhook", [a_spec(tmp_path, profile=a_profile(webhook=own))]))
    assert values["certificates"]["certManager"] == {"enabled": False}
    assert base64.b64decode(values["certificates"]["caBundle"]).decode() == CA
    assert values["certificates"]["secretName"] == "hook"


def test_two_profiles_with_other_accounts_are_refused(tmp_path: Path) -> None:
    specs = [a_spec(tmp_path, profile=a_profile()), a_spec(tmp_path, profile=a_profile(accounts={}))]

    with pytest.raises(InvalidInput, match="different group managed service accounts"):
        manifest("gmsa", specs)


# What is laid over the good section, and a part of the complaint.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"domain": {**DOMAIN, "dns_name": "CORP"}}, "leads to NTLM"),
    ({"domain": {**DOMAIN, "sid": DOMAIN["sid"] + "-1104"}}, "the domain's SID"),
    ({"domain": {**DOMAIN, "guid": f"{{{GUID}}}"}}, f"did you mean '{GUID}'"),
    ({"accounts": {"webapp": {"name": "WebApp$"}}}, "did you mean 'WebApp'"),
    ({"accounts": {"webapp": {"name": r"CORP\WebApp"}}}, "without domain and $"),
    ({"accounts": {"WebApp": ACCOUNT}}, "the name of a GMSACredentialSpec"),
    ({"accounts": {"webapp": {**ACCOUNT, "service_accounts": ["web"]}}}, "namespace/serviceaccount"),
    ({"plugin_guid": GUID}, "the account has no plugin_input"),
    (
        {"plugin": {"url": "https://x.example/a.dll", "sha256": "a" * 64, "app_id": GUID}},
        "the plug-in's CLSID is missing",
    ),
    ({"accounts": {"webapp": {**ACCOUNT, "plugin_input": "shop:web"}}}, "which need gmsa.plugin_guid"),
    (
        {"plugin_guid": GUID, "accounts": {"webapp": {**ACCOUNT, "plugin_input": "corp.example:me:hunter2"}}},
        "looks like a password",
    ),
    ({"webhook": {"certificates": "own"}}, "ca_bundle is missing"),
]


@pytest.mark.parametrize(("keys", "says"), BAD)
def test_what_cannot_work_is_refused(keys: dict[str, Any], says: str) -> None:
    (found,) = [one for one in complaints(a_profile(**keys)) if one.level == "error"]

    assert says in str(found)
    assert str(found).startswith("profile.yaml:")
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("ObjectId=1;SecretUri=https://vault.example/secrets/a", False),
        ('{"credentialArn":"arn:aws:secretsmanager:eu-west-1:1:secret:a"}', False),
        ("arn:aws:ssm:eu-west-1:1:parameter/a", False),
        ("shop:web-credential", False),
        ("https://vault.example:8443/a:b", False),
        ("corp.example:me:hunter2", True),
        (r"CORP\me:hunter2", True),
        ("user=me;password=hunter2", True),
        ('{"Password":"hunter2"}', True),
        ('{"login":{"Password":"hunter2"}}', True),
        ('[{"a":[{"pwd":"hunter2"}]}]', True),
        ('[{"credentialArn":"arn:aws:secretsmanager:eu-west-1:1:secret:a"}]', False),
        (r'{"credential":"CORP\\me:hunter2"}', True),
        ("Credential=corp.example:me:hunter2;ObjectId=1", True),
        ("https://me:hunter2@vault.example/secrets/a", True),
        ("me@corp.example:hunter2", True),
        ("corp.example:me:hunter=2", True),
    ],
)
def test_a_reference_passes_and_a_password_does_not(text: str, secret: bool) -> None:
    assert holds_password(text) is secret


@given(st.from_regex(r"[a-z.]{1,9}", fullmatch=True), st.text(min_size=1))
def test_the_sample_form_with_any_password_is_refused(domain: str, password: str) -> None:
    assert holds_password(f"{domain}:me:{password}")
