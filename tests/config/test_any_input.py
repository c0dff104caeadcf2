"""Any text in a file leads to complaints, never to a crash."""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.config.scene import GOOD
from winboot.base.errors import InvalidInput
from winboot.config.inventory import check_inventory
from winboot.config.profile import Profile, profile_from
from winboot.config.source import Complaint, Table, compose, merge

KEYS = st.sampled_from(
    [
        *Profile.model_fields,
        "version",
        "flags",
        "config",
        "labels",
        "taints",
        "cni",
        "pod_cidr",
        "source",
        "sha256",
        "file",
    ]
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 70000),
        st.sampled_from([10**20, -(10**20), 2**31, 1e300, float("nan")]),
        st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=12),
        st.text(max_size=12),
        st.sampled_from(
            ["1.34.2", "10.0.0.0/8", "https://x", "flannel", "on", "mint", "::1", "os=windows:NoSchedule"]
        ),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.text(max_size=200))
def test_any_text_is_a_map_or_a_complaint(text: str) -> None:
    """The reader refuses in its own words."""
    try:
        assert isinstance(compose(text, "f.yaml"), Table)
    except InvalidInput as error:
        assert error.problems


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(Profile.model_fields)), VALUES, max_size=6))
@example({"kubernetes": {"version": None}, "network": {"vxlan": []}})
def test_any_profile_is_good_or_complained_about_with_places(sections: dict[str, object]) -> None:
    """Laid over a good one: every complaint has a place, and an unusable profile has an error."""
    try:
        node = compose(yaml.safe_dump(sections, allow_unicode=True), "high.yaml")
    except InvalidInput as error:
        assert all(isinstance(one, Complaint) and one.place for one in error.problems)
        return
    merged = merge(compose(GOOD, "low.yaml"), node)
    assert isinstance(merged, Table)

    profile, found = profile_from(merged, "p")

    assert all(one.place for one in found)
    assert profile is not None or any(one.level == "error" for one in found)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(VALUES, VALUES, VALUES)
def test_any_inventory_is_good_or_complained_about(
    tmp_path: Path, group: object, host: object, top: object
) -> None:
    """Whatever groups and hosts hold."""
    (tmp_path / "profile.yaml").write_text(GOOD, encoding="utf-8")
    data = {
        "defaults": top,
        "groups": {"p": {"profile": "profile.yaml", "os": "2022", "hosts": {"h": host}}, "q": group},
    }
    path = tmp_path / "inventory.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")

    check_inventory(path)
