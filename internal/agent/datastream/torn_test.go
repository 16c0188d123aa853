package datastream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/inode"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// versioned is a source of one file in memory that breaks after some bytes, for good.
type versioned struct {
	text    []byte
	version string
	breaks  int64 // position; beyond the end: never
}

func (s *versioned) Address() string { return "memory://a" }
func (s *versioned) Requests() int64 { return 0 }
func (s *versioned) Close() error    { return nil }

func (s *versioned) List(context.Context) ([]datacache.File, error) {
	return []datacache.File{{Name: "a", Bytes: int64(len(s.text)), Version: s.version}}, nil
}

func (s *versioned) Open(_ context.Context, _ datacache.File, offset int64) (io.ReadCloser, error) {
	end := min(s.breaks, int64(len(s.text)))
	if offset > end {
		return nil, fs.ErrPermission // no other try
	}
	tail := io.Reader(bytes.NewReader(nil))
	if end < int64(len(s.text)) {
		tail = broken{}
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(s.text[offset:end]), tail)), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, fs.ErrPermission }

// damages are faults between two runs of the agent; each gets a file of the cache.
var damages = []func(random *rand.Rand, path string) error{
	func(*rand.Rand, string) error { return nil },
	func(r *rand.Rand, path string) error { return os.Truncate(path, r.Int64N(1000)) },
	func(_ *rand.Rand, path string) error { return os.Remove(path) },
	func(r *rand.Rand, path string) error { // a block that never reached the disk
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, 512), r.Int64N(2000))
		return errors.Join(err, f.Close())
	},
}

// Streams of a file that break off, agents that are killed, machines that crash and tear what they have not written
// back, and new versions of the file follow each other at random. A complete answer is the version that was listed.
func TestView_NeverServesATornEntry(t *testing.T) {
	t.Parallel()
	var sum served
	for seed := range uint64(60) {
		sum.crashes(t, seed, false)
	}
	if sum.wrong > 0 {
		t.Errorf("%d complete answers are not the version that was listed", sum.wrong)
	}
	if sum.complete < 100 || sum.torn < 100 {
		t.Errorf("%d complete answers and %d torn files prove little", sum.complete, sum.torn)
	}
}

// The test above finds a cache that trusts torn files: here the index says of each torn file that it was verified as it
// is, since the machine's last boot.
func TestView_TrustedTornEntryIsFound(t *testing.T) {
	t.Parallel()
	var sum served
	for seed := uint64(0); seed < 60 && sum.wrong == 0; seed++ {
		sum.crashes(t, seed, true)
	}
	if sum.wrong == 0 {
		t.Error("a cache that trusts torn files gave no wrong answer")
	}
}

// served counts the complete answers, those of them that are wrong, and the files that crashes may have torn.
type served struct{ complete, wrong, torn int }

// crashes plays the runs of an agent that the seed draws. With trusting, the index of the cache trusts what a crash has
// torn.
func (c *served) crashes(t *testing.T, seed uint64, trusting bool) {
	random := rand.New(rand.NewPCG(seed, 35))
	dir, boot := fast.Dir(t), 0
	src := &versioned{}
	for step := range 8 {
		if step == 0 || random.IntN(4) == 0 { // a new version, often of the same size
			src.text = pattern(random.IntN(250), 3000+random.IntN(2)*1000)
			src.version = fmt.Sprint(seed, step)
		}
		src.breaks = random.Int64N(8000)
		cache, err := datacache.Open(dir, fmt.Sprint("boot", boot), ample, time.Now)
		must.Do(t, err)
		v, err := Serve(t.Context(), cache, src, nil, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		for range 1 + random.IntN(2) {
			status, got, err := get(t, v.URL+"a", "")
			if status == http.StatusOK && err == nil {
				if c.complete++; !bytes.Equal(got, src.text) {
					c.wrong++
				}
			}
		}
		_, err = v.Close()
		must.Do(t, err)
		must.Do(t, cache.Close())
		if random.IntN(2) == 0 { // the machine crashes; otherwise the agent was killed, and the files are whole
			boot++
			must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || d.Name() == "lock" || trusting && d.Name() == "index.jsonl" {
					return err
				}
				c.torn++
				must.Do(t, os.Chmod(path, 0o600))
				return damages[random.IntN(len(damages))](random, path)
			}))
			if trusting {
				trust(t, dir, fmt.Sprint("boot", boot))
			}
		}
	}
}

// trust makes the index of a cache say of each file that it was verified since the boot as it is now.
func trust(t *testing.T, dir, boot string) {
	path := filepath.Join(dir, "index.jsonl")
	text, err := os.ReadFile(path)
	must.Do(t, err)
	var lines []byte
	for line := range bytes.Lines(text) {
		var e map[string]any
		must.Do(t, json.Unmarshal(line, &e))
		digest := e["digest"].(string)
		if info, err := os.Stat(filepath.Join(dir, "objects", digest[:2], digest)); err == nil {
			e["boot"], e["stamp"] = boot, fmt.Sprintf("%s/%d/%d", inode.Of(info), info.ModTime().UnixNano(), info.Size())
		}
		line, err := json.Marshal(e)
		must.Do(t, err)
		lines = append(append(lines, line...), '\n')
	}
	must.Do(t, os.WriteFile(path, lines, 0o600))
}
