package bill

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/cli/command"
	"scrimp/internal/content/billfile"
	"scrimp/internal/test/must"
)

// shows runs scrimp bill show --json on a file.
func shows(t *testing.T, name string, b []byte) (out map[string]any, text string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(file, b, 0o600))
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
	b, err := os.ReadFile(filepath.Join("..", "..", "work", "bill", "reader", "testdata", "faults.csv"))
	must.Do(t, err)
	out, _, err := shows(t, "faults.csv", b)
	if list, ok := out["problems"].([]any); !errors.Is(err, command.Failed) || !ok || len(list) != 15 {
		t.Errorf("%v: %v", err, out)
	}
	if _, _, err := shows(t, "x.csv", []byte("a,b\n1,2\n")); command.Status(err) != 1 || !strings.Contains(err.Error(), "is no bill") {
		t.Error(err)
	}
}

// A bill is sent with the same rows alone and after other files: an unread row before its first line follows that line,
// so that it is not taken for one of the file before.
func TestPack_SendsABillWithTheSameRowsAfterOtherFiles(t *testing.T) {
	head := "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceName,ProviderName,ResourceId,BillingAccountId\n"
	row := func(cost, account string) string {
		return cost + ",USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,EC2,AWS,i-1," + account + "\n"
	}
	dir := t.TempDir()
	other, cur := filepath.Join(dir, "f.csv"), filepath.Join(dir, "cur.csv")
	for file, text := range map[string]string{other: head + row("3", "a"), cur: head + row("x", "b") + row("5", "b") + row("y", "b")} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	rows := func(files ...string) (list []string) {
		var sent bytes.Buffer
		must.Do(t, billfile.Pack(t.Context(), &sent, billfile.Named(files)))
		z, err := gzip.NewReader(&sent)
		must.Do(t, err)
		text, err := io.ReadAll(z)
		must.Do(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	alone, after := rows(cur), rows(other, cur)
	if len(alone) != 3 || !strings.Contains(alone[0], `"billed":"5"`) || len(after) != 4 || !slices.Equal(alone, after[1:]) {
		t.Errorf("alone\n%s\nafter another\n%s", strings.Join(alone, "\n"), strings.Join(after, "\n"))
	}
}
