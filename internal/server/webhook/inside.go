package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A webhook's address is somebody's word that the server follows, so a server of
// several people follows it to no address that only the server can reach: its own
// services, its neighbours', the metadata of its machine. The address is looked at
// where it is dialled, since a name may mean another one each time it is asked.

// ErrInside is a webhook on an address that only the server can reach.
var ErrInside = errors.New("it is an address inside the server's network")

// errPlain is a name that a proxy would look up.
var errPlain = fmt.Errorf("%w, as far as can be seen through the proxy: give an https address", ErrInside)

// insides are ranges that are not private by name and lead inside all the same.
var insides = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // behind a carrier's translation
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, broadcast
	netip.MustParsePrefix("64:ff9b::/96"),  // IPv4 within IPv6: two ways to write the same
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("::/96"), // the same in its oldest form
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("fec0::/10"),
}

// interfaces are the addresses of this machine. A test has its own.
var interfaces = net.InterfaceAddrs

// isOwn reports whether a is an address of this machine: what listens there may be meant for it alone, also where the
// whole world can name the address.
func isOwn(a netip.Addr) bool {
	list, err := interfaces()
	return err == nil && slices.ContainsFunc(list, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr().Unmap().WithZone("") == a.Unmap().WithZone("")
	})
}

// isInside reports whether a is not an address of the whole world, or one of this machine's own.
func isInside(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsGlobalUnicast() || isOwn(a) || a.IsPrivate() || slices.ContainsFunc(insides, func(p netip.Prefix) bool {
		return p.Contains(a)
	})
}

// inside reports whether the address says by itself that it leads inside, and to no
// host of the list. Names are looked at when they are dialled.
func inside(address string, hosts []string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && isMetadata(a) {
		return true
	}
	if named(u.Host, hosts) {
		return false
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && isInside(a)
}

// named reports whether hosts has an address, by name or by name and port.
func named(address string, hosts []string) bool {
	host, _, err := net.SplitHostPort(address)
	return slices.Contains(hosts, address) || slices.Contains(hosts, host) ||
		err != nil && slices.Contains(hosts, strings.Trim(address, "[]"))
}

// metadata are where clouds tell a machine who it is, and with what keys: no webhook is there, whoever allows it.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), // link-local: AWS, Azure, Google and others
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google, by IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's own
}

// embedded are prefixes in which an IPv4 address stands in the last four bytes.
var embedded = netip.MustParsePrefix("64:ff9b::/96")

// isMetadata reports whether a is an address of a cloud's metadata, however it is written.
func isMetadata(a netip.Addr) bool {
	if a = a.Unmap().WithZone(""); embedded.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) })
}

// resolver looks names up.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// outward is a client's transport that goes to no address inside but those of hosts, and to none of a
// cloud's metadata. A name is looked up here, and what is dialled, or asked of a proxy, is the address that was
// looked at: nobody between can take the name for another.
type outward struct {
	hosts []string
	all   bool // inside is allowed too
	names resolver
	proxy func(*http.Request) (*url.URL, error)
	roots *x509.CertPool // whom certificates are believed; nil: whom the system believes
}

// newOutward is one with the system's names and proxies.
func newOutward(hosts []string, all bool) *outward {
	return &outward{hosts: hosts, all: all, names: net.DefaultResolver, proxy: http.ProxyFromEnvironment}
}

// RoundTrip implements http.RoundTripper.
func (o *outward) RoundTrip(r *http.Request) (*http.Response, error) {
	at, err := o.addressOf(r.Context(), r.URL)
	if err != nil {
		return nil, err
	}
	proxy, err := o.proxy(r)
	if err != nil {
		return nil, err
	}
	to := r.Clone(r.Context())
	if to.Host == "" {
		to.Host = r.URL.Host
	}
	host, port := r.URL.Hostname(), r.URL.Port()
	to.URL.Host = at.String()
	if at.Is6() {
		to.URL.Host = "[" + at.String() + "]"
	}
	if port != "" {
		to.URL.Host = net.JoinHostPort(at.String(), port)
	}
	t := &http.Transport{ // for one request, since it knows the name of one server
		DisableKeepAlives: true, TLSHandshakeTimeout: tryTimeout,
		DialContext:     (&net.Dialer{Timeout: tryTimeout}).DialContext,
		TLSClientConfig: &tls.Config{ServerName: host, RootCAs: o.roots, MinVersion: tls.VersionTLS12}}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
		// Without TLS a proxy is told the name, and looks it up by itself: for what its owner sees, that name may
		// stand for another address than the one that was looked at.
		if _, no := netip.ParseAddr(host); no != nil && to.URL.Scheme == "http" && !o.all && !named(r.URL.Host, o.hosts) {
			return nil, errPlain
		}
	}
	return t.RoundTrip(to)
}

// addressOf is the address that a webhook is told at, or why it is not told.
func (o *outward) addressOf(ctx context.Context, u *url.URL) (netip.Addr, error) {
	list := []netip.Addr{}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		list = append(list, a)
	} else if list, err = o.names.LookupNetIP(ctx, "ip", u.Hostname()); err != nil {
		return netip.Addr{}, fmt.Errorf("look up %s: %w", u.Hostname(), err)
	}
	allowed := o.all || named(u.Host, o.hosts)
	for _, a := range list {
		if a = a.Unmap(); isMetadata(a) || !allowed && isInside(a) { // one is enough: the name is not to be trusted
			return netip.Addr{}, ErrInside
		}
	}
	if len(list) == 0 {
		return netip.Addr{}, fmt.Errorf("look up %s: it has no address", u.Hostname())
	}
	for _, a := range list { // IPv4 is what reaches the world from most machines
		if a.Unmap().Is4() {
			return a.Unmap(), nil
		}
	}
	return list[0], nil
}
