// Package awstest emulates a cloud for tests and demonstrations: EC2, STS, the price list, Savings Plans and Service
// Quotas, with capacity, prices, quotas, its own bill and injected faults. It is written from the public API
// references and imports neither an SDK nor scrimp, so that both can be tested against it.
//
// Each region in a signature is a world of its own. Time is the cloud's (Options.Now); signatures are checked
// against the wall clock (Options.Wall), because a client signs with its own.
package awstest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/awstest/iam"
	"scrimp/internal/test/awstest/machine"
)

// Options configures the cloud. The zero value is a small cloud.
type Options struct {
	Types    []catalog.Type  // nil is Types()
	Zones    []catalog.Zone  // nil is Zones()
	Images   []catalog.Image // nil: one per architecture, in every region
	Account  string          // "" is 123456789012
	Key      string          // "" is AKIATESTTESTTESTTEST
	Secret   string          // "": random; see Server.Secret
	Token    string          // of the control path /_test/; "": random
	Listen   string          // address; "" is a free port of 127.0.0.1
	Page     int             // entries per response; 0: 1000, EC2's limit
	Seed     int64           // seed of names like i-…
	Prices   map[string]string
	Spot     map[catalog.Pool][]catalog.Price // prices of spot pools; other pools cost 3/10 of on-demand
	Capacity map[catalog.Pool]int             // instances that fit; other pools have no limit
	Quotas   map[string]int                   // vCPUs or counts by quota code, see Quotas; others have no limit
	Now      func() time.Time
	Wall     func() time.Time
	Spans    Spans
	Public   bool   // instances get a public address, as in a default subnet, and pay for it
	Net      string // private addresses; "": 172.31.0.0/16
	Run      *Run   // nil: instances are records only
	Literal  bool   // * and ? in filters of types are literal, as in other clouds but not EC2
}

// Spans are the durations of the cloud's operations.
type Spans struct {
	Pending   time.Duration // from launch to running, the start of its bill
	Failing   time.Duration // from launch to the end of an instance that never runs; 0: Pending
	Ending    time.Duration // from shutting-down to terminated
	Boot      time.Duration // from running to the first line of user data
	Rebalance time.Duration // from a rebalance recommendation to the notice
	Notice    time.Duration // from the notice to the end; 0 is 2 minutes
	Listed    time.Duration // how long a terminated instance is listed; 0: 1 hour
}

// Run makes instances processes on this host.
type Run struct{ Dir string }

// A Server is a running cloud.
type Server struct {
	URL    string
	Key    string
	Secret string
	Token  string
	o      Options
	signer *signer
	http   *http.Server
	done   chan struct{}
	stop   chan struct{}
	once   sync.Once
	// Host is this host's address for instances that are processes.
	Host     string
	machines *machine.Host // nil: instances are records only
	ticks    sync.WaitGroup

	mu        sync.Mutex
	faults    faults
	types     map[string]int
	regional  map[string]int64 // on-demand price by "type region" if it differs from us-east-1
	spot      map[catalog.Pool][]catalog.Step
	capacity  map[catalog.Pool]int
	quotas    map[string]int
	keys      map[string]identity
	net       netip.Prefix
	nextNet   uint32
	seq       int
	deleted   []*volume
	instances []*instance
	ended     []*instance // no longer listed; kept for the bill
	requests  []*spotRequest
	volumes   []*volume
	cards     []*card // network interfaces
	addresses []*address
	groups    []*group
	templates []*template
	fleets    []*fleet
	places    []*placement
	plans     []SavingsPlan
	reserved  []*reservation
	launched  map[string]*grant // by region and client token
	created   map[string]*created
	calls     map[string]int
}

type identity struct {
	secret, token, arn, id string
	until                  time.Time
	policies               []*iam.Policy
	session                iam.Session // of an assumed role
}

