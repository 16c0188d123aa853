package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/cli"
)

// A command without a job file is named after its script. Its output is printed, the files it writes are stored, and
// the cost of an interruption is noted before it starts.
func TestRun_StreamsCommandAndStoresItsFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("train.sh", "for i in 1 2 3 4 5; do echo line $i; sleep 0.3; done; mkdir -p runs; echo weights > runs/model; cat given")
	h.write("given", "as it was\n")
	cmd := h.command("run", "-y", "--market", "calm", "--", "sh", "train.sh")
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	program, receipt, _ := strings.Cut(printed.String(), "────")
	if program != "line 1\nline 2\nline 3\nline 4\nline 5\nas it was\n" || !strings.Contains(receipt, "Receipt for train: succeeded") {
		t.Errorf("the output is\n%s", printed.String())
	}
	before, after, _ := strings.Cut(said.String(), "train running")
	if warns := "an interruption costs what train has done since it saved"; !strings.Contains(strings.Join(strings.Fields(before), " "), warns) {
		t.Errorf("before it begins it says\n%s", before)
	}
	if !strings.Contains(after, "scrimp get train copies its outputs here: 1 file, 8B.") {
		t.Errorf("at its end it says\n%s", after)
	}
	h.do("get", "train")
	if list, _ := filepath.Glob(filepath.Join(h.dir, "train-outputs", "[^.]*")); len(list) != 1 {
		t.Errorf("fetched are %v", list)
	}
	if text, err := os.ReadFile(filepath.Join(h.dir, "train-outputs", "runs", "model")); string(text) != "weights\n" {
		t.Errorf("the model holds %q, %v", text, err)
	}
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// If the output cannot be written, the command reports it and fails.
func TestMain_FailsWhenOutputIsNotWritten(t *testing.T) {
	for _, args := range [][]string{{"offers"}, {"offers", "--json"}, {"commit", "demand", "flat"}, {"estimate", "--models"}, {"--version"}} {
		var said bytes.Buffer
		if code := cli.Main(args, strings.NewReader(""), full{}, &said); code != 1 || !strings.Contains(said.String(), "no space left") {
			t.Errorf("scrimp %s to a full disk: status %d, %q", strings.Join(args, " "), code, said.String())
		}
	}
}
