package reports

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// rows is a format of exported charges.
type rows interface {
	Header() []string
	Row(room []string, c charge.Charge) []string
}

// ExportFocus sends the costs of a span as a FOCUS CSV file.
func (b *Books) ExportFocus(w http.ResponseWriter, r *http.Request) {
	v, err := focus.ParseVersion(r.URL.Query().Get("version"))
	if err != nil {
		reply.FieldProblem(w, http.StatusBadRequest, "version", "this version of FOCUS is not supported",
			"write "+focus.Versions, err)
		return
	}
	b.export(w, r, "scrimp-focus-"+v.String()+".csv", focus.NewWriter(v))
}

// ExportCharges sends the costs of a span as a CSV file for spreadsheets.
func (b *Books) ExportCharges(w http.ResponseWriter, r *http.Request) {
	b.export(w, r, "scrimp-costs.csv", charge.Table{})
}

// export streams the charges that the caller may see. Memory holds at most one stride of events of the ledger.
func (b *Books) export(w http.ResponseWriter, r *http.Request, name string, as rows) {
	span, err := charge.ParseSpan(r.URL.Query().Get("since"), r.URL.Query().Get("until"))
	booked, wrong := charge.ParseBooked(r.URL.Query().Get("booked"))
	q := r.URL.Query()
	q.Set("user", b.Names().Known(q.Get("user")))
	only, unknown := charge.ParseOnly(q, b.rented)
	if bad, ok := errors.AsType[*charge.SpanError](cmp.Or(err, wrong, unknown)); ok {
		reply.FieldProblem(w, http.StatusBadRequest, bad.Field, "this selects no costs", bad.Fix, bad.Err)
		return
	}
	out := csv.NewWriter(w)
	began := false
	var room []string
	err = b.eachBooked(r.Context(), auth.CallerOf(r), []charge.Span{span}, booked, func(c charge.Charge) error {
		if !only.Has(&c) {
			return nil
		}
		if !began {
			began = true
			w.Header().Set("Content-Type", "text/csv; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
			if err := out.Write(as.Header()); err != nil {
				return err
			}
		}
		room = as.Row(room[:0], c)
		return out.Write(room)
	})
	if err == nil && began {
		out.Flush()
		err = out.Error()
	}
	switch {
	case err != nil && began:
		if r.Context().Err() == nil {
			b.Errors.Error("export aborted", "error", err)
		}
		panic(http.ErrAbortHandler) // abort, so that the client cannot take a truncated file for the whole
	case err != nil:
		Unread(w, "cannot read the ledger", err)
	case !began && (!only.All() || !booked.IsZero()):
		reply.Problem(w, http.StatusNotFound, "no costs in that span match",
			"scrimp costs --by team (project, user, job, provider, region) lists what money was spent on", nil)
	case !began && span == (charge.Span{}):
		reply.Problem(w, http.StatusNotFound, "there are no costs that you may see",
			"run a job first, or ask for a role in its team: scrimp costs shows who spent what", nil)
	case !began:
		reply.Problem(w, http.StatusNotFound, "there are no costs in that span", "leave --since and --until out, or give "+
			"others: scrimp costs shows who spent what", nil)
	}
}

// rented returns the machines that may still cost money.
func (b *Books) rented() map[string]bool {
	on := map[string]bool{}
	b.Control.Read(func(m *core.Machine) {
		for _, i := range m.State().Instances() {
			on[i.ID()] = i.Live() || i.Lost()
		}
	})
	return on
}

// EachCharge calls f with each charge of the span that the caller may see, those of running machines up to now.
func (b *Books) EachCharge(ctx context.Context, caller identity.Caller, span charge.Span,
	f func(charge.Charge) error,
) (err error) {
	return b.EachChargeIn(ctx, caller, []charge.Span{span}, f)
}

// EachChargeIn is EachCharge for several spans, which may overlap, in one pass over the ledger. A charge that crosses
// the end of a span is cut there.
func (b *Books) EachChargeIn(ctx context.Context, caller identity.Caller, spans []charge.Span,
	f func(charge.Charge) error,
) error {
	return b.eachBooked(ctx, caller, spans, time.Time{}, f)
}

// eachBooked is EachChargeIn of the postings that were booked since a time, with what running machines owe now.
func (b *Books) eachBooked(ctx context.Context, caller identity.Caller, spans []charge.Span, booked time.Time,
	f func(charge.Charge) error,
) (err error) {
	if len(spans) == 0 {
		return nil
	}
	whole, streams, names := spans[0], []*charge.Stream{}, b.Names()
	for _, s := range spans {
		if s.Since.Before(whole.Since) {
			whole.Since = s.Since
		}
		if s.Until.IsZero() || !whole.Until.IsZero() && s.Until.After(whole.Until) {
			whole.Until = s.Until
		}
		streams = append(streams, charge.NewStream(s, func(c charge.Charge) {
			if err == nil {
				c.User = names.Known(c.User)
				err = f(c)
			}
		}))
	}
	read := b.eachPosting(ctx, whole, booked, func(p *ledger.Posting, of charge.Source) error {
		if caller.Role(p.Owner.Team) >= identity.Viewer {
			for _, s := range streams {
				s.Add(p, of)
			}
		}
		return err
	})
	if read != nil {
		return read
	}
	for _, s := range streams {
		s.End()
	}
	return err
}

// eachPosting calls f, in order, with every posting that may concern the span and was booked since a time. Then it
// calls f with the charges of running machines.
func (b *Books) eachPosting(ctx context.Context, span charge.Span, booked time.Time,
	f func(*ledger.Posting, charge.Source) error,
) error {
	var live []ledger.Posting
	end := uint64(0)
	b.Control.Read(func(m *core.Machine) {
		now := b.Control.Now()
		if m.Now().After(now) {
			now = m.Now()
		}
		end, live = m.Seq(), m.Unposted(b.Control.Tenant(), booked, now)
	})
	from := span
	if !booked.IsZero() {
		from.Since = booked
	}
	first, some, err := b.firstSince(ctx, from, end)
	if err != nil {
		return err
	}
	sources := sources{b: b, machines: map[string]charge.Source{}}
	for after := first - 1; some && after < end; {
		next := min(end, after+exportStride)
		var list []ledger.Posting
		for p, err := range b.Log.PostingsOf(ctx, b.Control.Tenant(), after, next) {
			if err != nil {
				return err
			}
			if !p.At.Before(booked) {
				list = append(list, p)
			}
		}
		for some := range slices.Chunk(list, exportTurn) {
			if err := sources.each(ctx, some, f); err != nil {
				return err
			}
		}
		after = next
	}
	return sources.each(ctx, live, f)
}

// firstSince returns the first event with a posting that may concern the span. A posting is booked after the period
// that it covers.
func (b *Books) firstSince(ctx context.Context, span charge.Span, end uint64) (first uint64, some bool, err error) {
	if span.Since.IsZero() {
		return 1, end > 0, nil
	}
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	if err := b.spentTo(ctx, max(end, b.spent.upTo)); err != nil {
		return 0, false, err
	}
	first, some = b.spent.sums.From(span.Since.Add(-exportEarly))
	return first, some && first <= end, nil
}

// Began returns the begin of the first cost in the ledger; false: nothing is booked.
func (b *Books) Began(ctx context.Context) (at time.Time, some bool, err error) {
	end := b.Control.Durable()
	first, some, err := b.firstSince(ctx, charge.Span{Since: time.Unix(0, 0).UTC().AddDate(0, 0, 2)}, end)
	if err != nil || !some {
		return at, false, err
	}
	for p, err := range b.Log.PostingsOf(ctx, b.Control.Tenant(), first-1, first) {
		if err != nil {
			return at, false, err
		}
		if at = p.At; !p.Begin.IsZero() && p.Begin.Before(at) {
			at = p.Begin
		}
		return at.UTC(), true, nil
	}
	return at, false, nil
}

// sources looks up details that postings do not carry.
type sources struct {
	b *Books
	// machines remembers instances for the postings of their idle time, because the core forgets terminated ones.
	machines map[string]charge.Source
}

const (
	exportStride   = 5_000          // events whose postings are in memory at once
	exportTurn     = 1_000          // postings looked up at once; the core cannot step meanwhile
	exportEarly    = 24 * time.Hour // how long before its time a posting may be booked, for a clock that is wrong
	exportMachines = 20_000         // bounds the instances in machines
)

// each calls f with each posting of a stride.
func (s *sources) each(ctx context.Context, list []ledger.Posting, f func(*ledger.Posting, charge.Source) error) error {
	of := make([]charge.Source, len(list))
	archived := map[string]bool{}
	s.b.Control.ReadUncommitted(func(m *core.Machine) {
		for i := range list {
			p := &list[i]
			if j, ok := m.Job(p.Owner.Job); ok {
				of[i] = core.SourceOf(j, p)
			} else if p.Owner.Job == "" {
				of[i] = core.IdleSourceOf(m, p)
			} else {
				archived[p.Owner.Job] = true
			}
		}
	})
	jobs, err := s.b.Control.ArchivedJobs(ctx, slices.Sorted(maps.Keys(archived))...)
	if err != nil {
		return err
	}
	for i := range list {
		p := &list[i]
		if j := jobs[p.Owner.Job]; j != nil {
			of[i] = core.SourceOf(j, p)
		}
		s.machine(p.Owner.Instance, &of[i])
		if err := f(p, of[i]); err != nil {
			return err
		}
	}
	return nil
}

// machine remembers how an instance was bought, and fills it in for a terminated one.
func (s *sources) machine(instance string, of *charge.Source) {
	if instance == "" {
		return
	}
	if of.Capacity == "" {
		of.Capacity, of.Accelerators = s.machines[instance].Capacity, s.machines[instance].Accelerators
		return
	}
	if len(s.machines) >= exportMachines {
		clear(s.machines)
	}
	s.machines[instance] = *of
}
