"""Where the API server is and who we are, from what a pod or a laptop has."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from outbox_relay.kube.access import AccessError, find_access, from_kubeconfig


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    path = folder / "config"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:8001/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_token_of_a_kubeconfig_is_used(tmp_path: Path) -> None:
    access = find_access({"KUBECONFIG": str(kubeconfig(tmp_path, {"token": "abc"}))})
    assert (access.server, access.tls, access.bearer()) == ("http://127.0.0.1:8001", None, "abc")


def test_a_token_file_is_read_anew_each_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    access = from_kubeconfig(kubeconfig(tmp_path, {"tokenFile": str(token)}))
    assert access.bearer() == "first"
    token.write_text("second\n")
    assert access.bearer() == "second"


def test_a_credential_plugin_is_refused_with_what_to_use_instead(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="use a token or a client certificate"):
        from_kubeconfig(kubeconfig(tmp_path, {"exec": {"command": "login"}}))


@pytest.mark.parametrize("text", ["", "[]", "current-context: nowhere\ncontexts: []", "{"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(AccessError, match="is not a usable kubeconfig"):
        from_kubeconfig(path)


def test_outside_of_any_cluster_it_says_what_is_needed() -> None:
    with pytest.raises(AccessError, match="set KUBECONFIG"):
        find_access({})
