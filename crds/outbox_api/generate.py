"""Writes the files that are made from the models, or checks that they are fresh.

`python -m outbox_api.generate` writes; with `--check` it only compares, names each stale file and exits with 1.
"""

import sys
from pathlib import Path

import yaml

from outbox_api.crd import custom_resource_definition, openapi_schema
from outbox_api.reference import field_reference

_ROOT = Path(__file__).resolve().parents[2]
_HEADER = "# Generated from crds/outbox_api by `make generate`; do not edit.\n"


def generated_files() -> dict[Path, str]:
    """Return every generated file's path, relative to the project, and its content."""
    crd = _HEADER + yaml.safe_dump(custom_resource_definition(), sort_keys=False, width=120, allow_unicode=True)
    chart = (
        "{{- if .Values.crds.enabled }}\n"
        + crd.replace("{{", "{{ `{{` }}").replace(
            "  name: outboxrelays.outboxrelay.io\n",
            "  name: outboxrelays.outboxrelay.io\n"
            "  {{- if .Values.crds.keep }}\n"
            "  annotations:\n"
            "    helm.sh/resource-policy: keep\n"
            "  {{- end }}\n",
            1,
        )
        + "{{- end }}\n"
    )
    return {
        Path("crds/outboxrelays.yaml"): crd,
        Path("charts/outbox-relay-operator/templates/crd.yaml"): chart,
        Path("docs/reference/outboxrelay.md"): field_reference(openapi_schema()),
    }


def stale_files(root: Path) -> list[Path]:
    """Return the generated files below `root` that differ from what the models say."""
    return [
        path
        for path, content in generated_files().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != content
    ]


def main(arguments: list[str], root: Path = _ROOT) -> int:
    """Write or check the generated files below `root`, and return the exit code."""
    stale = stale_files(root)
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is stale: run `make generate` and commit the result", file=sys.stderr)
        return 1 if stale else 0
    files = generated_files()
    for path in stale:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(files[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
