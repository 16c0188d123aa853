package enginetest

import (
	"sync"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

type rig struct {
	Rig
	testing.TB

	mu       sync.Mutex
	launched map[string]time.Time // time of the response to a key's launch
	gangs    map[string]int       // number of machines of a key, if several
}

func (r *rig) launch(key string) engine.Instance {
	r.Helper()
	i, err := r.one(r.Driver.Launch(r.Context(), r.request(key)))
	if err != nil {
		r.Fatalf("launch %s: %v", key, err)
	}
	r.answered(key)
	return i
}

// one returns the machine of a response; the zero Instance if it has none.
func (r *rig) one(list []engine.Instance, err error) (engine.Instance, error) {
	r.Helper()
	if len(list) == 0 {
		return engine.Instance{}, err
	}
	if len(list) > 1 {
		r.Errorf("a request for one machine is answered with %v", list)
	}
	return list[0], err
}

func (r *rig) answered(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.launched[key]; !again {
		r.launched[key] = time.Now()
	}
}

// lacks reports whether the list lacks a confirmed launch but still may.
func (r *rig) lacks(keys map[string]engine.Instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.launched {
		if _, there := keys[key]; !there && time.Since(at) < r.Consistency {
			return true
		}
	}
	return false
}

func (r *rig) request(key string) engine.Request {
	return engine.Request{Key: key, Offer: r.Granted,
		Tags: map[string]string{"scrimp-job": "job", "scrimp-attempt": key}}
}

// list returns the instances by key, and fails if a key or an ID occurs twice. It waits for instances that the list
// may lack for a while.
func (r *rig) list() map[string]engine.Instance {
	r.Helper()
	keys := r.listNow()
	for r.lacks(keys) {
		<-time.NewTimer(5 * time.Millisecond).C
		keys = r.listNow()
	}
	return keys
}

func (r *rig) listNow() map[string]engine.Instance {
	r.Helper()
	all, err := r.Driver.List(r.Context())
	must.Do(r, err)
	keys, ids, of := map[string]engine.Instance{}, map[string]bool{}, map[string]int{}
	for _, i := range all {
		of[i.Key]++
		if other := keys[i.Key]; of[i.Key] > max(1, r.gangs[i.Key]) || ids[i.ID] {
			r.Errorf("key %s rented %s and %s", i.Key, other.ID, i.ID)
		}
		keys[i.Key], ids[i.ID] = i, true
	}
	return keys
}

// until waits for a change that the engine makes without a call.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	eventually.True(r.TB, what, ok)
}

// giveBack terminates the key's instance and waits for its end in the list.
func (r *rig) giveBack(key string) engine.Instance {
	r.Helper()
	must.Do(r, r.Driver.Terminate(r.Context(), r.list()[key].ID))
	var i engine.Instance
	r.until("the end of "+key, func() bool { i = r.list()[key]; return i.State == engine.Ended })
	return i
}
