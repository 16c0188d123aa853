// Package searches keeps searches whose trials a user's own program trains. They rent nothing and move no money, so the
// core does not know them. A search is the list of what it was asked and told; a replay rebuilds its state. The list is
// in the store beside the log, in pieces, so that backups and every kind of database have it.
package searches

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/group"
	"scrimp/internal/work/loop"
)

// Meta stores small values by key.
type Meta interface {
	PutMeta(ctx context.Context, key, value string) error
	Meta(ctx context.Context, key string) (string, bool, error)
}

// Service answers requests about searches.
type Service struct {
	Meta    Meta
	Gate    *auth.Gate
	Control *control.Control

	mu    sync.Mutex // guards the index, and which searches are loaded
	open  map[string]*search
	names []entry // nil: not read yet
}

// entry is a search in the index.
type entry struct {
	Name string `json:"name"`
	User string `json:"user"`
}

// Bounds of the searches that a server keeps.
const (
	mostSearches = 200
	mostOfUser   = 50
)

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,62}$`)

// asker is who asks: a user, or a job for its user.
type asker struct {
	name string // of the user
	team string // of the job
	job  string // ID; empty: a user
	user identity.Caller
}

// sees reports whether the asker may see a search.
func (a asker) sees(s *search) bool {
	if a.job != "" {
		return s.Def.Team == a.team && s.User == a.name
	}
	return a.user.Role(s.Def.Team) >= identity.Viewer
}

// acts reports whether the asker may ask for trials and tell values.
func (a asker) acts(s *search) bool {
	if a.job != "" {
		return a.sees(s)
	}
	role := a.user.Role(s.Def.Team)
	return role >= identity.Operator || role >= identity.Submitter && s.User == a.name
}

func callerOf(r *http.Request) asker {
	c := auth.CallerOf(r)
	return asker{name: c.User, user: c}
}

// Open opens a search.
func (d *Service) Open(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.NewSearch](w, r)
	if !ok {
		return
	}
	a := callerOf(r)
	if no := d.place(a, &b); no != nil {
		no.Answer(w)
		return
	}
	d.answer(w, r, a, client.SearchCall{Name: b.Name, Open: &b}, false)
}

// place sets the team of a new search.
func (d *Service) place(a asker, b *client.NewSearch) *reply.Refusal {
	switch {
	case a.job != "":
		b.Team = a.team
		return nil
	case a.user.Token == "" && a.name == auth.OwnerName: // on their own server
		return nil
	}
	var err error
	d.Gate.People.Read(func(book *identity.Book) { b.Team, _, _, err = book.Place(a.user, b.Team, "") })
	if err != nil {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "team", Title: "the search cannot be placed",
			Fix: "write team: one that you may submit in", Err: err}
	}
	return nil
}

// Ask answers what a worker trains next.
func (d *Service) Ask(w http.ResponseWriter, r *http.Request) {
	if b, ok := reply.Body[client.AskTrial](w, r); ok {
		d.answer(w, r, callerOf(r), client.SearchCall{Name: r.PathValue("id"), Ask: &b}, true)
	}
}

// Told takes a value of a trial.
func (d *Service) Told(w http.ResponseWriter, r *http.Request) {
	if b, ok := reply.Body[client.TellTrial](w, r); ok {
		d.answer(w, r, callerOf(r), client.SearchCall{Name: r.PathValue("id"), Told: &b}, true)
	}
}

// Get shows a search.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	d.answer(w, r, callerOf(r), client.SearchCall{Name: r.PathValue("id")}, false)
}

// Call answers a call of the program of a running attempt.
func (d *Service) Call(w http.ResponseWriter, r *http.Request) {
	attempt, _, ok := d.Gate.Attempt(w, r)
	if !ok {
		return
	}
	b, ok := reply.Body[client.SearchCall](w, r)
	if !ok {
		return
	}
	a := asker{}
	d.Control.Read(func(m *core.Machine) {
		if at, ok := m.Attempt(attempt); ok {
			j := m.State().Job(at.Job())
			a.job, a.name, a.team = at.Job(), j.User(), j.Terms().Owner.Team
		}
	})
	if b.Open != nil {
		b.Open.Name = cmp.Or(b.Open.Name, b.Name)
		if no := d.place(a, b.Open); no != nil {
			no.Answer(w)
			return
		}
	}
	d.answer(w, r, a, b, true)
}

// answer does one call. Whole answers have the trial and what to do with it; others are the search alone.
func (d *Service) answer(w http.ResponseWriter, r *http.Request, a asker, b client.SearchCall, whole bool) {
	v, no := d.do(r.Context(), a, b)
	switch {
	case no != nil:
		no.Answer(w)
	case whole:
		reply.JSON(w, v)
	default:
		reply.JSON(w, v.Search)
	}
}

func (d *Service) do(ctx context.Context, a asker, b client.SearchCall) (v client.SearchAnswer, no *reply.Refusal) {
	if b.Open != nil {
		if no := d.opens(ctx, a, *b.Open); no != nil {
			return v, no
		}
	}
	s, no := d.find(ctx, a, b.Name)
	if no != nil {
		return v, no
	}
	if (b.Ask != nil || b.Told != nil) && !a.acts(s) {
		return v, &reply.Refusal{Status: http.StatusForbidden, Title: "the search " + s.Def.Name + " is another user's",
			Fix: "ask " + s.User + ", or an operator of its team"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken { // what was not saved is forgotten: the next request reads the search again
		d.forget(s)
		return v, unsaved(nil)
	}
	answer := loop.Answer{Trial: -1}
	switch {
	case b.Ask != nil:
		answer, v.Note, no = d.asks(ctx, s, a, *b.Ask)
	case b.Told != nil:
		answer, no = d.tells(ctx, s, a, *b.Told)
	}
	if no != nil {
		if s.broken {
			d.forget(s)
		}
		return v, no
	}
	v.Do, v.Search = answer.Do, s.show()
	if answer.Trial >= 0 {
		v.Trial = s.trial(answer.Trial)
	}
	return v, nil
}

func unsaved(err error) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "the change was not saved", Fix: "try again",
		Err: err}
}

// opens opens a search unless it exists.
func (d *Service) opens(ctx context.Context, a asker, b client.NewSearch) *reply.Refusal {
	spec, no := specOf(b)
	if no != nil {
		return no
	}
	taken := false
	d.Control.Read(func(m *core.Machine) { taken = m.State().Group(b.Name) != nil })
	if taken {
		return &reply.Refusal{Status: http.StatusConflict, Field: "name", Title: "a group of jobs is named " + b.Name,
			Fix: "give the search another name"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.index(ctx)
	if err != nil {
		return unread(err)
	}
	if has(names, b.Name) {
		return d.sameAs(ctx, a, b)
	}
	if no := crowded(names, a.name); no != nil {
		return no
	}
	planned, err := loop.New(spec)
	if err != nil {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "the search is not valid", Err: err,
			Fix: "correct its study"}
	}
	now := time.Now().UTC()
	s := &search{head: head{Def: b, User: a.name, Opened: now, Generation: now.UnixNano()}, plan: planned}
	if err := d.create(ctx, s, append(slices.Clone(names), entry{b.Name, a.name})); err != nil {
		return unsaved(err)
	}
	return nil
}

func has(names []entry, name string) bool {
	return slices.ContainsFunc(names, func(e entry) bool { return e.Name == name })
}

// crowded refuses another search of a user if there are too many.
func crowded(names []entry, user string) *reply.Refusal {
	own := 0
	for _, e := range names {
		if e.User == user {
			own++
		}
	}
	if len(names) < mostSearches && own < mostOfUser {
		return nil
	}
	return &reply.Refusal{Status: http.StatusConflict, Fix: "remove one with scrimp tune remove, which sends DELETE " +
		"/v1/searches/NAME", Title: fmt.Sprintf("the server keeps %d searches, %d of them yours, and may keep %d, and %d of "+
		"a user", len(names), own, mostSearches, mostOfUser)}
}

// sameAs refuses to open another search with the name of one that exists.
func (d *Service) sameAs(ctx context.Context, a asker, b client.NewSearch) *reply.Refusal {
	s, err := d.load(ctx, b.Name)
	if err != nil {
		return unread(err)
	}
	other := &reply.Refusal{Status: http.StatusConflict, Field: "name",
		Title: "there is another search named " + b.Name,
		Fix:   "give this one another name, or remove that one: scrimp tune remove " + b.Name}
	is, _ := json.Marshal(s.Def) // both were decoded from JSON
	asked, _ := json.Marshal(b)
	switch {
	case !a.sees(s):
		return other
	case !bytes.Equal(is, asked):
		other.Title += ": " + difference(is, asked)
		return other
	}
	return nil
}

// find returns a search that the asker sees.
func (d *Service) find(ctx context.Context, a asker, name string) (*search, *reply.Refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.index(ctx)
	if err != nil {
		return nil, unread(err)
	}
	unknown := &reply.Refusal{Status: http.StatusNotFound, Code: client.JobUnknown,
		Title: fmt.Sprintf("there is no search %.80q", name), Fix: "scrimp tune searches lists them"}
	if !has(names, name) {
		return nil, unknown
	}
	s, err := d.load(ctx, name)
	if err != nil {
		return nil, unread(err)
	}
	if !a.sees(s) {
		return nil, unknown
	}
	return s, nil
}

func unread(err error) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the searches", Fix: "try again",
		Err: err}
}

// specOf returns the definition of a search for the planner.
func specOf(b client.NewSearch) (spec loop.Spec, no *reply.Refusal) {
	wrong := func(field string, err error) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: "the search is not valid",
			Fix: "correct " + field, Err: err}
	}
	if !nameForm.MatchString(b.Name) {
		return spec, wrong("name", fmt.Errorf("a name begins with a letter and has letters, digits, -, _ and . only, 63 at "+
			"most"))
	}
	st, field, err := group.SpecOf(&b.Study)
	if err != nil {
		return spec, wrong(field, err)
	}
	spec = loop.Spec{Study: st, Workers: b.Study.AtOnce, Budget: b.Budget}
	if field, err := spec.Check(); err != nil {
		return spec, wrong(field, err)
	}
	return spec, nil
}
