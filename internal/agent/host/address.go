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

// Attempts and pause when the metadata service does not answer the question for the address.
const (
	metadataTries = 5
	metadataPause = 500 * time.Millisecond
)

// Address returns the address on which other machines reach this one: from the metadata or, without
// it, of the interface that leads to the server. It returns "" if neither is known.
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
	if u.Scheme == "unix" { // the server and all its machines are on this host
		return "127.0.0.1"
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	var d net.Dialer
	probe, err := d.DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), port)) // a UDP dial sends nothing
	if err != nil {
		return ""
	}
	defer func() { _ = probe.Close() }() // nothing was sent
	if a, ok := probe.LocalAddr().(*net.UDPAddr); ok {
		return a.IP.String()
	}
	return ""
}

// InterfaceOf returns the name of the network interface with an address, or "".
func InterfaceOf(address string) string {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	all, _ := net.Interfaces() // without interfaces no name is known
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil &&
				(p.Addr() == want || want.IsLoopback() && p.Contains(want)) { // the loopback interface has all of 127.0.0.0/8
				return i.Name
			}
		}
	}
	return ""
}
