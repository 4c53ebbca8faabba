"""All tests of a model go to one worker, which writes its paths out once."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("name")
        if "numeric/paths" in item.nodeid and isinstance(name, str):
            item.add_marker(pytest.mark.xdist_group(f"paths of {name}"))
