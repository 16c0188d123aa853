package view

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// ofActs finds the audit trail's events: all of them, those of a user, and those on a route. Each selection has a row
// by page of pageLength events: the places in the page as varints.
var ofActs = projection.Projection{Name: "acts", Version: 3, Apply: applyActs}

// Actor selects acts of the audit trail: all of them, those of a user, or those on a route.
type Actor struct{ key string }

// Everybody selects all acts.
func Everybody() Actor { return Actor{"all/"} }

// OfUser selects the acts of a user.
func OfUser(name string) Actor { return actorOf("user", name) }

// OfRoute selects the acts on a route, such as "POST /v1/waste/{id}/apply".
func OfRoute(route string) Actor { return actorOf("route", route) }

// actorOf returns the beginning of the keys. The length keeps the key of one name from being a prefix of another's.
func actorOf(what, name string) Actor { return Actor{fmt.Sprintf("%s/%d/%s/", what, len(name), name)} }

func applyActs(_ context.Context, r *projection.Record, rows *projection.Rows) error {
	if r.Kind != (state.Audited{}).Kind() {
		return nil
	}
	var who, route string
	inBody(r.Event, func(key, value []byte) {
		if string(key) != `"act"` {
			return
		}
		members(value, func(key, value []byte) {
			switch string(key) {
			case `"who"`:
				who, _ = nameIn(value)
			case `"route"`:
				route, _ = nameIn(value)
			}
		})
	})
	page, place := pageOf(r.Seq)
	for _, of := range []Actor{Everybody(), OfUser(who), OfRoute(route)} {
		rows.Append(of.key+pageKey(page), binary.AppendUvarint(nil, place))
	}
	return nil
}

// Acts returns at most limit records of the audit trail after an event, oldest first, up to a durable event and perhaps
// later ones.
func (v *View) Acts(ctx context.Context, upTo uint64, of Actor, after uint64, limit int) ([]store.Record, error) {
	pages := store.Range{After: of.key, Before: of.key + "~", Limit: 50}
	if page, _ := pageOf(after + 1); page > 0 {
		pages.After += pageKey(page - 1)
	}
	var seqs []uint64
	for len(seqs) < limit {
		rows, err := v.follower.Range(ctx, ofActs, upTo, pages)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if seqs, err = appendActs(seqs, row, of, after); err != nil {
				return nil, err
			}
			pages.After = row.Key
		}
		if len(rows) < pages.Limit {
			break
		}
	}
	return v.log.RecordsAt(ctx, seqs[:min(limit, len(seqs))])
}

// appendActs appends the events of a row that come after an event.
func appendActs(seqs []uint64, row store.Row, of Actor, after uint64) ([]uint64, error) {
	page, err := strconv.ParseUint(row.Key[len(of.key):], 10, 64)
	for places := row.Value; err == nil && len(places) > 0; {
		place, size := binary.Uvarint(places)
		if size <= 0 {
			err = errTorn
			break
		}
		places = places[size:]
		if seq := page*pageLength + place + 1; seq > after {
			seqs = append(seqs, seq)
		}
	}
	if err != nil {
		return nil, errors.Join(errors.New("read the audit trail"), errTorn)
	}
	return seqs, nil
}
