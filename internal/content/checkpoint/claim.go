package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
)

// token orders claims: by the attempt's epoch, and within it by the session, which counts the restarts of that
// attempt's agent.
type token struct{ epoch, session int }

func (t token) String() string { return format.NameOf(t.epoch, t.session) }

func (t token) before(u token) bool {
	return t.epoch < u.epoch || t.epoch == u.epoch && t.session < u.session
}

// claim names the holder of a token.
type claim struct {
	Attempt string    `json:"attempt"`
	Writer  string    `json:"writer"`
	At      time.Time `json:"at"`
}

// fence lists the manifests that counted when a claim was made. What an older claim publishes later is never
// restored.
type fence struct {
	Token     string   `json:"token"`
	Manifests []string `json:"manifests"`
}

// Writer publishes under a claim. Several goroutines may call its methods; Publish, Verify and Prune wait for each
// other.
type Writer struct {
	store   *Store
	token   token
	attempt string
	name    string // random

	mu       sync.Mutex
	seq      int                    // highest sequence number in any manifest
	known    map[string]format.Part // by sum: stored parts that no prune of an older claim drops
	verified map[string]bool        // by key: parts that this writer has read back
	swept    bool                   // unreferenced objects have been dropped, except those of failed publishes
	shared   int64                  // newest step published for all ranks; 0: none
}

// Claim takes the right to write for the attempt with this epoch. From here on it fences out attempts of lower epochs
// and earlier sessions of the same attempt. Claim returns ErrFenced if an attempt with a higher epoch, or another
// attempt with the same epoch, has the claim.
func (s *Store) Claim(ctx context.Context, epoch int, attempt string) (*Writer, error) {
	w := &Writer{
		store: s, token: token{epoch: epoch}, attempt: attempt, name: rand.Text(),
		known: map[string]format.Part{}, verified: map[string]bool{},
	}
	if err := w.claim(ctx); err != nil {
		return nil, fmt.Errorf("claim epoch %d for %s: %w", epoch, attempt, err)
	}
	return w, nil
}

func (w *Writer) claim(ctx context.Context) error {
	for {
		session, err := w.nextSession(ctx)
		if err != nil {
			return err
		}
		w.token.session = session
		data, err := format.Seal(claim{Attempt: w.attempt, Writer: w.name, At: time.Now().UTC()})
		if err != nil {
			return err
		}
		err = w.store.objects.Create(ctx, "claims/"+w.token.String(), data)
		if err == nil {
			break
		}
		if !errors.Is(err, object.ErrTaken) {
			return err
		}
	}
	// The claim stands: older claims learn at their next publish that they are fenced. So the following list contains
	// everything that was published successfully.
	v, err := w.store.survey(ctx)
	if err != nil {
		return err
	}
	if w.token.before(v.token) {
		return ErrFenced
	}
	f := fence{Token: w.token.String(), Manifests: []string{}}
	for _, name := range v.names {
		_, seq, _ := format.ParseName(name)
		w.seq = max(w.seq, seq)
		if !v.fence[name] { // published by the last writer or by a fenced one
			_, err := w.store.manifest(ctx, v, name)
			if errors.Is(err, errFencedOut) {
				continue
			}
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
		}
		f.Manifests = append(f.Manifests, name) // a damaged one, too: restore reports what is wrong with it
	}
	data, err := format.Seal(f)
	if err != nil {
		return err
	}
	if err := w.store.objects.Create(ctx, "fences/"+w.token.String(), data); err != nil {
		return err
	}
	return w.unfenced(ctx)
}

