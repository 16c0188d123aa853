package webhook

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestIsInside_DetectsNonPublicAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": true, "::": true, "10.1.2.3": true, "172.16.0.1": true,
		"192.168.1.1":     true,
		"169.254.169.254": true, "fe80::1": true, "fd00:ec2::254": true, "100.64.0.1": true, "224.0.0.1": true,
		"255.255.255.255":  true,
		"::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true,
		"8.8.8.8": false, "172.32.0.1": false, "100.128.0.1": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false,
	} {
		if got := isInside(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is inside: %t", address, got)
		}
	}
	for address, want := range map[string]bool{
		"http://localhost/x": true, "http://LOCALHOST.:80/": true, "http://a.localhost/": true, "http://[::1]:9/": true,
		"https://169.254.169.254/latest":   true,
		"http://127.0.0.1:80@example.org/": false, "http://example.org@127.0.0.1/": true, "https://example.org/hook": false,
		"http://10.0.0.5:8080/": false, "http://10.0.0.5:8081/": true, "http://hooks.internal/": false,
	} {
		if got := inside(address, []string{"10.0.0.5:8080", "hooks.internal"}); got != want {
			t.Errorf("%s leads inside: %t", address, got)
		}
	}
}

func TestSender_OfASharedServerRefusesInsideAddresses(t *testing.T) {
	t.Parallel()
	asked := 0
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer hook.Close()
	u, _ := url.Parse(hook.URL)
	byName := "http://localhost:" + u.Port() + "/" // a name, resolved when dialled

	tell, waits := patient(t)
	tell.client.Transport = newOutward(nil, false)
	for _, target := range []string{hook.URL + "/" + token, byName} {
		err := tell.tells(t.Context(), target)
		if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrInside) || !strings.Contains(err.Error(), "--hook-hosts") ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s is told: %v", target, err)
		}
	}
	if asked > 0 || len(*waits) > 0 {
		t.Errorf("asked %d times, waited %v", asked, *waits)
	}
	for _, hosts := range [][]string{{"127.0.0.1"}, {u.Host}} {
		tell.client.Transport = newOutward(hosts, false)
		if err := tell.tells(t.Context(), hook.URL); err != nil {
			t.Errorf("with %v allowed: %v", hosts, err)
		}
	}
	tell.client.Transport = newOutward([]string{"localhost"}, false)
	if err := tell.tells(t.Context(), byName); err != nil || asked != 3 {
		t.Errorf("a name that is allowed: %v, asked %d times", err, asked)
	}
}

// table resolves each name to one address.
type table map[string]string

func (n table) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := n[host]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, errors.New("no such host")
}

// A proxy gets the address that was checked, and never one inside: no name, even if the proxy itself is allowed, and
// no metadata address, even if someone allows it.
func TestOutward_ProxyGetsNoInsideAddress(t *testing.T) {
	t.Parallel()
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Host+" for "+r.Host)
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	tell, _ := patient(t)
	try := func(target string, hosts []string, all bool) error {
		o := newOutward(hosts, all)
		o.names = table{"metadata.evil.example": "169.254.169.254", "intranet.example": "10.0.0.7", "hooks.example": "203.0.113.9",
			"nat.example": "64:ff9b::a9fe:a9fe"}
		o.proxy = http.ProxyURL(at)
		tell.client.Transport = o
		return tell.tells(t.Context(), target)
	}
	allowed := []string{at.Host, at.Hostname(), "169.254.169.254", "metadata.evil.example", "nat.example", "[fe80::1]", "fe80::1"}
	for _, target := range []string{"http://169.254.169.254/latest", "http://metadata.evil.example/latest", "http://nat.example/",
		"http://[::ffff:169.254.169.254]/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://168.63.129.16/"} {
		for _, all := range []bool{false, true} {
			if err := try(target, allowed, all); !errors.Is(err, ErrInside) || !errors.Is(err, ErrRefused) {
				t.Errorf("%s, all %t: %v", target, all, err)
			}
		}
	}
	for _, target := range []string{"http://intranet.example/", "http://10.0.0.7:9/", "http://127.0.0.1/"} {
		if err := try(target, allowed, false); target != "http://127.0.0.1/" && !errors.Is(err, ErrInside) {
			t.Errorf("%s: %v", target, err)
		}
	}
	asked = nil
	for _, target := range []string{"https://hooks.example/x", "http://203.0.113.9/x"} { // a tunnel, which this proxy does not support
		_ = try(target, allowed, false)
	}
	if len(asked) < 2 || asked[0] != "CONNECT 203.0.113.9:443 for 203.0.113.9:443" || asked[len(asked)-1] != "POST 203.0.113.9 for 203.0.113.9" {
		t.Errorf("for addresses of the world the proxy was asked %q", asked)
	}
	if err := try("http://hooks.example/x", allowed, false); !errors.Is(err, ErrInside) || !strings.Contains(err.Error(), "https") {
		t.Errorf("a name that the proxy would look up: %v", err)
	}
	if err := try("http://none.example/x", nil, false); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a name that is not known now: %v", err)
	}
}

