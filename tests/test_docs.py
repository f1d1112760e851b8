"""Documentation that names things of the code names things that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests", "e2e")


def test_every_test_that_the_guarantees_name_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")))
    existing = {
        node.name
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(named) > 30
    assert sorted(named - existing) == []


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_no_page_and_no_source_names_a_path_of_a_machine() -> None:
    machine = re.compile(r"/(?:work|root)/|/home/[a-z]+/")
    folders = ("crds", "operator", "relay_image", "client", "dev", "charts", "docs", "examples", "e2e", "bench")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path for path in files if path.suffix in {".py", ".md", ".yaml", ".toml", ".tpl", ".go", ".xml", ".json"}]
    found = [str(p.relative_to(ROOT)) for p in texts if machine.search(p.read_text(encoding="utf-8"))]
    assert found == []
