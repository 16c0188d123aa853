// Package people answers requests about users, teams and tokens, and about the audit trail.
package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/view/convert"
	"scrimp/internal/view/projection"
	"scrimp/internal/wire/api"
)

// Service creates and changes users, teams and tokens.
type Service struct {
	Gate *auth.Gate
	View *view.View                             // has the audit trail
	Used func(context.Context) map[string]int64 // bytes of disk used by each team with a limit

	minting *auth.Pace // limits the tokens that one user creates
	users   sync.Mutex // held from the read of a user to the write: a sign-in must not undo what an admin changes
}

// Rate limit for new tokens of one user: the log keeps each for ever.
const (
	tokensASecond = 1.0 / 60
	tokensAtOnce  = 20
)

// New returns a service that reads the audit trail from v.
func New(gate *auth.Gate, v *view.View, used func(context.Context) map[string]int64) *Service {
	return &Service{Gate: gate, View: v, Used: used, minting: auth.NewBurst(tokensASecond, tokensAtOnce)}
}

// change writes a change to the log and applies it to the identity book.
func (d *Service) change(w http.ResponseWriter, r *http.Request, object string, c identity.Change) bool {
	wrong, err := d.write(r, object, c)
	var is identity.Wrong
	switch {
	case errors.As(wrong, &is):
		reply.FieldProblem(w, http.StatusUnprocessableEntity, is.Field, is.Cause, is.Fix, nil)
	case wrong != nil:
		reply.Problem(w, http.StatusUnprocessableEntity, "the change is not valid",
			"send what GET /v1/openapi.json describes", wrong)
	case err != nil:
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
	default:
		return true
	}
	return false
}

// write is change without an answer: wrong says why the book does not allow the change, err why the log has it not.
func (d *Service) write(r *http.Request, object string, c identity.Change) (wrong, err error) {
	return d.Gate.People.Change(c, func() error {
		return d.Gate.Propose(r, object, d.Gate.Event(r, core.IdentityChanged{Change: c}))
	})
}

// Me returns the owner of the caller's token.
func (d *Service) Me(w http.ResponseWriter, r *http.Request) {
	c := auth.CallerOf(r)
	v := api.Me{User: c.User, Grants: convert.To[[]client.Grant](c.Grants), Best: convert.To[client.Role](c.Best())}
	d.Gate.People.Read(func(b *identity.Book) {
		if t, ok := b.Token(c.Token); ok {
			v.Token, v.Expires = t.ID, new(t.Expires)
		}
	})
	reply.JSON(w, v)
}

// Users lists users.
func (d *Service) Users(w http.ResponseWriter, _ *http.Request) {
	list := []client.User{}
	d.Gate.People.Read(func(b *identity.Book) {
		for _, u := range b.Users() {
			list = append(list, userOf(b, u))
		}
	})
	slices.SortFunc(list, func(x, y client.User) int { return strings.Compare(x.Name, y.Name) })
	reply.JSON(w, list)
}

// userOf converts a user for the API.
func userOf(b *identity.Book, u identity.User) client.User {
	who := b.Person(u.Name)
	return client.User{Name: who.Name, Grants: convert.To[[]client.Grant](reply.List(u.Grants)), Off: u.Off, Made: u.Made,
		Email: who.Email, Grouped: u.Grouped, Erased: u.Erased > 0}
}

// PutUser creates or changes a user.
func (d *Service) PutUser(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.SetUser](w, r)
	if !ok {
		return
	}
	d.users.Lock()
	defer d.users.Unlock()
	u := identity.User{Name: newID(), Made: time.Now().UTC()}
	who := identity.Person{Name: r.PathValue("id")}
	known := false
	d.Gate.People.Read(func(b *identity.Book) {
		var id string
		if id, known = b.ID(who.Name); known {
			u, _ = b.User(id)
			who = b.Person(id)
		}
	})
	if !known && b.Off != nil && *b.Off && b.Grants == nil && b.Email == nil {
		reply.FieldProblem(w, http.StatusNotFound, "name", "there is no user "+who.Name,
			"scrimp users lists the users; scrimp users set NAME --grant ROLE makes one", nil)
		return
	}
	if u.Erased > 0 {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "name", "user "+who.Name+" is erased", "make another user", nil)
		return
	}
	wasOff := u.Off
	if b.Grants != nil {
		u.Grants, u.Grouped = convert.To[[]identity.Grant](b.Grants), false
	}
	if b.Off != nil {
		u.Off = *b.Off
	}
	if b.Email != nil {
		who.Email = *b.Email
	}
	u.Grants, u.Email = reply.List(u.Grants), ""
	c := identity.Change{User: &u, Person: &who}
	if u.Off || wasOff { // a user who is on again gets new tokens: somebody else may have the old ones
		c.At = new(time.Now().UTC())
	}
	if d.change(w, r, u.Name, c) {
		var v client.User
		d.Gate.People.Read(func(b *identity.Book) { v = userOf(b, u) })
		reply.JSON(w, v)
	}
}

