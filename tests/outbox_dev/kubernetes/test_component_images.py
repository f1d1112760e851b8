import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from outbox_dev.kubernetes import component_images
from outbox_dev.kubernetes.component_images import Image, layer, write_archive


def test_a_layer_of_the_same_content_is_the_same_layer(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"x" * 1000)

    first = layer({"usr/local/bin/kube": program}, {"usr/local/bin/etcd": "kube"})
    program.touch()

    assert layer({"usr/local/bin/kube": program}, {"usr/local/bin/etcd": "kube"}) == first


def test_programs_are_executable_and_reached_by_all_their_names(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"#!")
    archive = tmp_path / "layer.tar"
    archive.write_bytes(layer({"usr/local/bin/kube": program}, {"usr/local/bin/etcd": "kube"}))

    with tarfile.open(archive) as tar:
        assert tar.getmember("usr/local/bin/kube").mode == 0o755
        assert tar.getmember("usr/local/bin/etcd").linkname == "kube"
        assert tar.getmember("bin").linkname == "usr/bin"
        assert tar.getmember("usr/local").isdir()


def test_images_that_share_a_layer_store_it_once_and_stay_two_images(tmp_path: Path) -> None:
    shared = layer({}, {"usr/bin/a": "b"})
    archive = tmp_path / "images.tar"

    write_archive([Image("example/one:1", [shared]), Image("example/two:1", [shared], "/two")], archive)

    digest = hashlib.sha256(shared).hexdigest()
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json") or pytest.fail("no manifest"))
        configs = [json.load(tar.extractfile(image["Config"]) or pytest.fail("no configuration")) for image in manifest]
    assert names.count(f"{digest}/layer.tar") == 1
    assert [image["RepoTags"] for image in manifest] == [["example/one:1"], ["example/two:1"]]
    assert len({image["Config"] for image in manifest}) == 2
    assert [config["rootfs"]["diff_ids"] for config in configs] == [[f"sha256:{digest}"]] * 2
    assert [config["config"].get("Entrypoint") for config in configs] == [None, ["/two"]]


@pytest.mark.integration
def test_kubeadm_asks_for_images_that_are_made_here_and_no_others() -> None:
    programs = {name.rpartition(":")[0].rpartition("/")[2] for name in component_images.kubeadm_image_names()}

    assert programs == {
        *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"),
        *("etcd", "coredns", "pause"),
    }
