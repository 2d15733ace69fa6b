"""The certificates of a test control plane: a single CA, a serving certificate for loopback, client certificates by
user name. They live as long as their temporary folder."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=7)
# Names by which the programs reach each other; the API server requires `.svc` of an aggregated API.
_SERVER_NAMES = ("localhost", "kubernetes.default.svc", "metrics-server.kube-system.svc")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Paths of a certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a folder; `ca.crt` is its own certificate."""

    def __init__(self, folder: Path, name: str = "hvpa-test") -> None:
        """Create the folder, and the authority's own key and certificate."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(usage, critical=True)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str) -> KeyPair:
        """A serving certificate for localhost and 127.0.0.1."""
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in _SERVER_NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        return self._issue(name, [], ExtendedKeyUsageOID.SERVER_AUTH, names)

    def kubelet(self, address: str) -> KeyPair:
        """A serving certificate for a kubelet at an address on loopback."""
        names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(address))]
        return self._issue(f"kubelet-{address}", [], ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, *groups: str, lifetime: dt.timedelta = _LIFETIME) -> KeyPair:
        """A client certificate with this user and these groups for the API server. A second certificate for the same
        user replaces the first."""
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, [], lifetime)

    def _issue(
        self,
        common_name: str,
        groups: list[str] | tuple[str, ...],
        purpose: x509.ObjectIdentifier,
        names: list[x509.GeneralName],
        lifetime: dt.timedelta = _LIFETIME,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = self._builder(x509.Name(attributes), key.public_key(), lifetime)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        stem = common_name.replace(":", "-")
        pair = KeyPair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        pair.key.chmod(0o600)
        return pair

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: dt.timedelta = _LIFETIME
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + lifetime)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def inline(path: Path) -> str:
    """A file's content in the form of a kubeconfig's `…-data` field."""
    return base64.b64encode(path.read_bytes()).decode()
