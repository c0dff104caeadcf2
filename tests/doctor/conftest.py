"""The joined pairs of tests/verify and the sites of tests/lab."""

from tests.lab.conftest import joined_site, pytest_runtest_protocol, scenes, secrets_of_the_profiles
from tests.verify.conftest import pairs

__all__ = ["joined_site", "pairs", "pytest_runtest_protocol", "scenes", "secrets_of_the_profiles"]
