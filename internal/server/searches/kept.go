package searches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/work/loop"
)

// Keys of the store: the names of all searches; the head of each; and the pieces of its list, by number.
const (
	indexMeta = "searches"
	headMeta  = "search/"
)

// pieceSize is the size in bytes at which a piece of a list is full. Each change writes the last piece.
const pieceSize = 16 << 10

// head is what the store has of a search beside its list. The generation is part of the keys of the pieces, so that
// those of a removed search never count for a later one of its name.
type head struct {
	Def        client.NewSearch `json:"search"`
	User       string           `json:"user"`
	Opened     time.Time        `json:"opened"`
	Generation int64            `json:"generation"`
}

// record is an entry of a list: a question that has changed the search, or a told value.
type record struct {
	Ask  *int       `json:"ask,omitempty"`
	Told *loop.Told `json:"tell,omitempty"`
	// Lease is the program that has the worker since this question; nil: the one before.
	Lease *lease `json:"lease,omitempty"`
	// Job and Spent are the asking job and what it had cost in dollars by then.
	Job   string        `json:"job,omitempty"`
	Spent *money.Amount `json:"spent,omitempty"`
}

// search is a loaded search.
type search struct {
	head

	mu     sync.Mutex // guards the rest
	plan   *loop.Search
	spent  map[string]money.Amount // by job, at the last record
	lease  map[int]lease           // by worker
	leased int                     // times that a program took a worker
	piece  int                     // number of the last piece
	text   strings.Builder         // its content
	broken bool                    // the plan has what the store has not
}

func (s *search) key(piece int) string {
	return fmt.Sprintf("%s%s/%d/%d", headMeta, s.Def.Name, s.Generation, piece)
}

// index returns the names of all searches. The caller holds d.mu.
func (d *Service) index(ctx context.Context) ([]entry, error) {
	if d.names != nil {
		return d.names, nil
	}
	text, ok, err := d.Meta.Meta(ctx, indexMeta)
	if err != nil {
		return nil, err
	}
	names := []entry{}
	if ok && text != "" {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return nil, fmt.Errorf("read the names of the searches: %w", err)
		}
	}
	d.names = names
	return names, nil
}

// create stores a new search: its head first, so that a name in the index always has one. The caller holds d.mu.
func (d *Service) create(ctx context.Context, s *search, names []entry) error {
	text, err := json.Marshal(s.head)
	if err != nil {
		return err
	}
	if err := d.Meta.PutMeta(ctx, headMeta+s.Def.Name, string(text)); err != nil {
		return err
	}
	if err := d.putIndex(ctx, names); err != nil {
		return err
	}
	s.spent, s.lease = map[string]money.Amount{}, map[int]lease{}
	d.remember(s)
	return nil
}

func (d *Service) putIndex(ctx context.Context, names []entry) error {
	text, err := json.Marshal(names)
	if err == nil {
		err = d.Meta.PutMeta(ctx, indexMeta, string(text))
	}
	if d.names = names; err != nil {
		d.names = nil // it may be written or not
	}
	return err
}

func (d *Service) remember(s *search) {
	if d.open == nil {
		d.open = map[string]*search{}
	}
	d.open[s.Def.Name] = s
}

// forget makes the next request read the search from the store.
func (d *Service) forget(s *search) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[s.Def.Name] == s {
		delete(d.open, s.Def.Name)
	}
}

// load returns a search of the index. The caller holds d.mu.
func (d *Service) load(ctx context.Context, name string) (*search, error) {
	if s := d.open[name]; s != nil {
		return s, nil
	}
	s := &search{spent: map[string]money.Amount{}, lease: map[int]lease{}}
	text, ok, err := d.Meta.Meta(ctx, headMeta+name)
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("read the search %s", name), err)
	}
	if err := json.Unmarshal([]byte(text), &s.head); err != nil {
		return nil, fmt.Errorf("read the search %s: %w", name, err)
	}
	spec, no := specOf(s.Def)
	if no != nil {
		return nil, fmt.Errorf("read the search %s: %w", name, no.Err)
	}
	if s.plan, err = loop.New(spec); err != nil {
		return nil, err
	}
	for ; ; s.piece++ {
		text, ok, err := d.Meta.Meta(ctx, s.key(s.piece))
		if err != nil {
			return nil, err
		}
		if !ok || text == "" {
			break
		}
		if err := s.replay(text); err != nil {
			return nil, fmt.Errorf("read the search %s: %w", name, err)
		}
		s.text.Reset()
		s.text.WriteString(text)
	}
	if s.piece > 0 && s.text.Len() < pieceSize {
		s.piece-- // the last one has room
	} else {
		s.text.Reset()
	}
	d.remember(s)
	return s, nil
}

// replay does again what a piece of the list says, one record a line.
func (s *search) replay(text string) error {
	for line := range strings.Lines(text) {
		var x record
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return err
		}
		var err error
		switch {
		case x.Told != nil:
			_, _, err = s.plan.Report(*x.Told)
		case x.Ask != nil:
			_, _, err = s.plan.Ask(*x.Ask)
		}
		if err != nil {
			return err
		}
		s.counts(x)
	}
	return nil
}

// counts notes what a job had cost, and which program has the worker.
func (s *search) counts(x record) {
	if x.Ask != nil && x.Lease != nil {
		s.lease[*x.Ask] = *x.Lease
		s.leased++
	}
	if x.Spent != nil {
		s.spent[x.Job] = *x.Spent
	}
}

// keep stores a record. The caller holds s.mu.
func (d *Service) keep(ctx context.Context, s *search, x record) *reply.Refusal {
	line, err := json.Marshal(x)
	if err == nil {
		if s.text.Len() >= pieceSize {
			s.piece++
			s.text.Reset()
		}
		s.text.Write(line)
		s.text.WriteByte('\n')
		// The program that asks may be killed meanwhile: what it has changed is stored all the same.
		err = d.Meta.PutMeta(context.WithoutCancel(ctx), s.key(s.piece), s.text.String())
	}
	if err != nil {
		s.broken = true
		return unsaved(err)
	}
	s.counts(x)
	return nil
}
