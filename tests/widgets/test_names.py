"""The public names of widgets, loaded when first used."""

import importlib

import pytest

import widgets


@pytest.mark.parametrize("name", widgets.__all__)
def test_a_public_name_stays_what_it_is_when_its_module_has_been_loaded(name):
    home = importlib.import_module(f"widgets.{widgets._HOME[name]}")
    assert getattr(widgets, name) is getattr(home, name)
