package tunnel

import (
	"io"
	"sync"
)

// Queue passes bytes from a writer to a reader. A writer waits while limit bytes are queued; a reader gets all that
// is queued at once, so many small writes become one large read.
type Queue struct {
	mu     sync.Mutex
	news   *sync.Cond
	b      []byte
	limit  int
	closed bool
}

// NewQueue returns an empty queue.
func NewQueue(limit int) *Queue {
	q := &Queue{limit: limit}
	q.news = sync.NewCond(&q.mu)
	return q
}

// Write queues p, which may exceed the limit once.
func (q *Queue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b) >= q.limit && !q.closed {
		q.news.Wait()
	}
	if q.closed {
		return 0, io.ErrClosedPipe
	}
	q.b = append(q.b, p...)
	q.news.Broadcast()
	return len(p), nil
}

// Read takes queued bytes. It returns io.EOF once the queue is closed and empty.
func (q *Queue) Read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.b) == 0 && !q.closed {
		q.news.Wait()
	}
	if len(q.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, q.b)
	if q.b = q.b[n:]; len(q.b) == 0 {
		q.b = nil
	}
	q.news.Broadcast()
	return n, nil
}

// Close ends the queue: writers fail, and readers get the rest.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.news.Broadcast()
	return nil
}
