//go:build !local

package record

import (
	"cmp"
	"context"
	"hash/fnv"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
)

// Store holds the records of an engine that this server knows, and what it has done for each.
type Store struct {
	engine  string // its name
	Log     *slog.Logger
	writers [64]sync.Mutex

	mu      sync.Mutex
	loaded  time.Time          // when all records were last read
	records map[string]*Record // by key
	done    map[string]bool    // keys whose objects have been created
	looked  map[string]bool    // keys whose objects were deleted once more, as some may have come late
}

// NewStore returns the empty store of an engine.
func NewStore(engine string) *Store {
	return &Store{engine: engine, Log: slog.New(slog.DiscardHandler), records: map[string]*Record{},
		done: map[string]bool{}, looked: map[string]bool{}}
}

// keepFor is how long a record is kept after all machines have ended.
const keepFor = 2 * time.Hour

// ReadAt returns when all records were last read.
func (s *Store) ReadAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

// Known returns a key's record, also one created by another server; nil if there is none.
func (s *Store) Known(ctx context.Context, a *client.Client, key string) (*Record, error) {
	s.mu.Lock()
	r := s.records[key]
	s.mu.Unlock()
	if r != nil {
		return r, nil
	}
	return s.Fetch(ctx, a, key)
}

// Fetch reads a key's record from the cluster; nil if there is none.
func (s *Store) Fetch(ctx context.Context, a *client.Client, key string) (*Record, error) {
	var m corev1.ConfigMap
	err := a.Get(ctx, "configmaps", NameOf(key), &m)
	if apierrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		s.Forget(key)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := Of(&m)
	if err != nil {
		return nil, err
	}
	s.Remember(r)
	return r, nil
}

// Remember stores a record that was read or written.
func (s *Store) Remember(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.Key] = r
}

// Forget drops all that is remembered of a key.
func (s *Store) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, key)
	delete(s.done, key)
	delete(s.looked, key)
}

// Change changes a record durably before anybody acts on it. It may call f again on another server's newer version.
// If f changes nothing, nothing is written.
func (s *Store) Change(ctx context.Context, a *client.Client, key string, f func(*Record)) (*Record, error) {
	w := s.writer(key)
	w.Lock()
	defer w.Unlock()
	r, err := s.Known(ctx, a, key)
	for tries := 0; ; tries++ {
		if err != nil || r == nil {
			return r, err
		}
		c := r.Copied()
		f(c)
		if reflect.DeepEqual(c, r) {
			return r, nil
		}
		m, err2 := c.configMap(c.labels(s.engine))
		if err2 != nil {
			return nil, err2
		}
		err = a.Update(ctx, "configmaps", m.Name, m)
		switch {
		case err == nil:
			c.Version = m.ResourceVersion
			s.Remember(c)
			return c, nil
		case apierrors.IsNotFound(err): // somebody has removed it: only this server's copy remains
			c.Version = ""
			if err := s.Keep(ctx, a, c); err != nil {
				return nil, err
			}
			s.Remember(c)
			return c, nil
		case !apierrors.IsConflict(err) || tries > 4:
			return nil, err
		}
		r, err = s.Fetch(ctx, a, key)
	}
}

// Load reads the records in the cluster, and deletes those that are no longer needed.
func (s *Store) Load(ctx context.Context, a *client.Client) error {
	selector := client.LabelKind + "=" + client.KindRecord + "," + client.LabelEngine + "=" + s.engine
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	seen := map[string]bool{}
	begun := time.Now()
	for {
		var list corev1.ConfigMapList
		if err := a.List(ctx, "configmaps", &opts, &list); err != nil {
			return err
		}
		for n := range list.Items {
			r, err := Of(&list.Items[n])
			if err != nil {
				s.Log.Warn("passed over", "error", err)
				continue
			}
			seen[r.Key] = true
			s.take(ctx, a, r)
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.records { // removed by somebody, or by another server
		if !seen[key] && r.Asked.Before(begun.Add(-time.Minute)) && !r.Closed.IsZero() {
			delete(s.records, key)
		}
	}
	s.loaded = time.Now()
	return nil
}

// take remembers a listed record unless a newer version is known, or deletes it.
func (s *Store) take(ctx context.Context, a *client.Client, r *Record) {
	if !r.Closed.IsZero() && time.Since(r.Closed) > keepFor {
		if err := a.Drop(ctx, "configmaps", r.Name, &metav1.Preconditions{UID: &r.UID}); err != nil {
			s.Log.Warn("cannot remove an old record", "record", r.Name, "error", err)
		}
		s.Forget(r.Key)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.records[r.Key]; now == nil || mirror.Newer(r.Version, now.Version) {
		s.records[r.Key] = r
	}
}

// Keep creates the ConfigMap of a new record.
func (s *Store) Keep(ctx context.Context, a *client.Client, r *Record) error {
	m, err := r.configMap(r.labels(s.engine))
	if err != nil {
		return err
	}
	if err := a.Create(ctx, "configmaps", m, false); err != nil {
		return err
	}
	r.Name, r.UID, r.Version = m.Name, m.UID, m.ResourceVersion
	return nil
}

// All returns the records sorted by key.
func (s *Store) All() []*Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Record, 0, len(s.records))
	for _, r := range s.records {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *Record) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// KeyOf returns the key of a name's record; empty if none is known.
func (s *Store) KeyOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.records {
		if r.Name == name {
			return key
		}
	}
	return ""
}

// writer returns the lock for writing a key's record.
func (s *Store) writer(key string) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return &s.writers[h.Sum32()%uint32(len(s.writers))]
}

// Made reports whether this server has created the objects of a key.
func (s *Store) Made(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[key]
}

// SetMade notes that this server has created the objects of a key.
func (s *Store) SetMade(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[key] = true
}

// Unmade undoes SetMade.
func (s *Store) Unmade(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.done, key)
}

// ClearedLate reports whether the objects of a key were deleted once more.
func (s *Store) ClearedLate(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked[key]
}

// SetClearedLate notes that the objects of a key were deleted once more.
func (s *Store) SetClearedLate(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked[key] = true
}
