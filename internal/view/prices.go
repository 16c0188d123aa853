package view

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store"
	"scrimp/internal/view/projection"
)

// ofPrices records the market. By offer, it has the description, all changes of price and availability, and the newest
// of each; and one row with the first and the last moment of all observations.
var ofPrices = projection.Projection{Name: "market-prices", Version: 1, Apply: applyPrices}

// Keys of the rows; the offer's id follows all but the last.
const (
	offerKey   = "offer/"
	changesKey = "change/"
	newestKey  = "newest/"
	spanKey    = "span"
)

// changeSize is the number of bytes of a change: its time, its rate and its flags.
const changeSize = 8 + 8 + 1

// Flags of a change.
const (
	isPriced byte = 1 << iota
	isTried
	isAvailable
)

func appendChange(b []byte, q market.Quote) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(q.At.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(q.Rate))
	flags := byte(0)
	for flag, is := range map[byte]bool{isPriced: q.Priced, isTried: !q.Untried, isAvailable: q.Available} {
		if is {
			flags |= flag
		}
	}
	return append(b, flags)
}

// replay gives the changes of an offer to a recorder.
func replay(r *market.Recorder, offer market.OfferID, changes []byte) error {
	if len(changes)%changeSize != 0 {
		return errors.Join(fmt.Errorf("read the prices of %s", offer), errTorn)
	}
	for ; len(changes) > 0; changes = changes[changeSize:] {
		at, rate, flags := binary.BigEndian.Uint64(changes), binary.BigEndian.Uint64(changes[8:]), changes[16]
		r.Quote(market.Quote{Offer: offer, At: time.Unix(0, int64(at)).UTC(), Rate: money.Rate(rate),
			Priced: flags&isPriced != 0, Untried: flags&isTried == 0, Available: flags&isAvailable != 0})
	}
	return nil
}

// applyPrices adds what an observation of the market changed.
func applyPrices(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
	if r.Kind != (state.MarketSeen{}).Kind() {
		return nil
	}
	var e state.Event
	if err := e.UnmarshalJSON(r.Event); err != nil {
		return fmt.Errorf("read event %d: %w", r.Seq, err)
	}
	b, ok := e.Body.(state.MarketSeen)
	if !ok {
		return nil
	}
	for _, o := range b.Offers {
		text, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("write offer %s: %w", o.ID, err)
		}
		rows.Put(offerKey+string(o.ID), text)
	}
	var seen market.Recorder
	if err := readSpan(ctx, rows, &seen); err != nil {
		return err
	}
	known := map[market.OfferID]bool{}
	for _, q := range b.Quotes {
		if !known[q.Offer] {
			there, err := resume(ctx, rows, &seen, q.Offer)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
			known[q.Offer] = true
		}
		if changed := seen.Quote(q); changed.Priced || !changed.Untried {
			if err := addChange(ctx, rows, changed); err != nil {
				return err
			}
		}
	}
	if first, last := seen.Span(); !first.IsZero() {
		span := binary.BigEndian.AppendUint64(nil, uint64(first.UnixNano()))
		rows.Put(spanKey, binary.BigEndian.AppendUint64(span, uint64(last.UnixNano())))
	}
	return nil
}

// resume tells the recorder the newest price and availability of an offer, and reports whether the offer exists.
func resume(ctx context.Context, rows *projection.Rows, seen *market.Recorder, offer market.OfferID) (bool, error) {
	text, err := rows.Get(ctx, offerKey+string(offer))
	if err != nil || text == nil {
		return false, err
	}
	newest, err := rows.Get(ctx, newestKey+string(offer))
	if err != nil {
		return false, err
	}
	seen.Offer(market.Offer{ID: offer})
	return true, replay(seen, offer, newest)
}

// addChange adds a change and replaces the newest price or availability of its offer.
func addChange(ctx context.Context, rows *projection.Rows, q market.Quote) error {
	rows.Append(changesKey+string(q.Offer), appendChange(nil, q))
	newest, err := rows.Get(ctx, newestKey+string(q.Offer))
	if err != nil {
		return err
	}
	parts := [2][]byte{} // the newest price, and the newest availability
	if len(newest) == 2*changeSize {
		parts = [2][]byte{newest[:changeSize], newest[changeSize:]}
	} else {
		for i := range parts { // a change of nothing
			parts[i] = appendChange(nil, market.Quote{At: q.At, Untried: true})
		}
	}
	if q.Priced {
		parts[0] = appendChange(nil, market.Quote{At: q.At, Rate: q.Rate, Priced: true, Untried: true})
	}
	if !q.Untried {
		parts[1] = appendChange(nil, market.Quote{At: q.At, Available: q.Available, Untried: false})
	}
	rows.Put(newestKey+string(q.Offer), append(append([]byte{}, parts[0]...), parts[1]...))
	return nil
}

func readSpan(ctx context.Context, rows *projection.Rows, seen *market.Recorder) error {
	text, err := rows.Get(ctx, spanKey)
	if err != nil {
		return err
	}
	return addSpan(seen, text)
}

// addSpan adds a row with the span of the observations; nil adds nothing.
func addSpan(seen *market.Recorder, text []byte) error {
	switch len(text) {
	case 0:
	case 16:
		seen.Since(time.Unix(0, int64(binary.BigEndian.Uint64(text))).UTC())
		seen.Until(time.Unix(0, int64(binary.BigEndian.Uint64(text[8:]))).UTC())
	default:
		return errors.Join(errors.New("read when the market was observed"), errTorn)
	}
	return nil
}

// Prices feeds a recorder the observations of the market up to an event, without those that changed nothing.
func (v *View) Prices(ctx context.Context, upTo uint64) (*market.Recorder, error) {
	seen := &market.Recorder{}
	if err := v.each(ctx, upTo, offerKey, func(_ string, text []byte) error {
		var o market.Offer
		if err := json.Unmarshal(text, &o); err != nil {
			return errors.Join(err, errTorn)
		}
		seen.Offer(o)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := v.each(ctx, upTo, changesKey, func(offer string, changes []byte) error {
		return replay(seen, market.OfferID(offer), changes)
	}); err != nil {
		return nil, err
	}
	rows, err := v.follower.Rows(ctx, ofPrices, upTo, spanKey)
	if err != nil {
		return nil, err
	}
	return seen, addSpan(seen, rows[spanKey])
}

// each calls f with the rows of ofPrices whose key begins with the prefix, and with the rest of the key.
func (v *View) each(ctx context.Context, upTo uint64, prefix string, f func(rest string, value []byte) error) error {
	r := store.Range{After: prefix, Before: prefix[:len(prefix)-1] + "0", Limit: 500} // 0 follows / in byte order
	for {
		rows, err := v.follower.Range(ctx, ofPrices, upTo, r)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if err := f(row.Key[len(prefix):], row.Value); err != nil {
				return err
			}
		}
		r.After = rows[len(rows)-1].Key
	}
}
