import pytest

from lab.training import stop_all


@pytest.fixture(autouse=True)
def no_run_outlives_its_test():
    yield
    stop_all()
