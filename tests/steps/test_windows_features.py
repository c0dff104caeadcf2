"""Turn on the Windows features that containers need."""

from tests.steps.builders import a_spec
from winboot.steps.windows_features import WINDOWS_FEATURES


def test_features_are_asked_for_by_the_names_of_dism():
    spec = a_spec(**{"features: [Containers]": "features: [Containers, Hyper-V]"})

    assert WINDOWS_FEATURES.inputs(spec)["features"] == ["Containers", "Microsoft-Hyper-V"]
