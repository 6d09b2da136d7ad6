"""Releases are fetched and checked, here from a local server; a failure says what to do instead."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from models.data.download import COCO, E2E, download
from models.errors import DownloadError
from models.files import read_text

CAPTIONS = json.dumps({"annotations": [{"image_id": 1, "caption": "A dog."}]}).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        """Not among the output of the tests."""


@contextmanager
def running(handler):
    """The address of a server that answers by it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def server(tmp_path):
    """The address of a server of `tmp_path / "served"`."""
    (tmp_path / "served").mkdir()
    with running(partial(QuietHandler, directory=tmp_path / "served")) as address:
        yield address


@pytest.fixture
def serve(server, tmp_path):
    """Puts a zip of the files on the server, and gives the release that names it."""

    def serve(release, files, checksums):
        with zipfile.ZipFile(tmp_path / "served" / "release.zip", "w") as archive:
            for name, data in files.items():
                archive.writestr(f"folder/{name}", data)
        return replace(release, url=f"{server}/release.zip", checksums=checksums)

    return serve


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_e2e(serve, tmp_path):
    files = {name: name.encode() for name in E2E.checksums}
    release = serve(
        E2E, {**files, "README.md": b"not wanted"}, {n: sha256(d) for n, d in files.items()}
    )
    download(release, tmp_path / "new" / "e2e")
    assert names(tmp_path / "new" / "e2e") == sorted(files)
    assert (tmp_path / "new" / "e2e" / "devset.csv").read_bytes() == b"devset.csv"


def test_a_changed_file_is_refused_and_nothing_is_left(serve, tmp_path):
    files = {name: name.encode() for name in E2E.checksums}
    release = serve(
        E2E, {**files, "devset.csv": b"changed"}, {n: sha256(d) for n, d in files.items()}
    )
    with pytest.raises(DownloadError, match=rf"devset\.csv: the sha256 is {sha256(b'changed')}"):
        download(release, tmp_path / "e2e")
    assert names(tmp_path / "e2e") == []


def test_a_file_missing_from_the_archive(serve, tmp_path):
    release = serve(
        E2E, {"trainset.csv": b""}, {"trainset.csv": sha256(b""), "devset.csv": sha256(b"")}
    )
    with pytest.raises(DownloadError, match=r"there is no devset\.csv in http://"):
        download(release, tmp_path / "e2e")


def test_what_is_no_archive(serve, tmp_path):
    release = serve(E2E, {}, E2E.checksums)
    (tmp_path / "served" / "release.zip").write_text("<html>Please log in</html>")
    with pytest.raises(DownloadError, match="not a zip file"):
        download(release, tmp_path / "e2e")


def test_coco(serve, tmp_path):
    files = dict.fromkeys(COCO.checksums, CAPTIONS)
    release = serve(COCO, files, {**COCO.checksums, "captions_val2017.json": sha256(CAPTIONS)})
    download(release, tmp_path / "coco")
    assert names(tmp_path / "coco") == sorted(files)


def test_coco_of_unknown_checksum_must_at_least_be_captions(serve, tmp_path):
    files = {"captions_train2017.json": b"{", "captions_val2017.json": CAPTIONS}
    release = serve(COCO, files, {**COCO.checksums, "captions_val2017.json": sha256(CAPTIONS)})
    with pytest.raises(DownloadError, match=r"captions_train2017\.json, line 1: not JSON"):
        download(release, tmp_path / "coco")
    assert names(tmp_path / "coco") == []


@pytest.mark.parametrize("release", [E2E, COCO], ids=["e2e", "coco"])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/release.zip", "http://name.invalid/release.zip", "{server}/absent.zip"],
    ids=["unreachable", "unresolved", "not found"],
)
def test_without_a_network(release, url, server, tmp_path):
    url = url.format(server=server)
    with pytest.raises(DownloadError) as caught:
        download(replace(release, url=url), tmp_path / "there")
    message = str(caught.value)
    assert f"get {url} by hand" in message
    assert f"unpack {', '.join(release.checksums)} into {tmp_path / 'there'}" in message
    assert f"`python -m models data {release.name} --from {tmp_path / 'there'}`" in message


