package jobs

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/store"
	"scrimp/internal/store/logfile"
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

// LogTimes says that each ten bytes came a minute after those before.
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
	return &output{wanted: v, d: &Desk{Log: p, watching: newShare()}, at: map[int]int64{}, begun: map[int][]byte{}, from: map[int]int64{}, times: times{}}
}

// all is what the reader of an output gets at once.
func (o *output) all(t *testing.T, parts []part) string {
	t.Helper()
	w := httptest.NewRecorder()
	if err := o.begin(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	if err := o.send(t.Context(), w, parts); err != nil {
		t.Fatal(err)
	}
	if err := o.rest(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

// The output of a node is that of all attempts which have it, one after the other; with all each line
// says of which node it is, also where its end is missing.
func TestOutputIsOfOneNodeOrOfAllWithTheirNumbers(t *testing.T) {
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

// Who follows all nodes gets each line once it is whole, whichever node goes on first.
func TestFollowingAllNodesSendsWholeLines(t *testing.T) {
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
	parts = append(parts, part{attempt: "j.2", nodes: 2}) // nothing follows in the first one
	step("[0] c\n")
	p["j.2~1"] = strings.Repeat("w", longestLine+5)
	w := httptest.NewRecorder()
	if err := o.send(t.Context(), w, parts); err != nil || !bytes.HasPrefix(w.Body.Bytes(), []byte("[1] www")) {
		t.Errorf("a line without an end is kept back: %d bytes, %v", w.Body.Len(), err)
	}
}

// The last lines are those of the newest attempts, of each node for itself, also where the last has no end.
func TestTheLastLinesAreThoseOfTheNewestAttempts(t *testing.T) {
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

// A line has the time at which its beginning arrived, and since begins with the first line that begins then or later.
func TestLinesHaveTheTimeAtWhichTheyArrived(t *testing.T) {
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

// A program that ended within a line does not take the line between attempts into its own.
func TestTheLineBetweenAttemptsStandsAlone(t *testing.T) {
	t.Parallel()
	p := printed{"j.1": "loss 0.", "j.2": "loss 0.5\n"}
	parts := []part{{attempt: "j.1", nodes: 1}, {attempt: "j.2", nodes: 1, began: "-- 2"}}
	if got := p.wanted(wanted{tail: -1, between: true}).all(t, parts); got != "loss 0.\n-- 2\nloss 0.5\n" {
		t.Errorf("%q", got)
	}
}

// Programs of a large gang that print without ending a line have little kept back for each reader.
func TestLinesWithoutEndOfAGangHoldLittle(t *testing.T) {
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
	if err := o.send(t.Context(), httptest.NewRecorder(), parts); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, b := range o.begun {
		held += len(b)
	}
	if held > longestLines {
		t.Errorf("%d bytes are kept back", held)
	}
}
