"""A package's `__init__.py` is its list of public names and nothing else, and each of them is there and explained."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted(ROOT.glob("packages/*/src"))
LISTS = sorted(path for source in SOURCES for path in source.rglob("__init__.py"))
PACKAGES = ("filters", "sessions", "agent", "cli")


def module_name(path: Path) -> str:
    source = next(source for source in SOURCES if path.is_relative_to(source))
    return ".".join(path.parent.relative_to(source).parts)


def declared(tree: ast.Module) -> list[str]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(statement.value)
            return names
    return []


def imported(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


@pytest.mark.parametrize("path", LISTS, ids=module_name)
def test_an_init_holds_a_docstring_imports_and_the_sorted_list_of_them(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    kinds = {type(statement) for statement in tree.body[1:]}
    assert kinds <= {ast.ImportFrom, ast.Assign}
    assert declared(tree) == sorted(imported(tree))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(f"handrail.{package}")
    assert [name for name in getattr(module, "__all__", []) if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_class_and_function_is_explained(package: str) -> None:
    module = importlib.import_module(f"handrail.{package}")
    public = {name: getattr(module, name) for name in getattr(module, "__all__", [])}
    silent = [
        name
        for name, value in public.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value)
    ]
    assert silent == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_marked_as_typed(package: str) -> None:
    module = importlib.import_module(f"handrail.{package}")
    assert Path(str(module.__file__)).with_name("py.typed").is_file()
