package output

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/server/jobs/watchers"
	"scrimp/internal/store"
	"scrimp/internal/store/logfile"
	"scrimp/internal/test/must"
)

// printed is the output of programs by name.
type printed map[string]string

func (printed) WholeRecords(context.Context, uint64, int) ([]store.Record, error) { return nil, nil }
func (p printed) ReadLog(_ context.Context, name string, offset int64, limit int) ([]byte, error) {
	text := p[name]
	text = text[min(offset, int64(len(text))):]
	return []byte(text[:min(limit, len(text))]), nil
}

func (p printed) LogEnd(_ context.Context, name string) (int64, error) {
	return int64(len(p[name])), nil
}

// LogTimes reports that each ten bytes arrived a minute after those before.
func (p printed) LogTimes(_ context.Context, name string, skip int) (list []logfile.Time, err error) {
	for at := 10 * skip; at < len(p[name]); at += 10 {
		list = append(list, logfile.Time{Offset: int64(at), At: noon.Add(time.Duration(at/10) * time.Minute)})
	}
	return list, nil
}

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func (p printed) output(node int, skip int64) *output {
	return p.wanted(wanted{node: node, skip: skip, tail: -1})
}

func (p printed) wanted(v wanted) *output {
	return &output{wanted: v, d: &Service{Log: p, Share: watchers.New()}, at: map[int]int64{}, begun: map[int][]byte{}, from: map[int]int64{}, times: times{}}
}

// all returns what a reader gets at once.
func (o *output) all(t *testing.T, parts []part) string {
	t.Helper()
	w := httptest.NewRecorder()
	must.Do(t, o.begin(t.Context(), parts))
	must.Do(t, o.send(t.Context(), w, parts))
	must.Do(t, o.rest(t.Context(), w))
	return w.Body.String()
}

// The output of a node covers all attempts that have it, one after the other. With all nodes, each line has its
// node's number, even an incomplete one.
func TestOutput_OfOneNodeOrOfAllWithNumbers(t *testing.T) {
	t.Parallel()
	p := printed{
		"j.1": "a0\nb0\n", "j.1~1": "a1\nb1", "j.1~2": "",
		"j.2": "c0\n", "j.2~1": "[0] c1\r\n\nd1\n", // an attempt on two machines
		"j.3": "e0\n", "j.3~1": "e1\n", "j.3~2": "e2\n",
	}
	parts := []part{{attempt: "j.1", nodes: 3}, {attempt: "j.2", nodes: 2}, {attempt: "j.3", nodes: 3}}
	for _, c := range []struct {
		node int
		skip int64
		want string
	}{
		{0, 0, "a0\nb0\nc0\ne0\n"}, {0, 7, "0\ne0\n"}, {1, 0, "a1\nb1[0] c1\r\n\nd1\ne1\n"}, {1, 4, "1[0] c1\r\n\nd1\ne1\n"}, {2, 0, "e2\n"},
		{everyNode, 0, "[0] a0\n[0] b0\n[1] a1\n[1] b1\n[0] c0\n[1] [0] c1\r\n[1] \n[1] d1\n[0] e0\n[1] e1\n[2] e2\n"},
	} {
		if got := p.output(c.node, c.skip).all(t, parts); got != c.want {
			t.Errorf("node %d after %d bytes: %q, want %q", c.node, c.skip, got, c.want)
		}
	}
}

// A follower of all nodes gets each line once it is complete, whichever node is first.
func TestOutput_FollowOfAllNodesSendsWholeLines(t *testing.T) {
	t.Parallel()
	p := printed{"j.1": "a", "j.1~1": "x\ny"}
	o, parts := p.output(everyNode, 0), []part{{attempt: "j.1", nodes: 2}}
	step := func(want string) {
		t.Helper()
		w := httptest.NewRecorder()
		if err := o.send(t.Context(), w, parts); err != nil || w.Body.String() != want {
			t.Errorf("%q, %v; want %q", w.Body, err, want)
		}
	}
	step("[1] x\n")
	step("")
	p["j.1~1"] += "z\n"
	step("[1] yz\n")
	p["j.1"] += "b\nc"
	step("[0] ab\n")
	parts = append(parts, part{attempt: "j.2", nodes: 2}) // the first attempt has ended
	step("[0] c\n")
	p["j.2~1"] = strings.Repeat("w", longestLine+5)
	w := httptest.NewRecorder()
	if err := o.send(t.Context(), w, parts); err != nil || !bytes.HasPrefix(w.Body.Bytes(), []byte("[1] www")) {
		t.Errorf("a line without an end is kept back: %d bytes, %v", w.Body.Len(), err)
	}
}

