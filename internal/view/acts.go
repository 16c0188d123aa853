package view

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// ofActs finds the audit trail's events: all of them, those of a user, and those on a route. The rows have no value: a
// key ends with the event.
var ofActs = projection.Projection{Name: "acts", Version: 2, Apply: applyActs}

// Actor selects acts of the audit trail: all of them, those of a user, or those on a route.
type Actor struct{ key string }

// Everybody selects all acts.
func Everybody() Actor { return Actor{"all/"} }

// OfUser selects the acts of a user.
func OfUser(name string) Actor { return actorOf("user", name) }

// OfRoute selects the acts on a route, such as "POST /v1/waste/{id}/apply".
func OfRoute(route string) Actor { return actorOf("route", route) }

// actorOf returns the beginning of the keys. The length keeps one name from beginning like another.
func actorOf(what, name string) Actor { return Actor{fmt.Sprintf("%s/%d/%s/", what, len(name), name)} }

func applyActs(_ context.Context, r *projection.Record, rows *projection.Rows) error {
	if r.Kind != (state.Audited{}).Kind() {
		return nil
	}
	var e state.Event
	if err := e.UnmarshalJSON(r.Event); err != nil {
		return fmt.Errorf("read event %d: %w", r.Seq, err)
	}
	if b, ok := e.Body.(state.Audited); ok {
		rows.Put(Everybody().key+orderKey(r.Seq), nil)
		rows.Put(OfUser(b.Act.Who).key+orderKey(r.Seq), nil)
		rows.Put(OfRoute(b.Act.Route).key+orderKey(r.Seq), nil)
	}
	return nil
}

// Acts returns at most limit records of the audit trail after an event, oldest first, up to a durable event and perhaps
// later ones.
func (v *View) Acts(ctx context.Context, upTo uint64, of Actor, after uint64, limit int) ([]store.Record, error) {
	rows, err := v.follower.Range(ctx, ofActs, upTo, store.Range{After: of.key + orderKey(after), Before: of.key + "~",
		Limit: limit})
	if err != nil {
		return nil, err
	}
	seqs := make([]uint64, len(rows))
	for i, r := range rows {
		if seqs[i], err = strconv.ParseUint(r.Key[len(of.key):], 10, 64); err != nil {
			return nil, errors.Join(errors.New("read the audit trail"), errTorn)
		}
	}
	return v.log.RecordsAt(ctx, seqs)
}
