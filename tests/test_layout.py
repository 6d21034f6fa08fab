"""The shape of the repository: imports go one way, no module hides a dependency, no machine is named."""

import ast
import importlib.metadata
import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from corpus import command
from corpus.rules import blocklist

ROOT = Path(__file__).parent.parent
ORDER = ["provenance", "corpus", "pretrain", "finetune", "benchmarks"]
MODULES = sorted(p for package in ORDER[1:] for p in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_one_way(path: Path):
    package = path.relative_to(ROOT).parts[0]
    later = set(ORDER[ORDER.index(package) + 1 :])
    assert not imported(path) & later


def test_provenance_imports_no_package_of_ours():
    assert not imported(ROOT / "provenance.py") & set(ORDER)


def test_no_module_is_named_as_a_dependency():
    distributions = importlib.metadata.packages_distributions()
    ours = {"provenance", *ORDER[1:]}
    foreign = {name for name, owners in distributions.items() if set(owners) - {"zh-electra"}}
    assert not ours & foreign


def test_what_is_imported_is_declared():
    """Not only what others happen to bring along."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w.-]+", line)[0].lower().replace("-", "_") for line in declared}  # type: ignore[index]
    owners = importlib.metadata.packages_distributions()
    for path in [ROOT / "provenance.py", *MODULES]:
        for module in imported(path) - sys.stdlib_module_names - set(ORDER):
            found = {name.lower().replace("-", "_") for name in owners.get(module, [module])}
            assert found & names, f"{path.name} imports {module}"


def test_an_installation_is_complete():
    """Every package is named, and every file that a module opens beside it belongs to its package."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {path.parent for package in ORDER[1:] for path in (ROOT / package).rglob("__init__.py")}
    assert sorted(setuptools["packages"]) == sorted(
        ".".join(path.relative_to(ROOT).parts) for path in folders
    )
    data = {path for glob in setuptools["package-data"]["corpus"] for path in (ROOT / "corpus").glob(glob)}
    opened = {blocklist.BUNDLED, command.SAMPLE / "zhwiki-sample.xml", command.SAMPLE / "web-sample.warc.gz"}
    assert opened <= data


def test_no_tracked_file_names_a_machine():
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    pattern = re.compile(r"(?<![\w.])/(work|home|root|farm)/[a-z]|pypi\.org|pythonhosted")
    this = Path(__file__).relative_to(ROOT).as_posix()
    for name in filter(None, tracked):
        path = ROOT / name
        if name == this or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="ignore")
        assert not pattern.search(text), name


def outline(readme: str) -> list[str]:
    """What a translation leaves as it is: levels of headings, commands, list items, shapes and figures of
    tables, targets of links."""
    found, code = [], ""
    for line in (ROOT / readme).read_text(encoding="utf-8").split("\n"):
        if line.startswith("```"):
            code = "" if code else line
            found.append(line)
        elif code in ("```bash", "```python"):
            found.append(line.split("#")[0].strip())
        elif not code and (match := re.match(r"#+ |- ", line)):
            found.append(match[0])
        elif not code and line.startswith("|"):
            found.append(" ".join(["|" * line.count("|"), *re.findall(r"\d+\.\d+", line)]))
        if not code:
            found += re.findall(r"\]\((?!README)(.+?)\)", line)
    return found


def test_both_readmes_have_the_same_outline():
    assert outline("README.md") == outline("README.zh-CN.md")
