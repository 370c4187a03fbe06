import pytest

from lab.kernels.blas import VARIABLES, blas_threads, libraries, one_blas_thread
from lab.training import Countdown, Run

TWO = 2


@pytest.fixture
def two_threads(monkeypatch):
    """Every BLAS with two threads; nothing said in the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = blas_threads()
    for library in libraries():
        library.set(TWO)
    yield tuple(library.get() for library in libraries())
    for library, n in zip(libraries(), before, strict=True):
        library.set(n)


def all_one():
    return (1,) * len(libraries())


def test_one_thread_inside_and_as_before_after(two_threads):
    with one_blas_thread():
        assert blas_threads() == all_one()
        with one_blas_thread():
            assert blas_threads() == all_one()
        assert blas_threads() == all_one()
    assert blas_threads() == two_threads


def test_it_is_as_before_after_an_error(two_threads):
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == two_threads


@pytest.mark.parametrize("name", VARIABLES)
def test_what_the_user_said_is_respected(two_threads, monkeypatch, name):
    monkeypatch.setenv(name, "2")
    with one_blas_thread():
        assert blas_threads() == two_threads


def test_a_run_uses_one_thread_until_it_ends(two_threads):
    class Looks(Countdown):
        def advance(self):
            self.seen = blas_threads()
            return super().advance()

    job = Looks(1)
    run = Run(job)
    run.wait(30)
    assert run.join(30)
    assert job.seen == all_one()
    assert blas_threads() == two_threads
