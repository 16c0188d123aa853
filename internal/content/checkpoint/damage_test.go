package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// damages are ways to break an object.
var damages = map[string]func(data []byte, r *rand.Rand) []byte{
	"bit flipped": func(d []byte, r *rand.Rand) []byte {
		d = slices.Clone(d)
		d[r.IntN(len(d))] ^= 1 << r.IntN(8)
		return d
	},
	"truncated": func(d []byte, r *rand.Rand) []byte { return d[:r.IntN(len(d))] },
	"longer":    func(d []byte, _ *rand.Rand) []byte { return append(slices.Clone(d), 0) },
	"missing":   func([]byte, *rand.Rand) []byte { return nil },
}

func damage(t testing.TB, b *gocloud.Bucket, key string, how func([]byte, *rand.Rand) []byte, r *rand.Rand) {
	t.Helper()
	data, err := b.ReadAll(t.Context(), key)
	must.Do(t, err)
	if data = how(data, r); data == nil {
		err = b.Delete(t.Context(), key)
	} else {
		err = b.WriteAll(t.Context(), key, data, nil)
	}
	must.Do(t, err)
}

// testDamageIsRefused checks that restore refuses the newest checkpoint by name, for any damage to it, and restores the
// previous one.
func testDamageIsRefused(t *testing.T, b *gocloud.Bucket) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	for kind, how := range damages {
		for _, what := range []string{"manifest", "object"} {
			for try := range 5 {
				n++
				s := checkpoint.Open(b, fmt.Sprintf("job%d", n))
				s.SetPartSize(part)
				dir := fast.Dir(t)
				put(t, dir, "f", "0123456789")
				put(t, dir, "same", "the part that stays")
				w := claim(t, s, 1)
				good, _ := publish(t, w, dir, 1)
				want := read(t, dir)
				put(t, dir, "f", "abcdefghij")
				bad, _ := publish(t, w, dir, 2)
				key := "manifests/" + bad.Name
				if what == "object" {
					p := bad.Files[0].Parts[try%2]
					key = "objects/" + p.Home + "/" + p.Sum
				}
				damage(t, b, fmt.Sprintf("job%d/%s", n, key), how, r)
				name, got, refused := restored(t, s)
				gone := kind == "missing" && what == "manifest"
				if name != good.Name || !got.equal(want) || !gone && (len(refused) != 1 || refused[0].Name != bad.Name || refused[0].Why == "") {
					t.Errorf("%s %s: restored %q, refused %v%s", what, kind, name, refused, want.diff(got))
				}
				if what == "object" {
					if err := s.Verify(t.Context(), bad, checkpoint.Full); !errors.Is(err, checkpoint.ErrDamaged) {
						t.Errorf("%s %s: verify says %v", what, kind, err)
					}
				}
			}
		}
	}
}

// The next publish stores a part again that verify found damaged.
func testDamageIsStoredAnew(t *testing.T, b *gocloud.Bucket) {
	s := open(b)
	dir := fast.Dir(t)
	put(t, dir, "f", "01234567")
	w := claim(t, s, 1)
	m, _ := publish(t, w, dir, 1)
	p := m.Files[0].Parts[0]
	damage(t, b, "jobs/j1/objects/"+p.Home+"/"+p.Sum, damages["bit flipped"], rand.New(rand.NewPCG(1, 1)))
	if err := w.Verify(t.Context(), m); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Fatalf("verify: %v", err)
	}
	m, stats := publish(t, w, dir, 2)
	if stats.Stored != 1 {
		t.Errorf("stats %+v", stats)
	}
	if err := w.Verify(t.Context(), m); err != nil {
		t.Error(err)
	}
}
