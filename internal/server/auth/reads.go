package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limits on responses that the server builds in memory before it sends them; some can be large.
const (
	userReads    = 8                // for one user at once, over all tokens
	readPatience = 10 * time.Second // how long a further one waits for its turn
)

// errReads means that the user's other requests took all of readPatience.
var errReads = errors.New("this user has too many requests in progress")

// Reads bounds the concurrent reads of each user; further ones wait.
type Reads struct {
	mu sync.Mutex
	of map[string]*readers
}

type readers struct {
	turns  chan struct{} // holds one element per read in progress
	wanted int           // reads in progress or waiting
}

// Take waits for a turn of the user. The caller calls done at the end of the read.
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
	case mine.turns <- struct{}{}: // even if the client has left: it is answered like any other
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

// left ends one read, and forgets a user without reads.
func (r *Reads) left(user string, mine *readers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mine.wanted--; mine.wanted == 0 {
		delete(r.of, user)
	}
}
