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

// Users choose the addresses of webhooks. So a shared server calls no address that only the server can reach: its
// own services, its neighbours', or its host's metadata. It checks the address at dial time, since a name can
// resolve differently each time.

// ErrInside refuses a webhook at an address that only the server can reach.
var ErrInside = errors.New("it is an address inside the server's network")

// errPlain refuses a name that a proxy would resolve.
var errPlain = fmt.Errorf("%w, as far as can be seen through the proxy: give an https address", ErrInside)

// innerNets lists ranges that net/netip does not call private but that lead inside.
var innerNets = []netip.Prefix{
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

// interfaces returns the addresses of this host. Tests replace it.
var interfaces = net.InterfaceAddrs

// isOwn reports whether a is an address of this host. A service on it may be meant for this host alone, even if the
// address is public.
func isOwn(a netip.Addr) bool {
	list, err := interfaces()
	return err == nil && slices.ContainsFunc(list, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr().Unmap().WithZone("") == a.Unmap().WithZone("")
	})
}

// isInside reports whether a is not a public address, or belongs to this host.
func isInside(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsGlobalUnicast() || isOwn(a) || a.IsPrivate() || slices.ContainsFunc(innerNets, func(p netip.Prefix) bool {
		return p.Contains(a)
	})
}

// inside reports whether the address itself leads inside, to a host that is not in the list. Names are checked at
// dial time.
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

// named reports whether hosts contains an address, by name or by name and port.
func named(address string, hosts []string) bool {
	host, _, err := net.SplitHostPort(address)
	return slices.Contains(hosts, address) || slices.Contains(hosts, host) ||
		err != nil && slices.Contains(hosts, strings.Trim(address, "[]"))
}

// metadata lists the addresses at which clouds give a machine its identity and keys: no webhook may use them,
// whoever allows it.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), // link-local: AWS, Azure, Google and others
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google, by IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's own
}

// embedded is the prefix of IPv6 addresses with an IPv4 address in the last four bytes.
var embedded = netip.MustParsePrefix("64:ff9b::/96")

// isMetadata reports whether a is a metadata address of a cloud, in any notation.
func isMetadata(a netip.Addr) bool {
	if a = a.Unmap().WithZone(""); embedded.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) })
}

// resolver resolves names.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// outward is an HTTP transport that connects to no address inside except those of hosts, and to no metadata address.
// It resolves names itself, and dials, or passes to a proxy, the address that it checked: nobody in between can
// resolve the name differently.
type outward struct {
	hosts []string
	all   bool // addresses inside are allowed
	names resolver
	proxy func(*http.Request) (*url.URL, error)
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots *x509.CertPool // trusted certificates; nil: the system's
}

// newOutward returns an outward with the system's resolver and proxies.
func newOutward(hosts []string, all bool) *outward {
	return &outward{hosts: hosts, all: all, names: net.DefaultResolver, proxy: http.ProxyFromEnvironment,
		dial: (&net.Dialer{Timeout: tryTimeout}).DialContext}
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
	t := &http.Transport{ // used for one request, since it has the name of one server
		DisableKeepAlives: true, TLSHandshakeTimeout: tryTimeout,
		DialContext:     o.dial,
		TLSClientConfig: &tls.Config{ServerName: host, RootCAs: o.roots, MinVersion: tls.VersionTLS12}}
	if proxy != nil {
		t.Proxy = http.ProxyURL(proxy)
		// Without TLS, a proxy gets the name and resolves it itself, perhaps to another address than the one
		// checked.
		if _, no := netip.ParseAddr(host); no != nil && to.URL.Scheme == "http" && !o.all && !named(r.URL.Host, o.hosts) {
			return nil, errPlain
		}
	}
	return t.RoundTrip(to)
}

// withoutServer leaves the name server's address, which is one of the server's network, out of an error for users.
func withoutServer(err error) error {
	if named, ok := errors.AsType[*net.DNSError](err); ok {
		plain := *named
		plain.Server = ""
		return &plain
	}
	return err
}

// addressOf returns the address to call for a webhook, or why it may not be called.
func (o *outward) addressOf(ctx context.Context, u *url.URL) (netip.Addr, error) {
	list := []netip.Addr{}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		list = append(list, a)
	} else if list, err = o.names.LookupNetIP(ctx, "ip", u.Hostname()); err != nil {
		return netip.Addr{}, withoutServer(err)
	}
	allowed := o.all || named(u.Host, o.hosts)
	for _, a := range list {
		if a = a.Unmap(); isMetadata(a) || !allowed && isInside(a) { // one is enough to distrust the name
			return netip.Addr{}, ErrInside
		}
	}
	if len(list) == 0 {
		return netip.Addr{}, fmt.Errorf("look up %s: it has no address", u.Hostname())
	}
	for _, a := range list { // most machines reach public addresses over IPv4
		if a.Unmap().Is4() {
			return a.Unmap(), nil
		}
	}
	return list[0], nil
}