// New starts a cloud.
func New(o Options) (*Server, error) {
	o.fill()
	s := &Server{Key: o.Key, Secret: o.Secret, Token: o.Token, o: o, done: make(chan struct{}), stop: make(chan struct{}),
		types: map[string]int{}, regional: map[string]int64{}, spot: map[catalog.Pool][]catalog.Step{},
		capacity: map[catalog.Pool]int{},
		quotas:   map[string]int{}, launched: map[string]*grant{}, created: map[string]*created{}, calls: map[string]int{}}
	for k, t := range o.Types {
		s.types[t.Name] = k
	}
	if err := s.readPrices(); err != nil {
		return nil, err
	}
	for pool, n := range o.Capacity {
		s.capacity[pool] = n
	}
	for code, n := range o.Quotas {
		s.quotas[code] = n
	}
	s.keys = map[string]identity{o.Key: {secret: o.Secret, arn: "arn:aws:iam::" + o.Account + ":user/test",
		id: "AIDATESTTESTTESTTEST"}}
	prefix, err := netip.ParsePrefix(o.Net)
	if err != nil || !prefix.Addr().Is4() {
		return nil, fmt.Errorf("net %q is no IPv4 prefix like 172.31.0.0/16", o.Net)
	}
	s.net = prefix
	s.Host = lastOf(prefix)
	if o.Run != nil {
		if err := s.openHost(); err != nil {
			return nil, fmt.Errorf("start the test cloud: %w", err)
		}
	}
	if s.signer, err = newSigner(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("listen for the test cloud: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with Close
	}()
	return s, nil
}

// readPrices reads the prices of the options, and refuses one that is not an amount.
func (s *Server) readPrices() error {
	for _, t := range s.o.Types {
		if _, err := catalog.ParsePrice(t.OnDemand); err != nil {
			return fmt.Errorf("type %s: %w", t.Name, err)
		}
	}
	for key, price := range s.o.Prices {
		p, err := catalog.ParsePrice(price)
		if err != nil {
			return fmt.Errorf("price of %q: %w", key, err)
		}
		s.regional[key] = p
	}
	for pool, prices := range s.o.Spot {
		pool.Spot = true
		for _, p := range prices {
			n, err := catalog.ParsePrice(p.USD)
			if err != nil {
				return fmt.Errorf("spot price of %v: %w", pool, err)
			}
			s.spot[pool] = append(s.spot[pool], catalog.Step{From: p.From, Pico: n})
		}
	}
	return nil
}

func (o *Options) fill() {
	if o.Types == nil {
		o.Types = catalog.Types()
	}
	if o.Zones == nil {
		o.Zones = catalog.Zones()
	}
	if o.Images == nil {
		o.Images = catalog.Images()
	}
	for at, otherwise := range map[*string]string{&o.Account: "123456789012", &o.Key: "AKIATESTTESTTESTTEST",
		&o.Listen: "127.0.0.1:0", &o.Net: "172.31.0.0/16"} {
		if *at == "" {
			*at = otherwise
		}
	}
	for _, at := range []*string{&o.Secret, &o.Token} {
		if *at == "" {
			var b [20]byte
			_, _ = rand.Read(b[:]) // never fails
			*at = hex.EncodeToString(b[:])
		}
	}
	if o.Page == 0 {
		o.Page = 1000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Spans.Failing == 0 {
		o.Spans.Failing = o.Spans.Pending
	}
	if o.Spans.Notice == 0 {
		o.Spans.Notice = 2 * time.Minute
	}
	if o.Spans.Listed == 0 {
		o.Spans.Listed = time.Hour
	}
}

// Close stops the cloud and every instance.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		if s.http != nil {
			_ = s.http.Close()
			<-s.done
		}
		s.closeHost()
	})
}

// now returns the cloud's time in whole seconds, as in its responses and bills.
func (s *Server) now() time.Time { return s.o.Now().UTC().Truncate(time.Second) }

// wall returns the time for checks of signatures.
func (s *Server) wall() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Wall().Add(s.faults.skew)
}

// id returns a name like i-0123456789abcdef0. The same seed and order give the same names.
func (s *Server) id(prefix string) string {
	s.seq++
	return prefix + "-" + hash(fmt.Appendf(nil, "%d %d", s.o.Seed, s.seq))[:17]
}

// lastOf returns the last address of a net but one.
func lastOf(p netip.Prefix) string {
	a := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 31; bit++ {
		a[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(a).String()
}

func itoa(n int) string { return strconv.Itoa(n) }

// Session returns the session of an access key and its token; ok is false if there is none.
func (s *Server) Session(key, token string) (x iam.Session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, known := s.keys[key]
	if !known || who.session.Role == "" || who.token != token {
		return iam.Session{}, false
	}
	return who.session, true
}
