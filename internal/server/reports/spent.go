package reports

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/wait"
)

// spent keeps the sums of the ledger's postings: a view of the log that continues where it stopped. After each piece
// of postings it writes their sums beside the log, so that a start reads these and only the later postings.
type spent struct {
	mu    sync.Mutex // guards the fields below
	sums  *ledger.Sums
	fresh *ledger.Sums // sums of the postings after kept
	kept  uint64       // last event whose sums are written
	upTo  uint64       // last event whose postings are in sums
	piece int          // postings per written piece; 0: spentPiece
}

const (
	// spentPiece is the number of postings per piece: about a tenth of a second of reading at the next start.
	spentPiece = 20_000
	// spentStride is the number of events that one query to the store covers.
	spentStride = 20_000
	// spentMeta is the prefix of a piece's key; the event after which the piece starts follows it. The number is the
	// version of the format.
	spentMeta = "spent/3/"
	// spentWindow is how far back the sums keep single hours. A span that starts within an earlier day reads that
	// day's postings.
	spentWindow = 40 * 24 * time.Hour
	// spentEvery is the interval, in wall time, at which the view follows the log without requests.
	spentEvery = 5 * time.Second
)

// Follow keeps the sums near the end of the log, so that requests need not wait.
func (b *Books) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := b.sumSpent(ctx, b.Control.Durable())
		if err != nil && ctx.Err() == nil {
			b.Errors.Error("cannot sum the costs", "error", err)
		}
		_ = wait.For(ctx, spentEvery)
	}
}

func (b *Books) sumSpent(ctx context.Context, end uint64) error {
	for { // release the lock between two strides, for requests
		done, err := b.spentSome(ctx, end)
		if err != nil || done {
			return err
		}
	}
}

// spentSome advances the sums by one stride towards the event end, and reports whether they have reached it.
func (b *Books) spentSome(ctx context.Context, end uint64) (done bool, err error) {
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	err = b.spentTo(ctx, min(end, b.spent.upTo+spentStride))
	return b.spent.upTo >= end, err
}

// spentTo advances the sums to the event end, which is durable and not before their present position. The caller
// holds b.spent.mu.
func (b *Books) spentTo(ctx context.Context, end uint64) error {
	v := &b.spent
	if v.sums == nil {
		if err := v.restore(ctx, b.Log, b.Control.Tenant()); err != nil {
			return err
		}
	}
	for v.upTo < end {
		next := min(end, v.upTo+spentStride)
		var list []ledger.Posting
		for p, err := range b.Log.PostingsOf(ctx, b.Control.Tenant(), v.upTo, next) {
			if err != nil {
				return err
			}
			list = append(list, p)
		}
		users, kinds, err := b.ofJobs(ctx, list)
		if err != nil {
			return err
		}
		for i, p := range list {
			v.sums.Add(p, users[i], kinds[i])
			v.fresh.Add(p, users[i], kinds[i])
		}
		if v.upTo = next; len(list) > 0 {
			v.sums.Forget(list[len(list)-1].At.Add(-spentWindow))
		}
		if v.fresh.Len() >= cmp.Or(v.piece, spentPiece) {
			if err := v.write(ctx, b.Log); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofJobs returns the users and kinds of the postings' jobs.
func (b *Books) ofJobs(ctx context.Context, list []ledger.Posting) (users, kinds []string, err error) {
	archived := map[string]bool{}
	users, kinds = make([]string, len(list)), make([]string, len(list))
	const turn = 1000 // no step meanwhile
	for from := 0; from < len(list); from += turn {
		b.Control.ReadUncommitted(func(m *core.Machine) {
			for i := from; i < min(from+turn, len(list)); i++ {
				if j, ok := m.Job(list[i].Owner.Job); ok {
					users[i], kinds[i] = j.User(), kindOf(j)
				} else if list[i].Idles() {
					users[i] = m.State().IdleUser(list[i].Owner.Task)
				} else if job := list[i].Owner.Job; job != "" {
					archived[job] = true
				}
			}
		})
	}
	if len(archived) == 0 {
		return users, kinds, nil
	}
	jobs, err := b.Control.ArchivedJobs(ctx, slices.Collect(maps.Keys(archived))...)
	for i := range list {
		if j := jobs[list[i].Owner.Job]; j != nil {
			users[i], kinds[i] = j.User(), kindOf(j)
		}
	}
	return users, kinds, err
}

// kindOf returns the group of the job's costs by kind.
func kindOf(j *core.Job) string { return cmp.Or(j.Terms().JobKind, "experiment") }

func pieceName(after uint64) string { return fmt.Sprintf("%s%020d", spentMeta, after) }

// write stores the newest piece. If it fails, the piece grows.
func (v *spent) write(ctx context.Context, st Log) error {
	text, err := json.Marshal(v.fresh)
	if err != nil {
		return fmt.Errorf("write the sums of costs: %w", err)
	}
	if err := st.PutMeta(ctx, pieceName(v.kept), string(text)); err != nil {
		return err
	}
	v.kept, _ = v.fresh.Head()
	v.fresh = ledger.NewSums()
	return nil
}

// restore reads the pieces that belong to this log: the hash at the head of the last piece equals the hash of that
// posting. Otherwise, for example after a log lost its end, it sums the postings again.
func (v *spent) restore(ctx context.Context, st Log, tenant string) error {
	sums := ledger.NewSums()
	for after := uint64(0); ; {
		text, ok, err := st.Meta(ctx, pieceName(after))
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		piece, err := ledger.ReadPiece([]byte(text))
		if err != nil {
			break
		}
		event, hash := piece.Head()
		if event <= after {
			break
		}
		if same, err := isPosted(ctx, st, tenant, event, hash); err != nil {
			return err
		} else if !same {
			break
		}
		sums.Merge(piece)
		sums.Forget(piece.Until().Add(-spentWindow))
		after = event
	}
	v.upTo, _ = sums.Head()
	v.kept, v.sums, v.fresh = v.upTo, sums, ledger.NewSums()
	return nil
}

// isPosted reports whether the event's last posting has the given hash.
func isPosted(ctx context.Context, st Log, tenant string, event uint64,
	hash ledger.Hash) (same bool, err error) {
	for p, err := range st.PostingsOf(ctx, tenant, event-1, event) {
		if err != nil {
			return false, err
		}
		same = p.Hash == hash
	}
	return same, nil
}
