"""The joined sites of tests/lab."""

from tests.lab.conftest import joined_site, pytest_runtest_protocol, secrets_of_the_profiles

__all__ = ["joined_site", "pytest_runtest_protocol", "secrets_of_the_profiles"]
