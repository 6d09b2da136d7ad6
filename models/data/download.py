"""The official releases, fetched and checked."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from models.data.readers import read_captions
from models.errors import DataError, DownloadError
from models.files import chunks

TIMEOUT = 60  # seconds without an answer
BROKEN = (  # connections, archives, or what is in them
    *(OSError, EOFError, RuntimeError, http.client.HTTPException),
    *(zipfile.BadZipFile, zlib.error, DataError),
)


@dataclass(frozen=True)
class Release:
    name: str  # of the corpus
    url: str  # of a zip archive
    checksums: Mapping[str, str | None]  # sha256 of the files wanted, where it is known
    hosts: tuple[str, ...] = ()  # that may answer instead of the one in the address


E2E = Release(
    "e2e",
    "https://github.com/tuetschek/e2e-dataset/releases/download/v1.0.0/e2e-dataset.zip",
    {
        "trainset.csv": "f27d48df45815288ab15619d47a79028c300fbb7f42e373668aba0b98c1d57c6",
        "devset.csv": "fc26b78cdb849c80545f513b223d1e051138b43882eeb79e3eb153e689c864f9",
        "testset_w_refs.csv": "edc8db685e39bb9824d5bd70c18b1c9b0412d14b527aa960e2d1c8251ee15ccd",
        "testset.csv": "9b90c8f88feae14d9e1ef37350b14d17294c5958e90a3f1a7846590ee97bdbb9",
    },
    ("objects.githubusercontent.com", "release-assets.githubusercontent.com"),
)
COCO = Release(  # the checksum of the training captions is not known to us
    "coco",
    "http://images.cocodataset.org/annotations/annotations_trainval2017.zip",
    {
        "captions_train2017.json": None,
        "captions_val2017.json": "afe3b30e403dd7f228e2373023abbd60042a6e10ec6874d3652df034d289ebb9",
    },
)


def download(release: Release, target: Path) -> None:
    """Puts the files of a release into `target`, once all of them have been checked."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target) as aside:
        try:
            _fetch(release, Path(aside))
        except BROKEN as error:
            raise DownloadError(
                f"could not download {release.name}: {error}\n"
                f"Instead, get {release.url} by hand, unpack {', '.join(release.checksums)} "
                f"into {target}, and run `python -m models data {release.name} --from {target}`."
            ) from error
        for name in release.checksums:
            os.replace(Path(aside, name), target / name)


def _fetch(release: Release, folder: Path) -> None:
    """Gets the files wanted, from whatever folder of the archive they are in, and checks them.

    A file must have its checksum; one without a known checksum must be readable as captions.
    """
    path, opener = folder / "release.zip", urllib.request.build_opener(_KnownHosts(release))
    with opener.open(release.url, timeout=TIMEOUT) as answer, path.open("wb") as file:
        file.writelines(chunks(answer, path.name))
    with zipfile.ZipFile(path) as archive:
        members = {PurePosixPath(name).name: name for name in archive.namelist()}
        for name, checksum in release.checksums.items():
            if name not in members:
                raise zipfile.BadZipFile(f"there is no {name} in {release.url}")
            with archive.open(members[name]) as member:
                data = b"".join(chunks(member, name))
            (folder / name).write_bytes(data)
            if checksum is None:
                read_captions(folder / name)
            elif (found := hashlib.sha256(data).hexdigest()) != checksum:
                raise DataError(name, f"the sha256 is {found}, not {checksum}")


class _KnownHosts(urllib.request.HTTPRedirectHandler):
    """Follows a server only to the hosts of the release, and never from a secure address away."""

    def __init__(self, release: Release) -> None:
        asked = urlsplit(release.url)
        self.schemes, self.hosts = {"https", asked.scheme}, {asked.hostname, *release.hosts}

    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:
        to = urlsplit(arguments[-1])
        if to.scheme not in self.schemes or to.hostname not in self.hosts:
            raise OSError(f"the server sends us to {to.geturl()}, which is not of this release")
        return super().redirect_request(*arguments)
