package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limits of answers that are made in memory before they are sent: some are as large as what there is.
const (
	userReads    = 8                // that are made for one user at once, with whatever tokens
	readPatience = 10 * time.Second // how long another one waits for its turn
)

// errReads says that a user's other requests took all of that time.
var errReads = errors.New("as many requests of this user are being answered as one may have")

// Reads lets each user have so many answers at once; more of them wait.
type Reads struct {
	mu sync.Mutex
	of map[string]*readers
}

type readers struct {
	turns  chan struct{} // one in it for each that has its turn
	wanted int           // those that have a turn or wait for one
}

// Take waits for a turn of the user's, until done.
func (r *Reads) Take(ctx context.Context, user string) (done func(), err error) {
	r.mu.Lock()
	if r.of == nil {
		r.of = map[string]*readers{}
	}
	mine := r.of[user]
	if mine == nil {
		mine = &readers{turns: make(chan struct{}, userReads)}
		r.of[user] = mine
	}
	mine.wanted++
	r.mu.Unlock()
	done = func() {
		<-mine.turns
		r.left(user, mine)
	}
	select {
	case mine.turns <- struct{}{}: // also where whoever asked has left: they hear nothing else than others
		return done, nil
	default:
	}
	late := time.NewTimer(readPatience)
	defer late.Stop()
	select {
	case mine.turns <- struct{}{}:
		return done, nil
	case <-late.C:
		err = errReads
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.left(user, mine)
	return nil, err
}

// left forgets a user of whom nothing is being answered.
func (r *Reads) left(user string, mine *readers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mine.wanted--; mine.wanted == 0 {
		delete(r.of, user)
	}
}
