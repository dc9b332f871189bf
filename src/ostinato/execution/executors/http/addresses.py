"""Which addresses HTTP work and channels may call, pure: everything public, and what the settings name.

line.py asks for every address that a host resolves to, just before it connects to that very address; the channels of
`notifications/` ask before each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = ["AllowedHosts", "ascii_host", "kind_of"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _table(kinds: Sequence[tuple[str, str]]) -> list[tuple[Network, str]]:
    return [(ip_network(network), kind) for network, kind in kinds]


# The special-purpose registries of IANA. The first that holds an address names it.
_FOUR = _table(
    [
        ("127.0.0.0/8", "a loopback address"),
        ("10.0.0.0/8", "a private address"),
        ("172.16.0.0/12", "a private address"),
        ("192.168.0.0/16", "a private address"),
        ("169.254.0.0/16", "a link-local address"),
        ("100.64.0.0/10", "a shared address of a carrier's network"),
        ("0.0.0.0/32", "the unspecified address"),
        ("0.0.0.0/8", "an address of this network"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("192.88.99.0/24", "a reserved address"),
        ("168.63.129.16/32", "the address of a cloud's own services"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "a reserved address"),
    ]
)
_SIX = _table(
    [
        ("::1/128", "a loopback address"),
        ("::/128", "the unspecified address"),
        ("fc00::/7", "a unique local address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/32", "a Teredo address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("3fff::/20", "an address for documentation"),
    ]
)
_GLOBAL_SIX = IPv6Network("2000::/3")
"""Of all the others, none is given out."""
_MAPPED = IPv6Network("::ffff:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")


def kind_of(address: Address) -> tuple[str, Network] | None:
    """What an address that is not public is, and the network that makes it so; None for a public one."""
    wrapped = _wrapped(address)
    if wrapped is not None and ((found := kind_of(wrapped)) is not None or address not in _COMPATIBLE):
        return found
    for network, kind in _FOUR if address.version == 4 else _SIX:
        if address in network:
            return kind, network
    if address.version == 6 and address not in _GLOBAL_SIX:
        return "a reserved address", ip_network(address)
    return None


def _wrapped(address: Address) -> IPv4Address | None:
    """The IPv4 address that is called when this one is."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFF_FFFF)
    # :: and ::1 are their own.
    if address in _MAPPED or address in _TRANSLATED or (address in _COMPATIBLE and number > 1):
        return IPv4Address(number & 0xFFFF_FFFF)
    return None


def ascii_host(host: str) -> str:
    """A host as it is asked for and compared: `Bücher.example.` is `xn--bcher-kva.example`; UnicodeError if none."""
    host = host.strip("[]").rstrip(".").lower()
    return host if host.isascii() else host.encode("idna").decode("ascii")


class AllowedHosts:
    """What `http_allow`, or another setting, says: networks, addresses, names, `*.names`, or `private` for
    everything."""

    def __init__(self, entries: Iterable[str], setting: str = "http_allow") -> None:
        self._setting = setting
        self._everything = False
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in entries:
            entry = entry.strip()
            if entry.lower() == "private":
                self._everything = True
                continue
            try:
                self._networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                self._names.add(_name(entry))

    def refusal(self, host: str, address: str) -> str | None:
        """Why this address of the host is not called; None if it is."""
        # Without the interface of a link-local one: fe80::1%eth0.
        found = ip_address(address.partition("%")[0])
        special = kind_of(found)
        if special is None or self._everything or self._has_name(host) or self._has_address(found):
            return None
        kind, network = special
        setting = self._setting
        fix = f'allow it with {setting} = ["{network}"] in ostinato.toml, or OSTINATO_{setting.upper()}={network}'
        return f"{found}, which is {kind}; {fix}"

    def _has_address(self, address: Address) -> bool:
        wrapped = _wrapped(address)
        candidates: list[Address] = [address] if wrapped is None else [address, wrapped]
        return any(candidate in network for candidate in candidates for network in self._networks)

    def _has_name(self, host: str) -> bool:
        name = _name(host)
        parents = name.split(".")[1:]
        wildcards = {"*." + ".".join(parents[position:]) for position in range(len(parents))}
        return name in self._names or not wildcards.isdisjoint(self._names)


def _name(text: str) -> str:
    try:
        return ascii_host(text)
    except UnicodeError:
        return text.lower()
