package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent/logship"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// onConsole starts a command on a console.
func onConsole(t *testing.T, script string) (*Console, *exec.Cmd) {
	t.Helper()
	c, err := OpenConsole(0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Terminal(), c.Terminal(), c.Terminal()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Run() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); c.Close(); <-done })
	return c, cmd
}

// attach attaches a user to a console.
func attach(t *testing.T, c *Console, s *typist, typed *atomic.Int32) chan api.ExecResult {
	s.changed, s.size = make(chan struct{}), &api.Terminal{Rows: 30, Cols: 70}
	done := make(chan api.ExecResult, 1)
	run := Session{Server: s, ID: "s1", Mask: logship.NewMasker(map[string]string{"KEY": "sesame-street"}), HangUp: time.Second}
	go func() {
		done <- run.Attach(t.Context(), api.Exec{Attach: true, Input: true, Terminal: s.size}, c, func() { typed.Add(1) })
	}()
	return done
}

// A console outlives its users: two share it, one that leaves ends nothing, and its end shows the last output to all.
func TestConsole_OutlivesItsUsers(t *testing.T) {
	t.Parallel()
	c, _ := onConsole(t, `echo begun; while read x; do echo "got $x sesame-street"; stty size; [ "$x" = end ] && exit; done`)
	var typed atomic.Int32
	one, two := &typist{}, &typist{}
	first, second := attach(t, c, one, &typed), attach(t, c, two, &typed)
	one.prints(t, "begun")
	two.prints(t, "begun")
	one.types("hello\n")
	two.prints(t, "got hello *************\r\n30 70")
	one.change(func() { one.size = &api.Terminal{Rows: 20, Cols: 60} })
	two.types("again\n")
	one.prints(t, "got again")
	if typed.Load() < 2 {
		t.Errorf("input is noticed %d times", typed.Load())
	}
	one.change(func() { one.bye = true })
	over(t, first)
	c.Say("a note")
	two.prints(t, "a note")
	two.types("end\n")
	two.prints(t, "got end")
	if r := over(t, second); r.Exit != 0 || r.Error != "" {
		t.Errorf("it ends with %+v", r)
	}
}

// The console bounds endless output: a new viewer starts with whole new lines, and a slow one with the oldest kept
// output.
func TestConsole_BoundsOutput(t *testing.T) {
	t.Parallel()
	c := &Console{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	slow := c.view(ctx)
	line := []byte(strings.Repeat("x", 99) + "\n")
	for range 20_000 {
		c.put(line)
	}
	if len(c.kept) > 2*consoleKeeps || c.end != 2_000_000 {
		t.Errorf("%d bytes of %d are kept", len(c.kept), c.end)
	}
	b := make([]byte, 4*consoleKeeps)
	if n, err := slow.Read(b); n != len(c.kept) || err != nil {
		t.Errorf("the slow viewer reads %d bytes, %v", n, err)
	}
	n, err := c.view(ctx).Read(b)
	if err != nil || n > consoleShows || n%100 != 0 || !bytes.HasPrefix(b, []byte("xxx")) {
		t.Errorf("a new viewer reads %d bytes, %v", n, err)
	}
	cancel()
	if _, err := slow.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("a viewer that leaves: %v", err)
	}
}

// A child that keeps the terminal open does not keep the console.
func TestConsole_ClosesAlthoughChildHoldsIt(t *testing.T) {
	t.Parallel()
	c, cmd := onConsole(t, "setsid sleep 1000 & echo $!")
	v := c.view(t.Context())
	b := make([]byte, 100)
	n, err := v.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	child := strings.TrimSpace(string(b[:n]))
	t.Cleanup(func() { _ = exec.Command("kill", child).Run() })
	_ = cmd.Wait()
	c.Close()
	eventually.True(t, "the console closes", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.closed })
}

// A line that scrimp says stands at its place for a viewer that follows, comes at once to one that is far behind, and
// comes before the last output to one that was far behind when the program ended.
func TestConsole_ShowsEveryViewerWhatScrimpSays(t *testing.T) {
	t.Parallel()
	c := &Console{changed: make(chan struct{})}
	follows, slow, ends := c.view(t.Context()), c.view(t.Context()), c.view(t.Context())
	b := make([]byte, 64<<10)
	next := func(v *viewer) string {
		t.Helper()
		n, err := v.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	c.put([]byte("before\n"))
	c.Say("it ends soon")
	c.put([]byte("after\n"))
	if got := next(follows) + next(follows) + next(follows); got != "before\n\r\n\x1b[7m[scrimp]\x1b[0m it ends soon\r\nafter\n" {
		t.Errorf("a viewer that follows gets %q", got)
	}
	if late := c.view(t.Context()); next(late)+next(late) != "before\n\r\n\x1b[7m[scrimp]\x1b[0m it ends soon\r\n" {
		t.Error("a new viewer misses the line")
	}
	for range 20_000 {
		c.put([]byte(strings.Repeat("x", 99) + "\n"))
	}
	c.Say("it ends now")
	for _, want := range []string{"it ends soon", "it ends now", "xxx"} {
		if got := next(slow); !strings.Contains(got, want) {
			t.Errorf("a slow viewer gets %q, want %q", got[:min(100, len(got))], want)
		}
	}
	c.closed = true
	if got := next(ends); !strings.Contains(got, "it ends soon") {
		t.Errorf("a viewer gets %q at the end", got[:min(100, len(got))])
	}
	if got := next(ends); len(got) != consoleShows {
		t.Errorf("it gets %d bytes of the last output", len(got))
	}
	if got := next(ends); !strings.Contains(got, "it ends now") {
		t.Errorf("a viewer gets %q after the last output", got)
	}
	if _, err := ends.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("then: %v", err)
	}
	for n := range 2 * consoleSays {
		c.Say(strings.Repeat("n", n))
	}
	if len(c.said) != consoleSays || c.says != 2*consoleSays+2 {
		t.Errorf("%d lines of %d are kept", len(c.said), c.says)
	}
}
