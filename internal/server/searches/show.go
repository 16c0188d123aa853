package searches

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/server/reply"
)

// show returns the search as the API shows it. The caller holds s.mu.
func (s *search) show() client.Search {
	p := s.plan
	v := client.Search{NewSearch: s.Def, User: s.User, Opened: s.Opened, Over: p.Over, Trials: len(p.Trials),
		Values: p.Values}
	if p.Timed {
		v.Seconds = new(p.Seconds)
	}
	if p.Priced {
		v.Spent = new(p.Spent)
	}
	if n, _ := p.Best(); n >= 0 {
		v.Best = s.trial(n)
	}
	return v
}

// trial returns a trial as the API shows it. The caller holds s.mu.
func (s *search) trial(n int) *client.SearchTrial {
	st, t := s.plan.Spec.Study, &s.plan.Trials[n]
	texts := s.plan.Texts(n)
	v := &client.SearchTrial{Number: n, Worker: t.Worker, State: t.State, JSON: st.JSON(texts),
		At: t.At(), Until: s.plan.Until(n), Max: st.Fidelity.Max}
	_ = json.Unmarshal([]byte(v.JSON), &v.Params) // an object that the study has written
	if len(t.Points) > 0 {
		if t.Priced {
			v.Cost = new(t.Spent)
		}
		if t.Timed {
			v.Seconds = new(t.Seconds)
		}
		if p := t.Points[len(t.Points)-1]; !p.Bad {
			v.Last = &p.Value
		}
	}
	if p, ok := s.plan.BestOf(n); ok {
		v.Best, v.BestAt = &p.Value, p.At
	}
	return v
}

// List lists the searches that the caller sees, by name.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	list, a := []client.Search{}, callerOf(r)
	all, err := d.all(r.Context())
	if err != nil {
		unread(err).Answer(w)
		return
	}
	for _, s := range all {
		if a.sees(s) {
			s.mu.Lock()
			list = append(list, s.show())
			s.mu.Unlock()
		}
	}
	slices.SortFunc(list, func(a, b client.Search) int { return strings.Compare(a.Name, b.Name) })
	reply.JSON(w, list)
}

func (d *Service) all(ctx context.Context) (list []*search, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.index(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		s, err := d.load(ctx, e.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// Trials lists the trials of a search, in the order in which they were chosen.
func (d *Service) Trials(w http.ResponseWriter, r *http.Request) {
	s, no := d.find(r.Context(), callerOf(r), r.PathValue("id"))
	if no != nil {
		no.Answer(w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []*client.SearchTrial{}
	for n := range s.plan.Trials {
		list = append(list, s.trial(n))
	}
	reply.JSON(w, list)
}

// Remove removes a search.
func (d *Service) Remove(w http.ResponseWriter, r *http.Request) {
	a := callerOf(r)
	s, no := d.find(r.Context(), a, r.PathValue("id"))
	switch {
	case no != nil:
	case !a.acts(s):
		no = &reply.Refusal{Status: http.StatusForbidden, Title: "the search " + s.Def.Name + " is another user's",
			Fix: "ask " + s.User + ", or an operator of its team"}
	default:
		if err := d.remove(r.Context(), s); err != nil {
			no = unsaved(err)
		}
	}
	if no != nil {
		no.Answer(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// remove takes a search out of the index, and empties its values in the store.
func (d *Service) remove(ctx context.Context, s *search) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.index(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(names, func(e entry) bool { return e.Name == s.Def.Name })
	if at < 0 || d.open[s.Def.Name] != s {
		return nil // somebody has removed it meanwhile
	}
	if err := d.putIndex(ctx, slices.Delete(slices.Clone(names), at, at+1)); err != nil {
		return err
	}
	delete(d.open, s.Def.Name)
	s.broken = true // a request that waits for it finds it no more
	for piece := range s.piece + 1 {
		if err := d.Meta.PutMeta(ctx, s.key(piece), ""); err != nil {
			return nil //nolint:nilerr // the search is removed; what remains of it counts for nothing
		}
	}
	return nil
}
