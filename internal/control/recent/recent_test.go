package recent

import (
	"errors"
	"slices"
	"testing"
)

// The cache holds the values that were used last, and never exceeds its size.
func TestCache_EvictsTheLeastRecentlyUsed(t *testing.T) {
	c := New[string, int](10)
	made := []string{}
	get := func(key string, size int) {
		v, err := c.Get(key, func() (int, int, error) {
			made = append(made, key)
			return len(key), size, nil
		})
		if err != nil || v != len(key) || c.size > 10 || len(c.by) != c.order.Len() {
			t.Fatalf("%s: %d, %v, size %d, %d of %d keys", key, v, err, c.size, len(c.by), c.order.Len())
		}
	}
	get("a", 4)
	get("bb", 4)
	get("a", 4)     // kept
	get("ccc", 4)   // evicts bb: a was used since
	get("a", 4)     // kept
	get("bb", 4)    // loads it again, and evicts ccc
	get("dddd", 11) // larger than the cache: evicts nothing
	get("a", 4)
	get("dddd", 11)
	if want := []string{"a", "bb", "ccc", "bb", "dddd", "dddd"}; !slices.Equal(made, want) {
		t.Errorf("made %v, want %v", made, want)
	}
	wrong := errors.New("wrong")
	for range 2 {
		if _, err := c.Get("e", func() (int, int, error) { return 0, 1, wrong }); !errors.Is(err, wrong) {
			t.Errorf("an error is kept: %v", err)
		}
	}
}
