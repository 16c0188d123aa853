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
)

// token is a claim's place in the order of claims: the attempt's epoch, and
// within it the session, which counts the restarts of that attempt's agent.
type token struct{ epoch, session int }

func (t token) String() string { return format.NameOf(t.epoch, t.session) }

func (t token) before(u token) bool {
	return t.epoch < u.epoch || t.epoch == u.epoch && t.session < u.session
}

// claim is who may write under a token.
type claim struct {
	Attempt string    `json:"attempt"`
	Writer  string    `json:"writer"`
	At      time.Time `json:"at"`
}

// fence is what counted when a claim was made. What an older claim publishes
// later is never restored.
type fence struct {
	Token     string   `json:"token"`
	Manifests []string `json:"manifests"`
}

// Writer publishes under a claim. Its methods may be called by several
// goroutines; Publish, Verify and Prune wait for each other.
type Writer struct {
	store   *Store
	token   token
	attempt string
	name    string // chance

	mu       sync.Mutex
	seq      int                    // highest that is used by any manifest
	known    map[string]format.Part // by sum: parts that no prune of an older claim drops, and that are stored
	verified map[string]bool        // by key: parts that this writer read back
	swept    bool                   // objects that nobody refers to were dropped, but for those of failed publishes
	shared   int64                  // newest step that was published for all ranks; 0: none
}

// Claim takes the right to write for the attempt with this epoch; attempts of
// lower epochs, and earlier sessions of the same attempt, are fenced out from
// here on. It returns ErrFenced where an attempt with a higher epoch, or
// another attempt with the same, has the claim.
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
		err = w.store.putOnce(ctx, "claims/"+w.token.String(), data)
		if err == nil {
			break
		}
		if !errors.Is(err, errTaken) {
			return err
		}
	}
	// The claim stands: what older claims publish from here on tells them that they
	// are fenced. So the list that follows has all that was published with success.
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
		if !v.fence[name] { // one of the last writer's, or a fenced one's
			_, err := w.store.manifest(ctx, v, name)
			if errors.Is(err, errFencedOut) {
				continue
			}
			if err != nil && !errors.Is(err, ErrDamaged) {
				return err
			}
		}
		f.Manifests = append(f.Manifests, name) // a damaged one too: restore says what is wrong with it
	}
	data, err := format.Seal(f)
	if err != nil {
		return err
	}
	if err := w.store.putOnce(ctx, "fences/"+w.token.String(), data); err != nil {
		return err
	}
	return w.unfenced(ctx)
}

// nextSession returns the session that a claim of w's epoch gets.
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
	data, err := w.store.read(ctx, "claims/"+newest.String())
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

// newestClaim returns the zero token where there is none.
func (s *Store) newestClaim(ctx context.Context) (token, error) {
	names, err := s.list(ctx, "claims")
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

// unfenced returns ErrFenced where a newer claim stands.
func (w *Writer) unfenced(ctx context.Context) error {
	newest, err := w.store.newestClaim(ctx)
	if err == nil && w.token.before(newest) {
		err = fmt.Errorf("%w: claim %s is newer than %s", ErrFenced, newest, w.token)
	}
	return err
}

// view is what counts, as of one survey of the store.
type view struct {
	token   token           // of the newest fence
	fence   map[string]bool // the manifests that counted before it
	names   []string        // of all manifests, oldest first
	refused []Refused       // fences that are damaged
}

// errFencedOut says that a manifest was published under a claim that another had followed.
var errFencedOut = errors.New("published by a fenced attempt")

// survey lists manifests before fences: what a fence leaves out was then there too late.
func (s *Store) survey(ctx context.Context) (view, error) {
	v := view{fence: map[string]bool{}}
	names, err := s.list(ctx, "manifests")
	if err != nil {
		return v, err
	}
	for _, n := range names {
		if epoch, _, ok := format.ParseName(n); ok && (epoch > 0 || !s.unseeded) {
			v.names = append(v.names, n)
		}
	}
	slices.SortFunc(v.names, format.CompareNames)
	fences, err := s.list(ctx, "fences")
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
		data, err := s.read(ctx, key)
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
		// The fence before it still holds; what it let in and this one shut out is lost knowledge.
		v.refused = append(v.refused, Refused{Name: key, Why: err.Error()})
		damaged := v.token.String()
		fences = slices.DeleteFunc(fences, func(n string) bool { return n == damaged })
	}
	v.token = token{}
	return v, nil
}

// manifest reads one that counts; errFencedOut says that it does not.
func (s *Store) manifest(ctx context.Context, v view, name string) (format.Manifest, error) {
	epoch, _, _ := format.ParseName(name)
	if !v.fence[name] && epoch < v.token.epoch {
		return format.Manifest{}, fmt.Errorf("manifest %s: %w", name, errFencedOut)
	}
	data, err := s.read(ctx, "manifests/"+name)
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