def test_a_connection_that_breaks_off(serve, tmp_path, monkeypatch):
    def broken(*_args, **_options):
        raise TimeoutError("timed out")

    release = serve(E2E, {}, E2E.checksums)
    monkeypatch.setattr("urllib.request.OpenerDirector.open", broken)
    with pytest.raises(DownloadError, match="could not download e2e: timed out"):
        download(release, tmp_path / "e2e")


class Elsewhere(QuietHandler):
    """Sends everybody to another address."""

    to = ""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.to)
        self.end_headers()


@pytest.fixture
def elsewhere():
    with running(Elsewhere) as address:
        yield f"{address}/release.zip"


@pytest.mark.parametrize("to", ["http://localhost:9/a.zip", "ftp://127.0.0.1/a.zip"])
def test_a_server_that_sends_us_elsewhere(elsewhere, to, tmp_path, monkeypatch):
    monkeypatch.setattr(Elsewhere, "to", to)
    with pytest.raises(DownloadError, match=f"the server sends us to {to}"):
        download(replace(E2E, url=elsewhere), tmp_path / "e2e")
    assert names(tmp_path / "e2e") == []


def test_hosts_that_a_release_names(elsewhere, serve, tmp_path, monkeypatch):
    files = {"trainset.csv": b"train"}
    release = serve(E2E, files, {"trainset.csv": sha256(b"train")})
    there = release.url.replace("127.0.0.1", "localhost")
    monkeypatch.setattr(Elsewhere, "to", there)
    with pytest.raises(DownloadError, match="the server sends us to"):
        download(replace(release, url=elsewhere, hosts=()), tmp_path / "e2e")
    download(replace(release, url=elsewhere, hosts=("localhost",)), tmp_path / "e2e")
    assert names(tmp_path / "e2e") == ["trainset.csv"]


def test_an_archive_without_end(serve, tmp_path, monkeypatch):
    release = serve(E2E, {"trainset.csv": bytes(3 << 20)}, {"trainset.csv": "0"})
    monkeypatch.setattr("models.files.MOST_BYTES", 1 << 20)
    with pytest.raises(DownloadError, match=r"release\.zip: more than 1 MiB"):
        download(release, tmp_path / "e2e")
    assert names(tmp_path / "e2e") == []


def test_a_small_archive_of_a_large_file(serve, tmp_path, monkeypatch):
    release = serve(E2E, {}, {"trainset.csv": "0"})
    with zipfile.ZipFile(tmp_path / "served" / "release.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trainset.csv", bytes(3 << 20))
    monkeypatch.setattr("models.files.MOST_BYTES", 1 << 20)
    with pytest.raises(DownloadError, match=r"trainset\.csv: more than 1 MiB"):
        download(release, tmp_path / "e2e")
    assert names(tmp_path / "e2e") == []


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_no_byte_of_an_archive_goes_unnoticed(serve, tmp_path, compression):
    """One bit of every seventh byte: an error in one line, or the file as it should be."""
    path, text = tmp_path / "served" / "release.zip", b"name[The Vaults],The Vaults is here."
    release = serve(E2E, {}, {"trainset.csv": sha256(text)})
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("trainset.csv", text)
    good = path.read_bytes()
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            download(release, tmp_path / "e2e")
        except DownloadError:
            assert names(tmp_path / "e2e") == []
        else:
            assert (tmp_path / "e2e" / "trainset.csv").read_bytes() == text
            (tmp_path / "e2e" / "trainset.csv").unlink()


def test_real_files_have_the_checksums(e2e_directory, coco_directory):
    for directory, release in ((e2e_directory, E2E), (coco_directory, COCO)):
        for name, checksum in release.checksums.items():
            if checksum is not None:
                assert sha256(read_text(directory / f"{name}.gz").encode()) == checksum
