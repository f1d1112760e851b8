"""The Go programs of the local environment: found on PATH where one there will do, else built from `dev/tools`.

`dev/tools/go.mod` is the one place that pins their versions. Each program is cached by the hash of the module and of
its own sources, so an edit to one rebuilds that one, and a new checkout rebuilds nothing.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from outbox_dev.cached import cached
from outbox_dev.paths import repo_root, state_dir
from outbox_dev.progress import fail, step

Version = tuple[int, ...]

#: What the multi-call binary `kube` answers to.
KUBE_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubeadm",
    "kubectl",
    "kubelet",
)


@dataclass(frozen=True)
class Source:
    """A program built from the module: its Go package, what to link in, and how long the first build takes."""

    name: str
    package: str
    ldflags: str = ""
    expect: str = "some seconds"


def module_dir() -> Path:
    """The folder of the Go module all programs are built from."""
    return repo_root() / "dev" / "tools"


@functools.cache
def module_version(module: str) -> str:
    """The version that go.mod pins for `module`, such as `v1.36.3`.

    Raises:
        LookupError: go.mod does not name the module.
    """
    go_mod = (module_dir() / "go.mod").read_text(encoding="utf-8")
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", go_mod, re.MULTILINE)
    if match is None:
        raise LookupError(f"{module_dir() / 'go.mod'} does not require {module}")
    return match[1]


def kubernetes_version() -> str:
    """The Kubernetes version of everything built here, such as `v1.36.3`."""
    return module_version("k8s.io/kubernetes")


def _sources() -> dict[str, Source]:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    stamp = f"-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    helm = f"-X helm.sh/helm/v3/internal/version.version={module_version('helm.sh/helm/v3')}"
    return {
        source.name: source
        for source in (
            Source("kube", "./kube", stamp, "six minutes on two cores when nothing is cached"),
            Source("coredns", "./coredns"),
            Source("pause", "./pause"),
            Source("kind", "sigs.k8s.io/kind"),
            Source("helm", "helm.sh/helm/v3/cmd/helm", helm),
            Source("crictl", "sigs.k8s.io/cri-tools/cmd/crictl"),
        )
    }


def parse_version(text: str) -> Version:
    """The first `1.2` or `1.2.3` in a text as numbers; empty when there is none."""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in match.groups() if part is not None) if match else ()


def _output(*argv: str | Path, cwd: Path | None = None) -> str:
    """Standard output of a program that answers at once; empty when it fails or is absent."""
    try:
        done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def check_go() -> None:
    """Fail with what to install unless a Go is here that can build the module."""
    needed = re.search(r"^go (\S+)$", (module_dir() / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = needed[1] if needed else "1.26"
    get_it = (
        f"Install Go {wanted} or newer (https://go.dev/dl/) and have it on PATH. "
        "It builds the Kubernetes programs of the local environment, once."
    )
    if shutil.which("go") is None:
        raise fail("Go is not installed", get_it)
    # Asked outside the module: inside it, an older Go with GOTOOLCHAIN=auto would already fetch the newer one.
    found = _output("go", "version", cwd=Path("/"))
    if parse_version(found) < parse_version(wanted) and _output("go", "env", "GOTOOLCHAIN", cwd=Path("/")) == "local":
        raise fail(
            f"Go is too old: {found or 'no version'}",
            get_it + " GOTOOLCHAIN=local keeps this one from upgrading itself.",
        )


def cache_key(name: str) -> str:
    """What a built program depends on, as a short hash."""
    source = _sources()[name]
    digest = hashlib.sha256()
    files = [module_dir() / "go.mod", module_dir() / "go.sum"]
    if source.package.startswith("./"):
        files += sorted((module_dir() / source.package).glob("*.go"))
    for file in files:
        digest.update(file.read_bytes())
    digest.update(source.ldflags.encode())
    return digest.hexdigest()[:16]


def build(name: str) -> Path:
    """The program built from the module, from the cache when it is there.

    Args:
        name: `kube`, `coredns`, `pause`, `kind`, `helm` or `crictl`.

    Raises:
        SetupError: Go is missing or too old, or the build failed.
    """
    source = _sources()[name]

    def compile_into(folder: Path) -> None:
        check_go()
        argv = [
            "go",
            "build",
            "-trimpath",
            "-ldflags",
            f"-s -w {source.ldflags}",
            "-o",
            str(folder / name),
            source.package,
        ]
        # Static, so that the same file runs on this machine, in a node image, and in an image from nothing.
        env = {**os.environ, "CGO_ENABLED": "0"}
        with step(f"Building {name}", expect=source.expect):
            done = subprocess.run(argv, cwd=module_dir(), env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise fail(
                f"Building {name} failed:\n{done.stderr[-4000:]}",
                "Modules come from the Go module proxy (`go env GOPROXY`): check that it can be reached, "
                f"then run `go build {source.package}` in {module_dir()}.",
            )
        for program in KUBE_PROGRAMS if name == "kube" else ():
            (folder / program).symlink_to("kube")

    return cached(f"tools/{name}", cache_key(name), compile_into) / name


def kube(program: str) -> Path:
    """One of `KUBE_PROGRAMS`, as built here."""
    return build("kube").with_name(program)


def _found(name: str, version_of: Callable[[Path], str], suits: Callable[[Version], bool]) -> Path | None:
    """The program on PATH if its version suits."""
    # Not by our own links: a program that was started with them on its PATH would link them to themselves.
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    on_path = shutil.which(name, path=os.pathsep.join(part for part in path if part != str(_links())))
    if on_path is None:
        return None
    version = parse_version(version_of(Path(on_path)))
    return Path(on_path) if version and suits(version) else None


def _kubectl_version(program: Path) -> str:
    try:
        return str(json.loads(_output(program, "version", "--client", "--output=json"))["clientVersion"]["gitVersion"])
    except (ValueError, KeyError):
        return ""


def kubectl() -> Path:
    """A kubectl within one minor version of the cluster's (the supported skew): from PATH, else built."""
    wanted = parse_version(kubernetes_version())

    def suits(version: Version) -> bool:
        return version[0] == wanted[0] and abs(version[1] - wanted[1]) <= 1

    return _found("kubectl", _kubectl_version, suits) or kube("kubectl")


def helm() -> Path:
    """A Helm of version 3.14 or newer: from PATH, else built."""
    return _found("helm", lambda p: _output(p, "version", "--short"), lambda v: v >= (3, 14)) or build("helm")


def kind() -> Path:
    """A kind that knows Kubernetes 1.31 or newer (0.24): from PATH, else built."""
    return _found("kind", lambda p: _output(p, "version"), lambda v: v >= (0, 24)) or build("kind")


def module_source(module: str) -> Path:
    """The unpacked source of a module, as the Go module cache holds it (fetched when absent)."""
    check_go()
    answer = _output("go", "mod", "download", "-json", module, cwd=module_dir())
    if not answer:
        raise fail(f"The Go module {module} could not be fetched", "Check that the Go module proxy can be reached.")
    return Path(json.loads(answer)["Dir"])


def bin_dir() -> Path:
    """A folder to put first on PATH: links to the kubectl and helm that suit this environment."""
    folder = _links()
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in (("kubectl", kubectl()), ("helm", helm())):
        link, fresh = folder / name, folder / f".{name}.{os.getpid()}"
        if not (link.is_symlink() and link.readlink() == program):
            fresh.symlink_to(program)
            fresh.replace(link)
    return folder


def _links() -> Path:
    return state_dir() / "bin"
