package bill

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/command"
)

// shows runs scrimp bill show --json on a file.
func shows(t *testing.T, name string, b []byte) (out map[string]any, text string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	a := &app{&command.App{Out: &printed, Err: io.Discard, JSON: true}}
	cmd := a.showCmd()
	cmd.SetArgs([]string{file})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	if printed.Len() > 0 {
		if err := json.Unmarshal(printed.Bytes(), &out); err != nil {
			t.Fatalf("%v: %s", err, printed.String())
		}
	}
	return out, printed.String(), err
}

func TestShow_ExitsWithOneOnUnreadableRow(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "work", "bill", "testdata", "faults.csv"))
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := shows(t, "faults.csv", b)
	if list, ok := out["problems"].([]any); !errors.Is(err, command.Failed) || !ok || len(list) != 15 {
		t.Errorf("%v: %v", err, out)
	}
	if _, _, err := shows(t, "x.csv", []byte("a,b\n1,2\n")); command.Status(err) != 1 || !strings.Contains(err.Error(), "is no bill") {
		t.Error(err)
	}
}
