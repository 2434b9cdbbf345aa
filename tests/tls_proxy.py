"""TLS in front of a server that speaks none."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ADDRESS = "127.0.0.1"


@contextmanager
def tls_in_front_of(port: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield a port that speaks TLS for the server at `port`, and the file of the certificate to trust."""
    certificate = make_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server((ADDRESS, 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener, context, port))
        thread.start()
        yield listener.getsockname()[1], certificate
        # closing it would not wake the thread that accepts
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def make_certificate(folder: Path) -> Path:
    """Write a key and a certificate for this machine, signed by itself, into one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, ADDRESS)])
    signed = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(ADDRESS))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "certificate.pem"
    path.write_bytes(private + signed.public_bytes(pem))
    return path


def accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            wire, _ = listener.accept()
            threading.Thread(target=serve, args=(wire, context, port), daemon=True).start()


def serve(wire: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Pass on one request and its answer at a time."""
    with (
        suppress(OSError),
        wire,
        socket.create_connection((ADDRESS, port)) as server,
        context.wrap_socket(wire, server_side=True) as encrypted,
    ):
        while request := encrypted.recv(65_536):
            server.sendall(request)
            encrypted.sendall(server.recv(65_536))
