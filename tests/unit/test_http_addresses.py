"""Which addresses HTTP work may call."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.execution.executors.http.addresses import AllowedHosts, ascii_host, kind_of

NOBODY = AllowedHosts(())

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450:4001:80b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]

REFUSED = [
    ("127.0.0.1", "a loopback address", "127.0.0.0/8"),
    ("127.255.255.254", "a loopback address", "127.0.0.0/8"),
    ("10.0.0.3", "a private address", "10.0.0.0/8"),
    ("10.255.255.255", "a private address", "10.0.0.0/8"),
    ("172.16.0.0", "a private address", "172.16.0.0/12"),
    ("172.31.255.255", "a private address", "172.16.0.0/12"),
    ("192.168.1.1", "a private address", "192.168.0.0/16"),
    ("169.254.169.254", "a link-local address", "169.254.0.0/16"),
    ("100.64.0.0", "a shared address", "100.64.0.0/10"),
    ("100.127.255.255", "a shared address", "100.64.0.0/10"),
    ("0.0.0.0", "the unspecified address", "0.0.0.0/32"),
    ("0.1.2.3", "an address of this network", "0.0.0.0/8"),
    ("192.0.0.192", "a reserved address", "192.0.0.0/24"),
    ("192.0.2.1", "an address for documentation", "192.0.2.0/24"),
    ("198.18.0.1", "an address for benchmarks", "198.18.0.0/15"),
    ("198.19.255.255", "an address for benchmarks", "198.18.0.0/15"),
    ("168.63.129.16", "a cloud's own services", "168.63.129.16/32"),
    ("224.0.0.1", "a multicast address", "224.0.0.0/4"),
    ("239.255.255.255", "a multicast address", "224.0.0.0/4"),
    ("240.0.0.1", "a reserved address", "240.0.0.0/4"),
    ("255.255.255.255", "the broadcast address", "255.255.255.255/32"),
    ("::1", "a loopback address", "::1/128"),
    ("::", "the unspecified address", "::/128"),
    ("fd00:ec2::254", "a unique local address", "fc00::/7"),
    ("fc00::", "a unique local address", "fc00::/7"),
    ("fe80::1", "a link-local address", "fe80::/10"),
    ("fe80::1%eth0", "a link-local address", "fe80::/10"),
    ("fec0::1", "a site-local address", "fec0::/10"),
    ("ff02::1", "a multicast address", "ff00::/8"),
    ("2001::1", "a Teredo address", "2001::/32"),
    ("2001:10::1", "a reserved address", "2001::/23"),
    ("2001:db8::1", "an address for documentation", "2001:db8::/32"),
    ("3fff::1", "an address for documentation", "3fff::/20"),
    ("100::1", "a reserved address", "100::1/128"),
    ("64:ff9b:1::1", "a reserved address", "64:ff9b:1::1/128"),
    ("5f00::1", "a reserved address", "5f00::1/128"),
    # What wraps an IPv4 address is that address.
    ("::ffff:127.0.0.1", "a loopback address", "127.0.0.0/8"),
    ("::ffff:169.254.169.254", "a link-local address", "169.254.0.0/16"),
    ("::127.0.0.1", "a loopback address", "127.0.0.0/8"),
    ("::10.0.0.3", "a private address", "10.0.0.0/8"),
    ("::8.8.8.8", "a reserved address", "::808:808/128"),
    ("64:ff9b::10.0.0.3", "a private address", "10.0.0.0/8"),
    ("64:ff9b::127.0.0.1", "a loopback address", "127.0.0.0/8"),
    ("2002:7f00:1::", "a loopback address", "127.0.0.0/8"),
    ("2002:a9fe:a9fe::1", "a link-local address", "169.254.0.0/16"),
    ("::ffff:0:127.0.0.1", "a reserved address", "::ffff:0:7f00:1/128"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_called(address: str) -> None:
    assert NOBODY.refusal("example.com", address) is None


@pytest.mark.parametrize(("address", "kind", "network"), REFUSED)
def test_any_other_address_is_refused_and_the_refusal_says_how_to_allow_it(
    address: str, kind: str, network: str
) -> None:
    refusal = NOBODY.refusal("example.com", address)
    assert refusal is not None
    assert kind in refusal
    fix = f'allow it with http_allow = ["{network}"] in ostinato.toml, or OSTINATO_HTTP_ALLOW={network}'
    assert refusal.endswith(fix)
    assert AllowedHosts([network]).refusal("example.com", address) is None


@pytest.mark.parametrize("address", [address for address, _, _ in REFUSED])
def test_private_allows_everything(address: str) -> None:
    assert AllowedHosts(["private"]).refusal("example.com", address) is None


def test_the_refusal_reads_as_a_sentence() -> None:
    assert NOBODY.refusal("x", "10.0.0.3") == (
        '10.0.0.3, which is a private address; allow it with http_allow = ["10.0.0.0/8"] in ostinato.toml, '
        "or OSTINATO_HTTP_ALLOW=10.0.0.0/8"
    )


# Everything that ipaddress knows not to be public is refused; a few more are, by name.

ONLY_HERE = ["192.88.99.0/24", "168.63.129.16/32", "192.0.0.0/24", "224.0.0.0/4"]


def is_suspect(address: IPv4Address | IPv6Address) -> bool:
    suspect = not address.is_global or address.is_private or address.is_loopback or address.is_link_local
    suspect = suspect or address.is_multicast or address.is_reserved or address.is_unspecified
    return suspect or (isinstance(address, IPv6Address) and address.is_site_local)


@given(st.ip_addresses(v=4))
def test_every_ipv4_address_that_ipaddress_does_not_call_global_is_refused_and_hardly_another(
    address: IPv4Address,
) -> None:
    refused = NOBODY.refusal("example.com", str(address)) is not None
    here = any(address in ip_network(network) for network in ONLY_HERE)
    assert refused == (is_suspect(address) or here)


@given(st.ip_addresses(v=6) | st.integers(0, 2**32 - 1).map(IPv6Address))
def test_every_ipv6_address_that_ipaddress_does_not_call_global_is_refused(address: IPv6Address) -> None:
    wraps = address.ipv4_mapped or address.sixtofour or int(address) >> 32 == int(IPv6Address("64:ff9b::")) >> 32
    if not wraps and is_suspect(address):
        assert kind_of(address) is not None
    if not wraps and not is_suspect(address):
        known = IPv6Address("2000::") <= address < IPv6Address("4000::") and int(address) >> 105 != 0x20010000 >> 9
        assert (kind_of(address) is None) == (known and int(address) >> 108 != 0x3FFF0)


WRAPPERS = {
    "mapped": lambda four: (0xFFFF << 32) | four,
    "NAT64": lambda four: int(IPv6Address("64:ff9b::")) | four,
    "6to4": lambda four: (0x2002 << 112) | (four << 80) | 1,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@given(four=st.ip_addresses(v=4))
def test_what_wraps_an_ipv4_address_is_treated_as_that_address(wrapper: str, four: IPv4Address) -> None:
    six = IPv6Address(WRAPPERS[wrapper](int(four)))
    assert kind_of(six) == kind_of(four)
    for entry in (str(four), str(six)):
        assert AllowedHosts([entry]).refusal("x", str(six)) is None


@given(four=st.ip_addresses(v=4))
def test_what_is_compatible_with_ipv4_is_never_public(four: IPv4Address) -> None:
    assert kind_of(IPv6Address(int(four))) is not None


# What http_allow says.


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/8", "x", "10.200.0.1"),
        ("10.0.0.3", "x", "10.0.0.3"),
        ("10.0.0.3/8", "x", "10.1.1.1"),
        (" 10.0.0.0/8 ", "x", "10.0.0.1"),
        ("fd00::/8", "x", "fd12::1"),
        ("::1", "x", "::1"),
        ("[::1]", "x", "::1"),
        ("fe80::/10", "x", "fe80::1%eth0"),
        ("localhost", "localhost", "127.0.0.1"),
        ("localhost", "LocalHost.", "127.0.0.1"),
        ("Hooks.Internal", "hooks.internal", "10.0.0.3"),
        ("hooks.internal.", "hooks.internal", "10.0.0.3"),
        ("*.internal", "hooks.internal", "10.0.0.3"),
        ("*.internal", "a.b.internal", "10.0.0.3"),
        ("bücher.internal", "xn--bcher-kva.internal", "10.0.0.3"),
        ("PRIVATE", "x", "10.0.0.3"),
    ],
)
def test_what_is_named_in_http_allow_is_called(entry: str, host: str, address: str) -> None:
    assert AllowedHosts([entry]).refusal(host, address) is None


@pytest.mark.parametrize(
    ("entry", "host", "address"),
    [
        ("10.0.0.0/16", "x", "10.1.0.1"),
        ("10.0.0.3", "x", "10.0.0.4"),
        ("127.0.0.1", "localhost", "::1"),
        ("localhost", "127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost.example.com", "127.0.0.1"),
        ("hooks.internal", "x.hooks.internal", "10.0.0.3"),
        ("*.internal", "internal", "10.0.0.3"),
        ("*.internal", "hooksinternal", "10.0.0.3"),
        ("*.internal", "hooks.internal.example.com", "10.0.0.3"),
        ("internal", "hooks.internal", "10.0.0.3"),
        ("privat", "x", "10.0.0.3"),
        ("0.0.0.0/0", "x", "::1"),
    ],
)
def test_what_is_not_named_in_http_allow_is_refused(entry: str, host: str, address: str) -> None:
    assert AllowedHosts([entry]).refusal(host, address) is not None


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("[::1]", "::1"),
        ("Bücher.example", "xn--bcher-kva.example"),
        ("①②⑦.⓪.⓪.①", "127.0.0.1"),
    ],
)
def test_a_host_has_one_spelling(host: str, expected: str) -> None:
    assert ascii_host(host) == expected
