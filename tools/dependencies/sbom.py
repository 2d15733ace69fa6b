"""Prints the software bill of materials of the operator's dependencies: CycloneDX 1.6 as JSON, from requirements.lock.

The same lock gives the same bytes: there is no time of day, and the serial number is a hash of the content. Each
dependency has a name, version, package URL, the SHA-256 of each file of its release, a licence, and the packages that
require it.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools.dependencies.licences import licence_of
from tools.dependencies.lockfile import LOCK, PROJECT, ROOT, Pin, read_lock, read_project
from tools.image.lockfile import DebianPackage

NAMESPACE = uuid.UUID("9a4c3d1e-5f7b-5c0a-8a52-6f2f1f6a1d3c")
"""Namespace of the serial numbers (any fixed UUID)."""


def main() -> int:
    """Print or write the document; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    args = parser.parse_args()
    text = render(ROOT)
    if args.output is None:
        sys.stdout.write(text)
    else:
        args.output.write_text(text)
    return 0


def render(root: Path) -> str:
    """Return the document for the lock file and pyproject.toml in a folder."""
    pins, described = read_lock(root / LOCK), _project(root)
    bom = Bom(components=[_component(pin) for pin in pins.values()])
    bom.metadata.component = described
    for ref, needed in _needs(pins):
        bom.dependencies.add(_dependency(ref, needed))
    return _text(bom)


def render_image(root: Path, packages: Sequence[DebianPackage]) -> str:
    """Return the document for the image (tools/image) of the folder's content on these Debian packages."""
    pins, project = read_lock(root / LOCK), _project(root)
    base = [_debian(package) for package in packages]
    bom = Bom(components=[project, *base, *(_component(pin) for pin in pins.values())])
    bom.metadata.component = Component(
        name=PROJECT, version=project.version, type=ComponentType.CONTAINER, bom_ref=f"{PROJECT}-image"
    )
    held = [Dependency(component.bom_ref) for component in (project, *base)]
    bom.dependencies.add(Dependency(bom.metadata.component.bom_ref, dependencies=held))
    for ref, needed in _needs(pins):
        bom.dependencies.add(_dependency(ref, needed))
    return _text(bom)


def _project(root: Path) -> Component:
    project = read_project(root / "pyproject.toml")
    return Component(
        name=PROJECT,
        version=project.version,
        type=ComponentType.APPLICATION,
        bom_ref=PROJECT,
        licenses=[LicenseExpression(project.licence)],
    )


def _needs(pins: Mapping[str, Pin]) -> Iterator[tuple[str, list[Pin]]]:
    """Yield the project and each dependency by reference, with its requirements."""
    for name, ref in ((PROJECT, PROJECT), *((name, _url(pin).to_string()) for name, pin in pins.items())):
        yield ref, [pin for pin in pins.values() if name in pin.wanted_by]


def _text(bom: Bom) -> str:
    bom.metadata.timestamp = None  # type: ignore[assignment]
    bom.serial_number = NAMESPACE
    bom.serial_number = uuid.uuid5(NAMESPACE, JsonV1Dot6(bom).output_as_string())
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _debian(package: DebianPackage) -> Component:
    where = {"arch": package.architecture, "distro": "debian-12"}
    url = PackageURL("deb", "debian", package.name, package.version, where)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=url.to_string(),
        purl=url,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.sha256)],
    )


def _component(pin: Pin) -> Component:
    url, licence = _url(pin), licence_of(pin.name, pin.version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in pin.hashes]
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(url.to_string()),
        comment="one hash for each file of the release",
        hashes=hashes,
    )
    return Component(
        name=pin.name,
        version=pin.version,
        type=ComponentType.LIBRARY,
        bom_ref=url.to_string(),
        purl=url,
        licenses=[LicenseExpression(licence)] if licence is not None else [],
        external_references=[files],
    )


def _dependency(ref: str, needed: list[Pin]) -> Dependency:
    return Dependency(BomRef(ref), dependencies=[Dependency(BomRef(_url(pin).to_string())) for pin in needed])


def _url(pin: Pin) -> PackageURL:
    return PackageURL("pypi", None, pin.name, pin.version)


if __name__ == "__main__":
    sys.exit(main())