// newID returns the ID of a new user.
func newID() string {
	var chance [10]byte
	_, _ = rand.Read(chance[:]) // rand.Read never fails
	return identity.NewID(chance)
}

// Teams lists the teams that the caller sees.
func (d *Service) Teams(w http.ResponseWriter, r *http.Request) {
	list := []identity.Team{}
	d.Gate.People.Read(func(b *identity.Book) {
		for _, t := range b.Teams() {
			if auth.CallerOf(r).Role(t.Name) >= identity.Viewer {
				list = append(list, t)
			}
		}
	})
	used := d.Used(r.Context())
	shown := make([]client.Team, len(list))
	for i, t := range list {
		shown[i] = client.Team{Name: t.Name, Projects: t.Projects, Disk: t.Disk, DiskUsed: used[t.Name]}
	}
	reply.JSON(w, shown)
}

// PutTeam creates a team or changes its projects.
func (d *Service) PutTeam(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.SetTeam](w, r)
	if !ok {
		return
	}
	t := identity.Team{Name: r.PathValue("id"), Projects: b.Projects}
	d.Gate.People.Read(func(book *identity.Book) {
		was, _ := book.Team(t.Name)
		if t.Disk = was.Disk; t.Projects == nil {
			t.Projects = was.Projects
		}
	})
	if b.Disk != nil {
		t.Disk = *b.Disk
	}
	if d.change(w, r, t.Name, identity.Change{Team: &t}) {
		reply.JSON(w, client.Team{Name: t.Name, Projects: t.Projects, Disk: t.Disk})
	}
}

// shown converts a token for the API; good reports whether it opens the server.
func shown(t identity.Token, good bool) api.Token {
	v := api.Token{ID: t.ID, User: t.User, Most: convert.To[client.Role](t.Most), Note: t.Note, Made: t.Made,
		Expires: t.Expires, Live: good, Off: !good && t.Live(time.Now())}
	if !t.Revoked.IsZero() {
		v.Revoked = new(t.Revoked)
	}
	return v
}

// Tokens lists the caller's own tokens, or all tokens for an admin.
func (d *Service) Tokens(w http.ResponseWriter, r *http.Request) {
	list := []api.Token{}
	d.Gate.People.Read(func(b *identity.Book) {
		for _, t := range b.Tokens() {
			if c := auth.CallerOf(r); auth.Rules(c) || t.User == c.User {
				list = append(list, shown(t, b.Good(t, time.Now())))
			}
		}
	})
	reply.JSON(w, list)
}

// standardLife is the default lifetime of a token.
const standardLife = 90 * 24 * time.Hour

// MakeToken creates a token for the caller, or for any user if the caller is an admin.
func (d *Service) MakeToken(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.NewToken](w, r)
	if !ok {
		return
	}
	c := auth.CallerOf(r)
	if b.User == "" {
		b.User = c.User
	} else if id, known := d.Gate.People.ID(b.User); known {
		b.User = id
	} else if b.User != auth.OwnerName {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "user", fmt.Sprintf("user %q is not known", b.User),
			"scrimp users lists them", nil)
		return
	}
	if b.User != c.User && !auth.Rules(c) {
		reply.Problem(w, http.StatusForbidden, "a token of another user is made by an admin",
			"leave the user out for one of your own", nil)
		return
	}
	if !d.mayCreateToken(w, c) {
		return
	}
	role, life := convert.To[identity.Role](b.Most), cmp.Or(b.Life, standardLife)
	now := time.Now().UTC()
	if c.Most != identity.Nobody { // a limited token cannot create one with more rights or a later expiry
		if role == identity.Nobody || role > c.Most {
			role = c.Most
		}
		d.Gate.People.Read(func(book *identity.Book) {
			if own, ok := book.Token(c.Token); ok {
				life = min(life, own.Expires.Sub(now))
			}
		})
	}
	var chance [32]byte
	_, _ = rand.Read(chance[:]) // rand.Read never fails
	text, t := identity.Mint(chance, b.User, now, life)
	t.Most, t.Note = role, b.Note
	if d.change(w, r, t.ID+" of "+t.User, identity.Change{Token: &t}) {
		reply.JSON(w, api.MadeToken{Token: shown(t, true), Text: text})
	}
}

