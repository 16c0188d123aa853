//go:build !local

// Package aws rents machines of Amazon EC2: instances of a fleet that is asked for once, with scrimp's agent begun by
// their user data. All that is known of a request lies in the tags of its instances, so that any server finds it.
package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Kind is what engines of this package are called.
const Kind = "aws"

// usual is how EC2 behaves. DescribeInstances may lack an instance for some time after its launch.
var usual = engine.Timing{Poll: 10 * time.Second, Sweep: time.Minute, Boot: 10 * time.Minute,
	Consistency: 2 * time.Minute, GrantWait: time.Minute, Bills: 5 * time.Minute}

// Driver implements engine.Driver for one account and region.
type Driver struct {
	name   string
	with   setting.With
	server string // address that agents are given
	build  string // first digits of the hash of the program that machines fetch
	log    *slog.Logger

	now     func() time.Time // the wall's; tests move it
	visible time.Duration    // how long a launch waits until EC2 lists what it has granted
	looking chan struct{}    // one connects at a time

	mu       sync.Mutex
	api      *account.Client // nil: not connected
	index    *index          // nil: not read
	turns    engine.Turns
	requests map[string]*request          // by key
	seen     map[string]*seen             // by id of the instance
	recent   map[string]time.Time         // ids that EC2 has named, and when
	template map[string]template          // by what is in it
	full     map[market.OfferID]time.Time // when there was no capacity last
	swept    time.Time                    // when what is left over was removed last
	groups   map[string]string            // security groups by network and name
	terms    *terms                       // what reservations have cost
	odd      map[string]string            // machines that are not what was ordered: how, by id
}

// request is what this server has asked for with a key.
type request struct {
	asked     int      // fleets that have answered
	granted   []string // ids, in the order in which they were granted
	cancelled bool
	unsure    time.Time // a fleet was asked for last whose answer is not known; zero: all are
	ways      []sale    // that the next fleet is asked for from: the same each time until it has answered
	mismatch  time.Time // since when EC2 says that a token was used for something else; zero: it does not
	at        time.Time // it was asked for last
}

// rates are what an hour of a machine costs, by its parts.
type rates struct {
	machine, disk, address money.Rate
	currency               money.Currency
}

func (r rates) sum() money.Rate { return r.machine + r.disk + r.address }

var (
	_ engine.Driver     = (*Driver)(nil)
	_ engine.Canceller  = (*Driver)(nil)
	_ engine.Identifier = (*Driver)(nil)
	_ engine.Lender     = (*Driver)(nil)
)

// Open opens the engine of an account and region. It asks nobody: an account that cannot be reached yet is no error.
func Open(_ context.Context, s engine.Setting, h engine.Host) (engine.Engine, error) {
	with, err := setting.Read(&s)
	if err != nil {
		return engine.Engine{}, err
	}
	if s.Agents == "" || s.Agents == "socket" || s.Agents == "ssh" {
		return engine.Engine{}, errors.New(
			"agents: machines of EC2 do not reach the server's socket: write agents: listen, or " +
				"the URL by which they reach the server, such as https://scrimp.example.org:7077",
		)
	}
	agents, err := h.AgentURL(s)
	switch {
	case err != nil && h.Trial: // what there is besides is looked at all the same
		agents = ""
	case err != nil && s.Agents != "listen":
		return engine.Engine{}, err
	case err != nil:
		return engine.Engine{}, errors.New(
			"agents: listen: the server listens on no address, or on any port that is free: " +
				"start it with scrimp serve --listen HOST:PORT, an address that machines of EC2 reach, or write its URL",
		)
	}
	d := newDriver(s.Name, with)
	d.server = agents
	if d.terms, err = readTerms(&h, s.Name); err != nil {
		return engine.Engine{}, err
	}
	if d.build, err = hashOf(h.Exe); err != nil {
		return engine.Engine{}, err
	}
	if h.Log != nil {
		d.log = h.Log
	}
	client := engine.DefaultClient()
	client.Timeout = time.Minute // the price list of a region has many pages
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: s.Timing.Over(usual), AgentURL: agents,
		Users: cmp.Or(s.Users, engine.UsersAuto), Seats: int(s.Seats), Client: &client}, nil
}

func newDriver(name string, with setting.With) *Driver {
	return &Driver{name: name, with: with, log: slog.New(slog.DiscardHandler), now: time.Now, visible: visible,
		looking:  make(chan struct{}, 1),
		requests: map[string]*request{}, seen: map[string]*seen{}, recent: map[string]time.Time{},
		template: map[string]template{}, groups: map[string]string{}, full: map[market.OfferID]time.Time{},
		terms: &terms{Of: map[market.OfferID]*contract{}}, odd: map[string]string{}}
}

// connected is AWS, once it has said who we are.
func (d *Driver) connected(ctx context.Context) (*account.Client, error) {
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	d.mu.Lock()
	a := d.api
	d.mu.Unlock()
	if a != nil {
		return a, context.Cause(ctx)
	}
	a, err := account.Connect(ctx, &d.with)
	if err != nil {
		return nil, d.explain(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.api = a
	return a, nil
}

// Offers implements engine.Driver.
func (d *Driver) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	x, err := d.indexed(ctx)
	if err != nil {
		return nil, nil, d.explain(err)
	}
	sales := d.sales(x)
	offers, quotes := make([]market.Offer, len(sales)), make([]market.Quote, len(sales))
	for n := range sales {
		offers[n], quotes[n] = sales[n].offer, sales[n].quote
	}
	return offers, quotes, nil
}

// hashOf is the SHA-256 of a program, in hexadecimal digits; of this one where path is "".
func hashOf(path string) (string, error) {
	var err error
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return "", fmt.Errorf("find this program: %w", err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the program that machines fetch: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read the program that machines fetch: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
