"""The certificate and the key that server.py speaks TLS with; what is wrong with one is told by its option and file."""

from __future__ import annotations

import re
import shlex
import ssl

from ostinato.config import Settings
from ostinato.errors import InvalidInput

__all__ = ["tls_context"]

_CERTIFICATE = re.compile(rb"-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----")
_KEY = re.compile(rb"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----")
_LOCKED = re.compile(rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE)
_NOT_ITS_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""What OpenSSL says to the key of another certificate; the last if it is of another kind (RSA, EC)."""


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """How to speak TLS; None if nobody asked for it."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "tls_key" if key is None else "tls_cert"
        raise InvalidInput(f"{missing} is not set", field=missing, hint=f"give {_flag(missing)} too: the file with it")
    chain, locked = _read("tls_cert", certificate), _read("tls_key", key)
    if not _CERTIFICATE.search(chain):
        fix = f"openssl x509 -inform der -in {shlex.quote(certificate)}"
        raise _wrong("tls_cert", certificate, "it has no PEM certificate", f"from DER: {fix}")
    if _LOCKED.search(locked):
        raise _wrong("tls_key", key, "the key has a password", f"remove it: openssl pkey -in {shlex.quote(key)}")
    if not _KEY.search(locked):
        raise _wrong("tls_key", key, "it has no PEM private key", "give the key that the certificate is for")
    return _loaded(certificate, key, chain)


def _loaded(certificate: str, key: str, chain: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a question: nobody may be there to type a password.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason in _NOT_ITS_KEY:
            why = f"the key does not belong to the certificate in --tls-cert {certificate}"
            raise _wrong(
                "tls_key", key, why, "give the two that belong together, the server's certificate first"
            ) from None
        name, file = ("tls_key", key) if _is_readable(chain) else ("tls_cert", certificate)
        raise _wrong(name, file, f"it is damaged ({error.reason or error})", "copy the whole file again") from None
    return context


def _is_readable(chain: bytes) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=chain.decode("ascii", "ignore"))
    except ssl.SSLError:
        return False
    return True


def _read(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _wrong(name, path, f"it cannot be read: {why}", "give a file that this user may read") from None


def _wrong(name: str, path: str, why: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{_flag(name)} {path}: {why}", field=name, hint=hint)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
