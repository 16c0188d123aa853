package webhook

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
)

// nameServer is a hostile name server on loopback: each look-up gets the next response of its list, and the last one
// from then on.
type nameServer struct {
	net.PacketConn
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   map[uint16]int // queries by kind: a look-up asks for both kinds at once, in any order
}

func newNameServer(t *testing.T, answers ...[]netip.Addr) *nameServer {
	t.Helper()
	c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{PacketConn: c, answers: answers, asked: map[uint16]int{}}
	var served sync.WaitGroup
	served.Go(s.serve)
	t.Cleanup(func() { _ = c.Close(); served.Wait() })
	return s
}

func (s *nameServer) serve() {
	q := make([]byte, 1500)
	for {
		n, from, err := s.ReadFrom(q)
		if err != nil {
			return
		}
		end := 12 // end of the header; the query's name, type and class follow
		for end < n && q[end] != 0 {
			end += int(q[end]) + 1
		}
		if end += 5; end > n {
			continue
		}
		_, _ = s.WriteTo(s.reply(q[:end]), from)
	}
}

// lookups returns how many queries for IPv4 addresses there were.
func (s *nameServer) lookups() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[1]
}

// reply returns all addresses of the requested kind, with a TTL of 0.
func (s *nameServer) reply(question []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := binary.BigEndian.Uint16(question[len(question)-4:])
	now := s.answers[min(s.asked[kind], len(s.answers)-1)]
	s.asked[kind]++
	r := append([]byte{}, question...)
	copy(r[2:12], []byte{0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	count := uint16(0)
	for _, a := range now {
		if is4 := a.Is4(); is4 != (kind == 1) || !is4 && kind != 28 {
			continue
		}
		count++
		r = binary.BigEndian.AppendUint16(append(r, 0xc0, 12), kind)
		r = binary.BigEndian.AppendUint16(append(r, 0, 1, 0, 0, 0, 0), uint16(len(a.AsSlice())))
		r = append(r, a.AsSlice()...)
	}
	binary.BigEndian.PutUint16(r[6:], count)
	return r
}

// resolver returns a resolver that uses this server only.
func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", s.LocalAddr().String())
	}}
}

func addrs(list ...string) (all []netip.Addr) {
	for _, a := range list {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// A resolver answers with a public address first and with the server's own address afterwards (DNS rebinding). The
// webhook goes to the public address or nowhere: the server sends nothing to loopback, with or without a proxy.
func TestOutward_SurvivesDNSRebinding(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 100)
	within := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host }))
	defer within.Close()
	at, _ := url.Parse(within.URL)
	tunnels := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels <- r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	via, _ := url.Parse(proxy.URL)

	tell, _ := patient(t)
	o := newOutward(nil, false)
	tell.client.Transport = o
	s := newNameServer(t, addrs("203.0.113.9"), addrs("127.0.0.1"))
	o.names, o.proxy = s.resolver(), http.ProxyURL(via)
	if _, err := tell.Post(t.Context(), "https://rebind.example:"+at.Port()+"/x", "", nil); err == nil || errors.Is(err, ErrInside) {
		t.Errorf("at its first address: %v", err)
	}
	if to := <-tunnels; to != "203.0.113.9:"+at.Port() || s.lookups() != 1 {
		t.Errorf("the proxy was asked for %s, after %d look-ups", to, s.lookups())
	}
	if _, err := tell.Post(t.Context(), "https://rebind.example:"+at.Port()+"/x", "", nil); !errors.Is(err, ErrInside) {
		t.Errorf("at its second address: %v", err)
	}
	for _, later := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "::127.0.0.1"} {
		s := newNameServer(t, addrs("203.0.113.9"), addrs(later))
		o.names, o.proxy = s.resolver(), http.ProxyURL(nil)
		ctx, cancel := context.WithCancel(t.Context())
		dialled := ""
		o.dial = func(_ context.Context, _, to string) (net.Conn, error) {
			dialled = to
			cancel() // so that nothing is tried again
			return nil, errors.New("nothing answers there")
		}
		if _, err := tell.Post(ctx, "http://rebind.example:"+at.Port()+"/x", "", nil); err == nil || s.lookups() != 1 ||
			dialled != "203.0.113.9:"+at.Port() {
			t.Errorf("without a proxy: %v, after %d look-ups; dialled %s", err, s.lookups(), dialled)
		}
		if _, err := tell.Post(t.Context(), "http://rebind.example:"+at.Port()+"/x", "", nil); !errors.Is(err, ErrInside) {
			t.Errorf("%s after the first: %v", later, err)
		}
	}
	for _, one := range [][]string{{"203.0.113.9", "127.0.0.1"}, {"203.0.113.9", "::1"}, {"203.0.113.9", "fd20:ce::254"},
		{"203.0.113.9", "2606:4700::1", "64:ff9b::7f00:1"}, {"0.0.0.0"}, {"::"}} {
		o.names = newNameServer(t, addrs(one...)).resolver()
		if _, err := tell.Post(t.Context(), "http://rebind.example:"+at.Port()+"/x", "", nil); !errors.Is(err, ErrInside) {
			t.Errorf("%v in one answer: %v", one, err)
		}
	}
	select {
	case host := <-reached:
		t.Errorf("loopback was asked for %s", host)
	case host := <-tunnels:
		t.Errorf("the proxy was asked for %s besides", host)
	default:
	}
}

// No webhook reaches Google's metadata over IPv6, whoever allows the address.
func TestOutward_RefusesGoogleMetadataOverIPv6(t *testing.T) {
	t.Parallel()
	o := newOutward([]string{"[fd20:ce::254]", "fd20:ce::254"}, true)
	if _, err := o.addressOf(t.Context(), &url.URL{Scheme: "http", Host: "[fd20:ce::254]"}); !errors.Is(err, ErrInside) {
		t.Errorf("it is dialled: %v", err)
	}
}
