// Package recent is a cache of the values that were used last.
package recent

import (
	"container/list"
	"sync"
)

// Cache holds values up to a total size, and evicts those that were used longest ago. Several goroutines may use it.
// They share the values, so nobody may change one.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex
	most  int
	size  int
	order list.List // of entry, the last used first
	by    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache for values up to a total size.
func New[K comparable, V any](most int) *Cache[K, V] {
	return &Cache[K, V]{most: most, by: map[K]*list.Element{}}
}

// Get returns the value of a key, or loads and keeps it. load also returns the size. Get does not keep a value that is
// larger than the cache or that came with an error. Two callers at once may load the same value.
func (c *Cache[K, V]) Get(key K, load func() (V, int, error)) (V, error) {
	if v, known := c.find(key); known {
		return v, nil
	}
	v, size, err := load()
	if err == nil && size <= c.most {
		c.keep(entry[K, V]{key, v, size})
	}
	return v, err
}

func (c *Cache[K, V]) find(key K) (v V, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.by[key]
	if !known {
		return v, false
	}
	c.order.MoveToFront(at)
	return at.Value.(entry[K, V]).value, true
}

func (c *Cache[K, V]) keep(e entry[K, V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, known := c.by[e.key]; known {
		c.drop(at)
	}
	c.by[e.key] = c.order.PushFront(e)
	for c.size += e.size; c.size > c.most; {
		c.drop(c.order.Back())
	}
}

func (c *Cache[K, V]) drop(at *list.Element) {
	e := c.order.Remove(at).(entry[K, V])
	delete(c.by, e.key)
	c.size -= e.size
}
