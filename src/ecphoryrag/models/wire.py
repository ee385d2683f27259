"""What goes over the wire to a server of models: to that server alone, for so long, and no more than fits.

The packages of the vendors leave all of this open. They follow a server to any other host and take prompts (one even
the key) along, wait as long as a byte arrives now and then, and read whatever a server sends into memory.
"""

from __future__ import annotations

import json
import sys
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.secrets import redact
from ecphoryrag.models.served import Refusal, TooLarge, in_the_body, quoted, retry_after, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpx import Request, Response

LARGEST = 2**26
"""Bytes of a reply, unpacked: ten times what a full batch of the largest vectors takes."""
_UNPACKED = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that are about a body as it was sent."""


def options(library: Any, base_url: str) -> dict[str, Any]:
    """For a client of the HTTP library (``httpx``, or one of its names and ways) that asks the server at this address.

    It goes by the proxy that the environment names for the address, and to no other. A server on this machine is never
    asked by a proxy. Raises ModelNotAvailable for a proxy or certificates of the environment that cannot be used.
    """
    proxy = _proxy_of(base_url)
    try:
        inner = library.HTTPTransport(proxy=proxy, limits=library.Limits(max_connections=None))
    except (ImportError, ValueError, OSError) as error:
        if isinstance(error, OSError):
            cause = "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read"
        else:  # the proxy's address may hold a password
            cause = "the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used (SOCKS needs `socksio`)"
        raise ModelNotAvailable(f"{cause}: set the variable right, or name the server in NO_PROXY") from None
    return {"transport": _Bounded(library, inner), "follow_redirects": False, "trust_env": False}


def library_of(client: type) -> Any:
    """The HTTP library that a client's class is derived from: packages change it from version to version."""
    base = next(one for one in client.__mro__ if one.__name__ == "Client")
    return sys.modules[base.__module__.partition(".")[0]]


def is_local(host: str) -> bool:
    """Whether it is this machine."""
    if host.casefold().rstrip(".") == "localhost" or host.casefold().endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _proxy_of(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if is_local(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


class _Bounded:
    """A transport that reads each reply here and now, within the request's time-out and within ``LARGEST``."""

    def __init__(self, library: Any, inner: Any) -> None:
        self._library = library
        self._inner = inner

    def handle_request(self, request: Request) -> Response:
        """The reply, whole and unpacked. Raises TooLarge, TimeoutError, and what the library does."""
        seconds = request.extensions.get("timeout", {}).get("read")
        end = None if seconds is None else time.monotonic() + seconds
        response = self._inner.handle_request(request)
        try:
            if "," in response.headers.get("content-encoding", ""):
                raise TooLarge("a reply that is packed more than once")  # a few bytes may be anything
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > LARGEST:
                    raise TooLarge(f"more than {LARGEST} bytes")
                if end is not None and time.monotonic() > end:
                    raise TimeoutError("the reply does not end")
        finally:
            response.close()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _UNPACKED]
        whole: Response = self._library.Response(
            response.status_code, headers=headers, content=bytes(body), request=request
        )
        return whole

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def refusal_of(response: Response, key: str | None) -> Refusal | None:
    """What a server refuses by this reply; None if it does not. Its body must have been read.

    Another address is a refusal: whether to go there with prompts is for the user to say.
    """
    status = response.status_code
    if status < 300 and b'"error"' not in response.content[:512]:
        return None
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = response.text
    if status < 300:
        error = body.get("error") if isinstance(body, dict) else None
        return in_the_body(error, key) if error else None
    there = _elsewhere(response.headers)
    if there is not None:
        return Refusal(status, quoted(redact(f"it is at {there}", key)))
    message, param = words_of(body)
    return Refusal(status, quoted(redact(message, key)), param=param, retry_after=retry_after(response.headers))


def _elsewhere(headers: Mapping[str, str]) -> str | None:
    """The address that a redirect names, without what may be secret in it."""
    location = headers.get("location")
    if location is None:
        return None
    try:
        parts = urlsplit(location)
    except ValueError:
        return "an address that is none"
    return f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
