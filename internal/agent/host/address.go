package host

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"time"

	"scrimp/internal/agent/notice"
	"scrimp/internal/lib/wait"
)

// How often the metadata is asked for the address where it does not answer, and after which pause.
const (
	metadataTries = 5
	metadataPause = 500 * time.Millisecond
)

// Address is at which other machines reach this one: as its metadata says, else that of the interface by which it
// reaches the server; "" where neither is known.
func Address(ctx context.Context, server string, metadata notice.Endpoints, log *slog.Logger) string {
	for range metadataTries {
		own, err := notice.Address(ctx, metadata, nil)
		if own != "" {
			return own
		}
		if err == nil || wait.For(ctx, metadataPause) != nil {
			break
		}
		log.Warn("ask the metadata for the machine's address", "error", err)
	}
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	if u.Scheme == "unix" { // the server is on this host, and so is every machine that it has
		return "127.0.0.1"
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	var d net.Dialer
	probe, err := d.DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), port)) // nothing is sent
	if err != nil {
		return ""
	}
	defer func() { _ = probe.Close() }() // nothing was sent
	if a, ok := probe.LocalAddr().(*net.UDPAddr); ok {
		return a.IP.String()
	}
	return ""
}

// InterfaceOf is the name of the network interface that has an address; "" where none does.
func InterfaceOf(address string) string {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	all, _ := net.Interfaces() // without them no name is known
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil &&
				(p.Addr() == want || want.IsLoopback() && p.Contains(want)) { // loopback has all of 127.0.0.0/8
				return i.Name
			}
		}
	}
	return ""
}