// nextSession returns the session for a claim of w's epoch.
func (w *Writer) nextSession(ctx context.Context) (int, error) {
	newest, err := w.store.newestClaim(ctx)
	if err != nil {
		return 0, err
	}
	switch {
	case newest == token{}, newest.epoch < w.token.epoch:
		return 1, nil
	case newest.epoch > w.token.epoch:
		return 0, fmt.Errorf("%w: epoch %d", ErrFenced, newest.epoch)
	}
	data, err := w.store.objects.Read(ctx, "claims/"+newest.String())
	if err != nil {
		return 0, err
	}
	var c claim
	if err := format.Unseal(data, &c); err != nil {
		return 0, fmt.Errorf("read claims/%s: %w", newest, err)
	}
	if c.Attempt != w.attempt {
		return 0, fmt.Errorf("%w: attempt %s has the same epoch", ErrFenced, c.Attempt)
	}
	return newest.session + 1, nil
}

// newestClaim returns the newest claim's token; zero if there is none.
func (s *Store) newestClaim(ctx context.Context) (token, error) {
	names, err := s.objects.Names(ctx, "claims")
	return newest(names), err
}

func newest(names []string) token {
	var t token
	for _, n := range names {
		epoch, session, ok := format.ParseName(n)
		if u := (token{epoch, session}); ok && t.before(u) {
			t = u
		}
	}
	return t
}

// unfenced returns ErrFenced if a newer claim exists.
func (w *Writer) unfenced(ctx context.Context) error {
	newest, err := w.store.newestClaim(ctx)
	if err == nil && w.token.before(newest) {
		err = fmt.Errorf("%w: claim %s is newer than %s", ErrFenced, newest, w.token)
	}
	return err
}

// view determines which manifests count, as of one survey of the store.
type view struct {
	token   token           // the manifests that counted before it
	fence   map[string]bool // the manifests that counted before it
	names   []string        // of all manifests, oldest first
	refused []Refused       // damaged fences
}

// errFencedOut says that a manifest was published under a claim after a newer claim was made.
var errFencedOut = errors.New("published by a fenced attempt")

// survey lists manifests before fences: a manifest that appears after a fence was read is then not in the list.
func (s *Store) survey(ctx context.Context) (view, error) {
	v := view{fence: map[string]bool{}}
	names, err := s.objects.Names(ctx, "manifests")
	if err != nil {
		return v, err
	}
	for _, n := range names {
		if epoch, _, ok := format.ParseName(n); ok && (epoch > 0 || !s.unseeded) {
			v.names = append(v.names, n)
		}
	}
	slices.SortFunc(v.names, format.CompareNames)
	fences, err := s.objects.Names(ctx, "fences")
	if err != nil {
		return v, err
	}
	for len(fences) > 0 {
		v.token = newest(fences)
		if v.token == (token{}) {
			break
		}
		key := "fences/" + v.token.String()
		var f fence
		data, err := s.objects.Read(ctx, key)
		if err == nil {
			err = format.Unseal(data, &f)
		}
		if err == nil {
			for _, n := range f.Manifests {
				v.fence[n] = true
			}
			return v, nil
		}
		if !errors.Is(err, ErrDamaged) {
			return v, err
		}
		// The previous fence still applies; what only this one admitted or excluded is unknown.
		v.refused = append(v.refused, Refused{Name: key, Why: err.Error()})
		damaged := v.token.String()
		fences = slices.DeleteFunc(fences, func(n string) bool { return n == damaged })
	}
	v.token = token{}
	return v, nil
}

// manifest reads a manifest that counts; otherwise it returns errFencedOut.
func (s *Store) manifest(ctx context.Context, v view, name string) (format.Manifest, error) {
	epoch, _, _ := format.ParseName(name)
	if !v.fence[name] && epoch < v.token.epoch {
		return format.Manifest{}, fmt.Errorf("manifest %s: %w", name, errFencedOut)
	}
	data, err := s.objects.Read(ctx, "manifests/"+name)
	if err != nil {
		return format.Manifest{}, err
	}
	m, err := format.Decode(name, data)
	if err != nil {
		return format.Manifest{}, fmt.Errorf("manifest %s: %w", name, err)
	}
	if !v.fence[name] && epoch == v.token.epoch && m.Session < v.token.session {
		return format.Manifest{}, fmt.Errorf("manifest %s: %w", name, errFencedOut)
	}
	return m, nil
}
