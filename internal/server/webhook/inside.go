package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A webhook's address is somebody's word that the server follows, so a server of
// several people follows it to no address that only the server can reach: its own
// services, its neighbours', the metadata of its machine. The address is looked at
// where it is dialled, since a name may mean another one each time it is asked.

// ErrInside is a webhook on an address that only the server can reach.
var ErrInside = errors.New("it is an address inside the server's network")

// insides are ranges that are not private by name and lead inside all the same.
var insides = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // behind a carrier's translation
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, broadcast
	netip.MustParsePrefix("64:ff9b::/96"),  // IPv4 within IPv6: two ways to write the same
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("fec0::/10"),
}

// isInside reports whether a is not an address of the whole world.
func isInside(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsGlobalUnicast() || a.IsPrivate() || slices.ContainsFunc(insides, func(p netip.Prefix) bool {
		return p.Contains(a)
	})
}

// inside reports whether the address says by itself that it leads inside, and to no
// host of the list. Names are looked at when they are dialled.
func inside(address string, hosts []string) bool {
	u, err := url.Parse(address)
	if err != nil || named(u.Host, hosts) {
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

// outward is a client's transport that dials no address inside but those of hosts.
func outward(hosts []string) http.RoundTripper {
	plain := &net.Dialer{Timeout: tryTimeout, KeepAlive: 30 * time.Second}
	guarded := &net.Dialer{Timeout: tryTimeout, KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrInside, address)
			}
			if isInside(a.Addr()) {
				return ErrInside
			}
			return nil
		}}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 20, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: tryTimeout,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if named(address, hosts) {
				return plain.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
	}
}
