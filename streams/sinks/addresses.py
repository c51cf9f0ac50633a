"""Which network addresses a sink may connect to: public ones, unless its settings say otherwise.

The check is made on the address that a socket is opened for, after every name was resolved, so that a name that changes
its address between check and use gains nothing (server-side request forgery, DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from aiohttp import AddrInfoType

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_ALLOCATED = ipaddress.IPv6Network("2000::/3")
"""Of IPv6 all that IANA has allocated as global unicast ("Internet Protocol Version 6 Address Space"). Python takes for
global what it has no entry for: site-local addresses, IPv4-compatible ones, translators' own prefixes."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a translator turns into IPv4 ones, their last 32 bits (RFC 6052)."""


class ForbiddenAddress(OSError):
    """The address is not one that may be connected to."""


def is_loopback_name(host: str) -> bool:
    """Tell whether a host is written as this machine's own: ``localhost`` or a loopback address."""
    address = literal(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def literal(host: str) -> Address | None:
    """Give the address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Tell whether an address is of the public internet, and of one machine; IPv4 in IPv6 is looked into."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if any(each is not None and not is_public(each) for each in inner):
            return False
        if address.ipv4_mapped is not None or address in _NAT64:
            return True
        if address not in _ALLOCATED:
            return False
    return address.is_global and not address.is_multicast


@dataclass(slots=True)
class Guard:
    """Opens sockets for the HTTP client, of the addresses that are allowed.

    Attributes:
        allow_private: whether any address is.
        own: whether this machine's own addresses are, since the settings name it.
        refused: how many addresses were refused since it was set to 0.
        opened: how many were not.
    """

    allow_private: bool
    own: bool
    refused: int = 0
    opened: int = 0

    def __call__(self, info: AddrInfoType) -> socket.socket:
        """Open a socket for an address.

        Raises:
            ForbiddenAddress: the address is not allowed.
        """
        family, kind, protocol, _, where = info
        address = ipaddress.ip_address(str(where[0]).partition("%")[0])
        if not (self.allow_private or is_public(address) or (self.own and address.is_loopback)):
            self.refused += 1
            raise ForbiddenAddress("the address is not public")
        self.opened += 1
        return socket.socket(family=family, type=kind, proto=protocol)
