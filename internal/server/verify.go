package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
)

// each reads the whole log.
func (s *Server) each(ctx context.Context, f func(seq uint64, e core.Event, d []core.Decision) error) error {
	for after := uint64(0); ; {
		records, err := s.store.Records(ctx, after, 1000)
		if err != nil || len(records) == 0 {
			return err
		}
		for _, r := range records {
			after = r.Seq
			e, d, err := control.Decode(r)
			if err != nil {
				return err
			}
			if err := f(r.Seq, e, d); err != nil {
				return err
			}
		}
	}
}

// getVerify replays the whole log and compares it with the ledger and the state.
func (s *Server) getVerify(w http.ResponseWriter, r *http.Request) {
	v := api.Verified{OK: true, Currency: "USD"}
	fail := func(err error) {
		if err != nil && v.OK {
			v.OK, v.Problem = false, err.Error()
		}
	}
	fail(s.verify(r.Context(), &v))
	answer(w, v)
}

func (s *Server) verify(ctx context.Context, v *api.Verified) error {
	var postings []ledger.Posting
	for p, err := range s.store.Postings(ctx, "default", "") {
		if err != nil {
			return err
		}
		postings = append(postings, p)
	}
	m := core.New()
	next := 0
	err := s.each(ctx, func(seq uint64, e core.Event, d []core.Decision) error {
		out := m.Replay(e, d)
		for _, p := range out.Postings {
			if next >= len(postings) {
				return nil // written since the postings were read
			}
			if postings[next].Hash != p.Hash {
				return fmt.Errorf("posting %d of event %d is not what the event led to", p.Line, seq)
			}
			next++
		}
		return nil
	})
	v.Events, v.Postings, v.Head = m.Seq(), len(postings), m.Head("default")
	if err != nil {
		return err
	}
	if next < len(postings) {
		return errors.New("there are postings that no event led to")
	}
	for j := range m.Jobs() {
		v.Jobs++
		if closed(j) {
			v.Cost = v.Cost.Add(j.Settled())
		}
	}
	return nil
}
