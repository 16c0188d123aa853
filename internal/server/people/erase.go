package people

import (
	"net/http"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Erase forgets the name and the address of a user for ever, and revokes their tokens. What the user did stays, as that
// of erased-1 and so on.
func (d *Service) Erase(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.EraseUser](w, r)
	if !ok {
		return
	}
	d.users.Lock()
	defer d.users.Unlock()
	id, known := d.Gate.People.ID(r.PathValue("id"))
	switch {
	case !known:
		reply.Problem(w, http.StatusNotFound, "that user is not known", "scrimp users lists them", nil)
		return
	case id == auth.CallerOf(r).User:
		reply.Problem(w, http.StatusConflict, "nobody erases themselves", "ask another admin", nil)
		return
	}
	var u identity.User
	left := false // of an erasure that failed
	v, now := api.Erasure{Logged: !identity.IsID(id), DryRun: b.DryRun}, time.Now().UTC()
	d.Gate.People.Read(func(b *identity.Book) {
		u, _ = b.User(id)
		for _, t := range b.Tokens() {
			if t.User == id && t.Live(now) {
				v.Tokens++
			}
		}
		_, left = b.Persons()[id]
		if u.Erased == 0 {
			left = true
			u = identity.User{Name: id, Grants: []identity.Grant{}, Off: true, Made: u.Made, Erased: b.Erasures() + 1}
		}
	})
	if !left {
		reply.Problem(w, http.StatusConflict, "that user is erased already", "scrimp users lists them", nil)
		return
	}
	v.As = identity.ErasedName(u.Erased)
	d.Gate.Control.Read(func(m *core.Machine) {
		for j := range m.Jobs() {
			if j.User() == id && !j.State().Over() {
				v.Jobs++
			}
		}
		for _, g := range m.State().Groups() {
			if g.User() == id && !g.Closed() {
				v.Groups++
			}
		}
	})
	if b.DryRun {
		auth.CallOf(r).Act.Detail = "dry run"
	} else if !d.change(w, r, id, identity.Change{User: &u, At: &now}) {
		return
	}
	reply.JSON(w, v)
}
