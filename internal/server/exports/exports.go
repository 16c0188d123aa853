// Package exports fetches the bills that providers export to buckets, and keeps them as an import does.
package exports

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/client"
	"scrimp/internal/content/blob"
	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
)

// Keeper keeps bills, as bills.Service does.
type Keeper interface {
	Keep(ctx context.Context, rows io.Reader, names []string, by string) ([]client.ImportedBill, *reply.Refusal)
	Closed(ctx context.Context, month string) (bool, error)
}

var _ Keeper = (*bills.Service)(nil)

// Source is the export of an engine's bill.
type Source struct {
	Engine string
	engine.Export
}

// Fetcher fetches exports: on their schedule, and when asked. It remembers what it has imported.
type Fetcher struct {
	Sources []Source
	Bills   Keeper
	Meta    bills.Meta
	Dir     string // the data folder
	Room    disk.Room
	Log     *slog.Logger
	Now     func() time.Time
	Open    func(ctx context.Context, e engine.Export) (*gocloud.Bucket, error)
	Pause   func(ctx context.Context, d time.Duration) error // between two tries

	turn chan struct{} // holds the fetch in progress
}

// New prepares a fetcher for the engines that export their bill.
func New(f *Fetcher, engines []engine.Engine) *Fetcher {
	f.Now, f.Pause, f.turn = time.Now, wait.For, make(chan struct{}, 1)
	f.Open = func(ctx context.Context, e engine.Export) (*gocloud.Bucket, error) {
		return blob.OpenReading(ctx, e.Address, within(e.Prefix))
	}
	for _, e := range engines {
		if d, ok := e.Driver.(engine.Exporter); ok {
			if x, declared := d.Exports(); declared {
				f.Sources = append(f.Sources, Source{e.Name, x})
			}
		}
	}
	return f
}

// within returns the prefix that the keys of an export begin with.
func within(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix + "/"
}

// ErrNone says that an engine has no export to fetch.
var ErrNone = errors.New("no bill is exported for it")

// state is what is known of an export, stored by engine.
type state struct {
	From    string    `json:"from"` // a change of the setting makes the rest void
	Tried   time.Time `json:"tried"`
	Fetched time.Time `json:"fetched"`
	Error   string    `json:"error"`
	Fails   int       `json:"fails"` // in a row, of what another try may help
	Periods []period  `json:"periods"`
}

// period is a billing period of an export.
type period struct {
	client.BillPeriod
	Digest string `json:"digest"` // of the versions of the parts that were imported last
}

const stateMeta = "bill_exports"

func (f *Fetcher) load(ctx context.Context) (all map[string]*state, err error) {
	all = map[string]*state{}
	text, ok, err := f.Meta.Meta(ctx, stateMeta)
	if err != nil || !ok {
		return all, err
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read the list of fetched bills: %w", err)
	}
	return all, nil
}

// of returns what is known of a source.
func (f *Fetcher) of(ctx context.Context, s *Source) (*state, error) {
	all, err := f.load(ctx)
	if err != nil {
		return nil, err
	}
	if st := all[s.Engine]; st != nil && st.From == s.String() {
		return st, nil
	}
	return &state{From: s.String()}, nil
}

// save stores the state of an engine, and forgets engines without an export. The caller has the turn.
func (f *Fetcher) save(ctx context.Context, name string, st *state) error {
	all, err := f.load(ctx)
	if err != nil {
		return err
	}
	for old := range all {
		if !slices.ContainsFunc(f.Sources, func(s Source) bool { return s.Engine == old }) {
			delete(all, old)
		}
	}
	all[name] = st
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return f.Meta.PutMeta(ctx, stateMeta, string(text))
}

// The wait after failures, which doubles up to the export's own.
const firstAgain = 15 * time.Minute

// next returns when to look again.
func (st *state) next(every time.Duration) time.Time {
	if st.Tried.IsZero() {
		return time.Time{}
	}
	if st.Fails > 0 {
		every = min(every, firstAgain<<min(st.Fails-1, 10))
	}
	return st.Tried.Add(every)
}

// List returns what is known of every export.
func (f *Fetcher) List(ctx context.Context) ([]client.BillExport, error) {
	list := []client.BillExport{}
	for i := range f.Sources {
		st, err := f.of(ctx, &f.Sources[i])
		if err != nil {
			return nil, err
		}
		list = append(list, shown(&f.Sources[i], st))
	}
	return list, nil
}

func shown(s *Source, st *state) client.BillExport {
	v := client.BillExport{Engine: s.Engine, From: st.From, Every: s.Every.Seconds(), Tried: st.Tried, Fetched: st.Fetched,
		Next: st.next(s.Every), Error: st.Error, Periods: []client.BillPeriod{}}
	for _, p := range st.Periods {
		v.Periods = append(v.Periods, p.BillPeriod)
	}
	return v
}