// tail counts lines per node from the newest attempts, including an incomplete last line.
func TestOutput_TailTakesTheNewestAttempts(t *testing.T) {
	t.Parallel()
	p := printed{
		"j.1": "a\nb\n", "j.1~1": "A\nB\nC\n", "j.2": "", "j.2~1": strings.Repeat("x", 3*blockSize) + "\n", "j.3": "c\nd", "j.3~1": "",
	}
	parts := []part{{attempt: "j.1", nodes: 2}, {attempt: "j.2", nodes: 2, began: "-- 2"}, {attempt: "j.3", nodes: 2, began: "-- 3"}}
	for _, c := range []struct {
		node, tail int
		want       string
	}{
		{0, 0, ""}, {0, 1, "d"}, {0, 2, "c\nd"}, {0, 3, "b\n-- 2\n-- 3\nc\nd"}, {0, 4, "a\nb\n-- 2\n-- 3\nc\nd"}, {0, 99, "a\nb\n-- 2\n-- 3\nc\nd"},
		{1, 2, "C\n-- 2\n" + strings.Repeat("x", 3*blockSize) + "\n-- 3\n"}, {everyNode, 1, "[1] " + strings.Repeat("x", 3*blockSize) + "\n-- 3\n[0] d\n"},
	} {
		if got := p.wanted(wanted{node: c.node, tail: c.tail, between: true}).all(t, parts); got != c.want {
			t.Errorf("the last %d lines of node %d: %.60q, want %.60q", c.tail, c.node, got, c.want)
		}
	}
}

// A line's time is the arrival of its first byte, and since starts with the first line that arrived then or later.
func TestOutput_LinesHaveTheirArrivalTime(t *testing.T) {
	t.Parallel()
	p := printed{"j.1": "0123456\n89abc\nefghijklmnopqrstu\nw\n", "j.2": "z"}
	parts := []part{{attempt: "j.1", nodes: 1}, {attempt: "j.2", nodes: 1, began: "-- 2"}}
	for _, c := range []struct {
		since time.Duration
		want  string
	}{
		{0, "2026-11-01T12:00:00Z 0123456\n2026-11-01T12:00:00Z 89abc\n2026-11-01T12:01:00Z efghijklmnopqrstu\n" +
			"2026-11-01T12:03:00Z w\n-- 2\n2026-11-01T12:00:00Z z\n"},
		{30 * time.Second, "2026-11-01T12:01:00Z efghijklmnopqrstu\n2026-11-01T12:03:00Z w\n-- 2\n"},
		{3 * time.Minute, "2026-11-01T12:03:00Z w\n-- 2\n"}, {time.Hour, ""},
	} {
		o := p.wanted(wanted{tail: -1, between: true, stamps: true, since: noon.Add(c.since)})
		if got := o.all(t, parts); got != c.want {
			t.Errorf("since %v: %q, want %q", c.since, got, c.want)
		}
	}
	o := p.wanted(wanted{tail: 1, json: true, between: true})
	if got := o.all(t, parts); got != `{"line":"z","attempt":2,"at":"2026-11-01T12:00:00Z"}`+"\n" {
		t.Errorf("as objects: %q", got)
	}
}

// If a program ended within a line, the separator still starts on a new line.
func TestOutput_SeparatorStartsOnANewLine(t *testing.T) {
	t.Parallel()
	p := printed{"j.1": "loss 0.", "j.2": "loss 0.5\n"}
	parts := []part{{attempt: "j.1", nodes: 1}, {attempt: "j.2", nodes: 1, began: "-- 2"}}
	if got := p.wanted(wanted{tail: -1, between: true}).all(t, parts); got != "loss 0.\n-- 2\nloss 0.5\n" {
		t.Errorf("%q", got)
	}
}

// The programs of a large gang that print without line ends use little memory per reader.
func TestOutput_EndlessLinesOfAGangHoldLittleMemory(t *testing.T) {
	t.Parallel()
	p := printed{}
	for node := range 100 {
		p[logfile.Name("j.1", node)] = strings.Repeat("x", 200_000)
	}
	o := p.output(everyNode, 0)
	parts := []part{{attempt: "j.1", nodes: 100}}
	if err := o.begin(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	must.Do(t, o.send(t.Context(), httptest.NewRecorder(), parts))
	held := 0
	for _, b := range o.begun {
		held += len(b)
	}
	if held > longestLines {
		t.Errorf("%d bytes are kept back", held)
	}
}
