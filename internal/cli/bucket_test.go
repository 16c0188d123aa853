//go:build !local

package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// A bucket that vanishes while a pipeline runs ends the stage that reads it on its first machine, with stage, input and
// fix. A bucket that is missing before the run is refused. What the stages before it have cost is not lost: once the
// bucket is back, the next run reuses them.
func TestPipeline_NamesTheBucketThatVanishes(t *testing.T) {
	lane.Component(t, "objects")
	address, bucket := blobtest.S3(t)
	host, query, _ := strings.Cut(address, "?")
	h := newHome(t)
	h.bin = testbin.Full.Path(t)
	corpus, began, gone := filepath.Join(bucket, "corpus"), filepath.Join(h.dir, "began"), filepath.Join(h.dir, "gone")
	must.Do(t, errors.Join(os.Mkdir(corpus, 0o755), os.WriteFile(filepath.Join(corpus, "a"), []byte("hello"), 0o644)))
	h.write("raw.txt", "3\n1\n2\n")
	text := `name: retrain
budget: $5
stages:
  prepare:
    cmd: touch ` + began + `; until [ -e ` + gone + ` ]; do sleep 0.02; done; sort -n raw.txt > sorted.txt
    deps: [raw.txt]
    outs: [sorted.txt]
  train:
    cmd: cat sorted.txt $SCRIMP_DATA_CORPUS/a > model.txt
    deps: [sorted.txt]
    outs: [model.txt]
    data: [{name: corpus, path: "` + host + `/corpus?` + query + `"}]
`
	h.write("pipeline.yaml", text)
	ended := make(chan string, 1)
	go func() {
		out, err := h.try("pipeline", "run", "-y")
		ended <- out + errorText(err)
	}()
	h.until("prepare has begun", func() bool { _, err := os.Stat(began); return err == nil })
	must.Do(t, errors.Join(os.Rename(bucket, bucket+".away"), os.WriteFile(gone, nil, 0o644)))
	said := <-ended
	for _, want := range []string{"train    failed", "bring the input corpus from " + host + "/corpus", "does not exist: create it, or correct the name",
		"no other machine is tried", "exit status 3"} {
		if !strings.Contains(said, want) {
			t.Errorf("a bucket that vanishes during the run: it does not say %q:\n%s", want, said)
		}
	}

	out, err := h.try("pipeline", "run", "-y")
	said = out + errorText(err)
	for _, want := range []string{"pipeline.yaml:12: `stages.train.data[0].path`: stage train: " + host + " does not exist", "exit status 1"} {
		if !strings.Contains(said, want) {
			t.Errorf("a bucket that is missing before the run: it does not say %q:\n%s", want, said)
		}
	}
	h.write("pipeline.yaml", strings.Replace(text, "    data:", "    checkpoint: {dir: ck, store: \""+address+"\"}\n    #", 1))
	out, err = h.try("pipeline", "run", "-y")
	said = out + errorText(err)
	for _, want := range []string{"`stages.train.checkpoint.store`: stage train: " + host + " does not exist", "exit status 1"} {
		if !strings.Contains(said, want) {
			t.Errorf("a missing bucket for checkpoints: it does not say %q:\n%s", want, said)
		}
	}

	h.write("pipeline.yaml", text)
	must.Do(t, os.Rename(bucket+".away", bucket))
	g, states := h.pipeline(0)
	if states != "prepare reused, train done" || g.Pipeline.Saved.Sign() <= 0 {
		t.Errorf("once the bucket is back: %s, saved %v", states, g.Pipeline.Saved)
	}
}

// errorText is the exit status of a command, or why it did not run.
func errorText(err error) string {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.Error()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
