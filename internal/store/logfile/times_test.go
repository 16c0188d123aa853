package logfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Times grow with the output, by at most one entry a second. Entries of lost output and a torn entry are overwritten.
func TestNoteTime_FollowsTheOutput(t *testing.T) {
	s := Files{t.TempDir()}
	log := filepath.Join(s.dir, "logs", "j.1.log")
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	note := func(offset int64, after time.Duration, want ...int64) {
		t.Helper()
		if err := noteTime(log, offset, at.Add(after)); err != nil {
			t.Fatal(err)
		}
		list, err := s.LogTimes(t.Context(), "j.1", 0)
		var got []int64
		for _, v := range list {
			got = append(got, v.Offset)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", list, err, want)
		}
	}
	note(0, 0, 0)
	note(10, TimeSpan/2, 0)
	note(20, TimeSpan, 0, 20)
	note(30, 2*TimeSpan, 0, 20, 30)
	note(20, 3*TimeSpan, 0, 20) // the output from 20 on was lost
	f, err := os.OpenFile(timesPath(log), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("torn")
	_ = f.Close()
	note(50, 9*TimeSpan, 0, 20, 50)
	if list, err := s.LogTimes(t.Context(), "j.1", 2); err != nil || len(list) != 1 || !list[0].At.Equal(at.Add(9*TimeSpan)) {
		t.Errorf("the third: %v, %v", list, err)
	}
}
