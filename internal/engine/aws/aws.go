//go:build !local

// Package aws rents machines of Amazon EC2: instances of fleets that it requests at most once per token, with
// scrimp's agent started by user data. The tags of the instances contain all that is known of a request, so that any
// server finds it.
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
	"scrimp/internal/engine/aws/prepare"
	"scrimp/internal/engine/aws/reservation"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/market"
)

// Kind is the kind of this package's engines.
const Kind = "aws"

// usual is EC2's typical timing. DescribeInstances may omit an instance for some time after its launch.
var usual = engine.Timing{Poll: 10 * time.Second, Sweep: time.Minute, Boot: 10 * time.Minute, Start: 2 * time.Minute,
	Consistency: 2 * time.Minute, GrantWait: time.Minute, Bills: 5 * time.Minute}

// Driver implements engine.Driver for one account and region.
type Driver struct {
	name string
	with setting.With
	log  *slog.Logger

	now     func() time.Time // wall time; tests move it
	visible time.Duration    // how long a launch waits until EC2 lists what it has granted
	looking chan struct{}    // serialises connecting
	book    *reservation.Book
	seller  *sale.Seller
	prepare *prepare.Preparer

	mu       sync.Mutex
	api      *account.Client // nil: not connected
	index    *sale.Index     // nil: not read
	turns    engine.Turns
	requests map[string]*request  // by key
	seen     map[string]*seen     // by id of the instance
	recent   map[string]time.Time // ids that EC2 has named, and when
	swept    time.Time            // when leftovers were last removed
	odd      map[string]string    // how machines differ from the order, by id
}

// request is what this server has requested under a key.
type request struct {
	asked     int      // fleets that have answered
	granted   []string // ids, in the order of granting
	cancelled bool
	unsure    time.Time   // last request for a fleet whose answer is unknown; zero: all answers are known
	ways      []sale.Sale // pools for the next fleet, the same ones until it has answered
	mismatch  time.Time   // since when EC2 has said that a token was used for something else; zero: it does not
	at        time.Time   // last request
}

var (
	_ engine.Driver     = (*Driver)(nil)
	_ engine.Canceller  = (*Driver)(nil)
	_ engine.Identifier = (*Driver)(nil)
	_ engine.Lender     = (*Driver)(nil)
	_ engine.Exporter   = (*Driver)(nil)
)

// Open opens the engine of an account and region without a request to AWS, so it succeeds while the account is
// unreachable.
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
	case err != nil && h.Trial: // doctor checks the rest all the same
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
	d.prepare.Server = agents
	if err := d.book.Load(&h); err != nil {
		return engine.Engine{}, err
	}
	if d.prepare.Build, err = hashOf(h.Exe); err != nil {
		return engine.Engine{}, err
	}
	if h.Log != nil {
		d.log, d.book.Log = h.Log, h.Log
	}
	client := engine.DefaultClient()
	client.Timeout = time.Minute // the price list of a region has many pages
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: s.Timing.Over(usual), AgentURL: agents,
		Users: cmp.Or(s.Users, engine.UsersAuto), Seats: int(s.Seats), Client: &client}, nil
}

func newDriver(name string, with setting.With) *Driver {
	d := &Driver{name: name, with: with, log: slog.New(slog.DiscardHandler), now: time.Now, visible: visible,
		looking:  make(chan struct{}, 1),
		requests: map[string]*request{}, seen: map[string]*seen{}, recent: map[string]time.Time{},
		odd: map[string]string{}}
	d.prepare = prepare.New(name, &d.with)
	d.book = reservation.New(name, &d.with, func() time.Time { return d.now() })
	d.seller = sale.New(d.book, d.inHeld)
	return d
}

// connected returns the client, once AWS has confirmed the caller's identity.
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
	sales := d.seller.Sales(x)
	offers, quotes := make([]market.Offer, len(sales)), make([]market.Quote, len(sales))
	for n := range sales {
		offers[n], quotes[n] = sales[n].Offer, sales[n].Quote
	}
	return offers, quotes, nil
}

// hashOf returns the SHA-256 of a program in hexadecimal; path "" means this program.
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