// The certificate is checked against the webhook's name, not its address.
func TestOutward_ChecksTheCertificateAgainstTheName(t *testing.T) {
	t.Parallel()
	asked := ""
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.Host }))
	defer hook.Close()
	hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	u, _ := url.Parse(hook.URL)
	o := newOutward(nil, true)
	o.names, o.proxy = table{"example.com": "127.0.0.1", "other.example": "127.0.0.1"}, http.ProxyURL(nil)
	o.roots = hook.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	tell, _ := patient(t)
	tell.client.Transport = o
	if err := tell.tells(t.Context(), "https://example.com:"+u.Port()+"/x"); err != nil || asked != "example.com:"+u.Port() {
		t.Errorf("%v, asked as %s", err, asked)
	}
	if _, err := tell.Post(t.Context(), "https://other.example:"+u.Port()+"/x", "", nil); err == nil {
		t.Error("a certificate for another name is taken")
	}
}

// No address of a webhook leads to a cloud's metadata or inside, in any notation.
func FuzzInside(f *testing.F) {
	for _, text := range []string{"http://169.254.169.254/", "http://[::ffff:a9fe:a9fe]/", "http://[64:ff9b::a9fe:a9fe]/", "http://0x7f.1/",
		"http://example.org@127.0.0.1/", "http://127.0.0.1:80@example.org/", "http://[fe80::1%25eth0]/", "http://2852039166/", "://", "http://[::1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return
		}
		o := newOutward(nil, false)
		o.names = table{}
		if a, err := o.addressOf(t.Context(), u); err == nil && (isInside(a) || isMetadata(a)) {
			t.Errorf("%q is told at %v", text, a)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && isMetadata(a) && !inside(text, []string{u.Host, u.Hostname()}) {
			t.Errorf("%q is let in", text)
		}
	})
}

// The server's own address counts as inside, of whatever kind: literally, at submission, and by name, when dialled.
// --hook-hosts allows it.
func TestOutward_RefusesTheServersOwnAddress(t *testing.T) {
	before := interfaces
	defer func() { interfaces = before }()
	interfaces = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("203.0.113.9"), Mask: net.CIDRMask(24, 32)},
			&net.IPNet{IP: net.ParseIP("2606:4700::9"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for _, address := range []string{"http://203.0.113.9:8080/", "https://203.0.113.9/", "http://[2606:4700::9]/",
		"http://[::ffff:203.0.113.9]/"} {
		if !inside(address, nil) {
			t.Errorf("%s is set", address)
		}
		if u, _ := url.Parse(address); inside(address, []string{u.Hostname()}) {
			t.Errorf("%s is allowed, and not set", address)
		}
	}
	o := newOutward(nil, false)
	o.names = table{"own.example": "203.0.113.9", "own6.example": "2606:4700::9", "next.example": "203.0.113.10"}
	for name, own := range map[string]bool{"own.example": true, "own6.example": true, "next.example": false} {
		_, err := o.addressOf(t.Context(), &url.URL{Scheme: "https", Host: name})
		if errors.Is(err, ErrInside) != own {
			t.Errorf("%s is dialled: %v", name, err)
		}
	}
	o.hosts = []string{"own.example"}
	if _, err := o.addressOf(t.Context(), &url.URL{Scheme: "https", Host: "own.example"}); err != nil {
		t.Errorf("an address that is allowed: %v", err)
	}
}

// unknown is a resolver that knows no name, and says who does not.
type unknown struct{}

func (unknown) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.255.255.53:53", IsNotFound: true}
}

// Whoever adds a webhook does not learn where the server's name server is.
func TestOutward_HidesItsNameServer(t *testing.T) {
	o := newOutward(nil, false)
	o.names = unknown{}
	_, err := o.addressOf(t.Context(), &url.URL{Scheme: "https", Host: "none.example"})
	if err == nil || strings.Contains(err.Error(), "10.255") || !strings.Contains(err.Error(), "none.example: no such host") {
		t.Errorf("%v", err)
	}
}