// Run fetches the exports on their schedule until ctx ends.
func (f *Fetcher) Run(ctx context.Context) {
	if len(f.Sources) == 0 {
		<-ctx.Done()
		return
	}
	f.sweep()
	for pause := time.Duration(0); f.Pause(ctx, pause) == nil; {
		pause = f.due(ctx)
	}
}

// Pauses of Run.
const (
	mostPause  = time.Hour
	leastPause = time.Second
)

// due fetches the exports that are due, and returns when to look again.
func (f *Fetcher) due(ctx context.Context) time.Duration {
	pause := mostPause
	for i := range f.Sources {
		s := &f.Sources[i]
		st, err := f.of(ctx, s)
		if err == nil && !st.next(s.Every).After(f.Now()) {
			_, err = f.Fetch(ctx, s.Engine, "engine "+s.Engine)
			if err == nil {
				st, err = f.of(ctx, s)
			}
		}
		switch {
		case ctx.Err() != nil:
			return pause
		case err != nil:
			f.Log.Warn("cannot fetch the bill", "engine", s.Engine, "error", err)
			pause = min(pause, firstAgain)
		default:
			pause = min(pause, max(leastPause, st.next(s.Every).Sub(f.Now())))
		}
	}
	return pause
}

// Fetch fetches the export of an engine now. What the bucket refuses, and what parts have, is in the answer; err is an
// error of the server itself.
func (f *Fetcher) Fetch(ctx context.Context, name, by string) (client.BillExport, error) {
	at := slices.IndexFunc(f.Sources, func(s Source) bool { return s.Engine == name })
	if at < 0 {
		return client.BillExport{}, ErrNone
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return client.BillExport{}, ctx.Err()
	}
	s := &f.Sources[at]
	st, err := f.of(ctx, s)
	if err != nil {
		return client.BillExport{}, err
	}
	r := &round{f: f, s: s, st: st, by: by}
	err = r.all(ctx)
	if ctx.Err() != nil {
		return client.BillExport{}, ctx.Err()
	}
	st.Tried = f.Now().UTC().Truncate(time.Second)
	if st.Error = ""; err != nil {
		st.Error = line(err.Error())
	} else {
		st.Fetched = st.Tried
	}
	if st.Fails++; err == nil && !r.again {
		st.Fails = 0
	}
	if err := f.save(ctx, name, st); err != nil {
		return client.BillExport{}, err
	}
	f.log(s, st, r.imported)
	return shown(s, st), nil
}

// log reports a fetch to the server's log.
func (f *Fetcher) log(s *Source, st *state, imported int) {
	if st.Error != "" {
		f.Log.Warn("cannot fetch the bill", "engine", s.Engine, "from", st.From, "error", st.Error)
	}
	for _, p := range st.Periods {
		if p.Problem != "" {
			f.Log.Warn("a bill is not imported", "engine", s.Engine, "month", p.Month, "key", p.Key, "error", p.Problem)
		}
	}
	if imported > 0 {
		f.Log.Info("imported bills", "engine", s.Engine, "from", st.From, "periods", imported)
	}
}

// folderMark begins the name of the folder that parts are fetched into.
const folderMark = ".fetch-"

// sweep removes what a crash left.
func (f *Fetcher) sweep() {
	old, _ := filepath.Glob(filepath.Join(bills.Folder(f.Dir), folderMark+"*")) // the pattern is a constant
	for _, path := range old {
		_ = os.RemoveAll(path) // the next start tries again
	}
}

// mostText bounds a stored error.
const mostText = 500

// line returns a text in one line, bounded.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return text
}

// newestFirst orders periods.
func newestFirst(a, b client.BillPeriod) int {
	return cmp.Or(strings.Compare(b.Month, a.Month), strings.Compare(a.Export, b.Export))
}

// Handle fetches the export of an engine at a user's request.
func (f *Fetcher) Handle(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.FetchBills](w, r)
	if !ok {
		return
	}
	v, err := f.Fetch(r.Context(), b.Engine, auth.CallerOf(r).User)
	switch {
	case errors.Is(err, ErrNone):
		reply.FieldProblem(w, http.StatusNotFound, "engine", fmt.Sprintf("no engine %.60q fetches a bill", b.Engine),
			"scrimp bill list names those that do; bills under with of an engine of kind aws declares one", nil)
	case err != nil:
		reply.Problem(w, http.StatusServiceUnavailable, "the bill was not fetched", "try again", err)
	default:
		auth.CallOf(r).Act.Object = b.Engine
		reply.JSON(w, v)
	}
}
