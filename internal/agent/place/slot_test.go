package place

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"scrimp/internal/wire/api"
)

// Tasks that run together never share a slot, and a task whose folder is left keeps its slot.
func TestTakeSlot_AssignsSlotToOneTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	take := func(n int) string {
		a := api.Assignment{Attempt: fmt.Sprintf("job-%d.1", n), Setup: "make"}
		if err := TakeSlot(dir, a); err != nil {
			t.Fatal(err)
		}
		if err := TakeSlot(dir, a); err != nil { // the agent was restarted
			t.Fatal(err)
		}
		return filepath.Base(LayOut(dir, a).Top)
	}
	got := []string{take(1), take(2), take(3)}
	if err := LayOut(dir, api.Assignment{Attempt: "job-2.1"}).Remove(); err != nil {
		t.Fatal(err)
	}
	if got = append(got, take(4), take(1)); !slices.Equal(got, []string{"1", "2", "3", "2", "1"}) {
		t.Errorf("slots %v", got)
	}
	a := api.Assignment{Attempt: "job-9.1", Setup: "make", Secrets: map[string]string{"K": "v"}}
	if err := TakeSlot(dir, a); err != nil || LayOut(dir, a).Top != filepath.Join(dir, "tasks", "job-9.1") {
		t.Errorf("a task with secrets is in %s, %v", LayOut(dir, a).Top, err)
	}
}