// mayCreateToken reports whether the caller may create a token now, and answers if they have created too many. The data
// folder's owner always may.
func (d *Service) mayCreateToken(w http.ResponseWriter, c identity.Caller) bool {
	if c.Token == "" {
		return true
	}
	ok, wait := d.minting.TakeMany(c.User, 1, time.Now())
	if !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		reply.Problem(w, http.StatusTooManyRequests, "too many tokens are made",
			"use those that there are: scrimp tokens lists them", nil)
	}
	return ok
}

// RevokeToken revokes the caller's own token, or any if the caller is an admin. A token limited to a role can revoke
// only itself and tokens limited to the same or a lower role, so that its finder cannot lock anyone out.
func (d *Service) RevokeToken(w http.ResponseWriter, r *http.Request) {
	id, c := r.PathValue("id"), auth.CallerOf(r)
	var t identity.Token
	known := false
	d.Gate.People.Read(func(b *identity.Book) { t, known = b.Token(id) })
	if !known || t.User != c.User && !auth.Rules(c) {
		reply.Problem(w, http.StatusNotFound, fmt.Sprintf("token %s is not known", id), "scrimp tokens lists them", nil)
		return
	}
	if c.Most != identity.Nobody && t.ID != c.Token && (t.Most == identity.Nobody || t.Most > c.Most) {
		reply.Problem(w, http.StatusForbidden, "this token is cut to "+c.Most.String()+", and that one may do more",
			"show the token itself, or one that may do as much", nil)
		return
	}
	if !t.Revoked.IsZero() { // repeating it changes nothing
		auth.CallOf(r).Written = true
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if d.change(w, r, t.ID+" of "+t.User, identity.Change{Revoke: id, At: new(time.Now().UTC())}) {
		w.WriteHeader(http.StatusNoContent)
	}
}

// Audit lists the audit trail, oldest first.
func (d *Service) Audit(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, limit := uint64(0), 200
	var err error
	if text := q.Get("after"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 63); err != nil {
			reply.FieldProblem(w, http.StatusBadRequest, "after", "after is not the number of an event",
				"give next of the page before", nil)
			return
		}
	}
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 1000 {
			reply.FieldProblem(w, http.StatusBadRequest, "limit", "limit is not a number from 1 to 1000",
				"leave it out for 200", nil)
			return
		}
	}
	page, err := d.acts(r.Context(), after, limit, q.Get("user"))
	var behind *projection.BehindError
	if errors.As(err, &behind) {
		reply.Problem(w, http.StatusServiceUnavailable, "the answer is still being built from the log",
			"ask again in a minute", err)
		return
	}
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "cannot read the log",
			"scrimp ledger verify says where it is broken", err)
		return
	}
	reply.JSON(w, page)
}

// actOf converts an act for the API.
func actOf(event uint64, a identity.Act, names *identity.Names) api.Act {
	if strings.Contains(a.Route, "/v1/users/") || strings.Contains(a.Route, "/v1/tokens") {
		a.Object = names.Said(a.Object)
	}
	a.Detail = names.Said(a.Detail)
	return api.Act{Event: event, At: a.At, Who: a.Who, Token: a.Token, From: a.From, Route: a.Route, Object: a.Object,
		Outcome: a.Outcome, Detail: a.Detail}
}

// acts returns a page of the audit trail; a non-empty user selects the acts of one user.
func (d *Service) acts(ctx context.Context, after uint64, limit int, user string) (api.Audit, error) {
	page := api.Audit{Acts: []api.Act{}}
	of := view.Everybody()
	if user != "" {
		of = view.OfUser(user)
	}
	records, err := d.View.Acts(ctx, d.Gate.Control.Durable(), of, after, limit)
	if err != nil {
		return page, err
	}
	names := d.Gate.People.Names()
	for _, rec := range records {
		e, _, err := replay.Decode(rec)
		if err != nil {
			return page, err
		}
		if b, ok := e.Body.(core.Audited); ok {
			page.Acts = append(page.Acts, actOf(rec.Seq, b.Act, names))
		}
	}
	if len(records) == limit {
		page.Next = records[limit-1].Seq
	}
	return page, nil
}
