import pytest

from harness import Kernel, Zygote


@pytest.fixture(scope="session")
def plain_zygote():
    zygote = Zygote()
    assert zygote.said == "up", zygote.said + zygote.logged()
    yield zygote
    zygote.close()


@pytest.fixture(scope="session")
def science_zygote():
    zygote = Zygote("numpy,pandas,matplotlib.pyplot")
    assert zygote.said == "up", zygote.said + zygote.logged()
    yield zygote
    zygote.close()


@pytest.fixture
def kernel(plain_zygote):
    kernel = Kernel(plain_zygote)
    yield kernel
    kernel.close()


@pytest.fixture
def science(science_zygote):
    kernel = Kernel(science_zygote)
    yield kernel
    kernel.close()
