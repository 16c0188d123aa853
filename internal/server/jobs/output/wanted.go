package output

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/api"
)

// wanted is the selection and format of output.
type wanted struct {
	node    int       // rank of the machine; everyNode: all
	skip    int64     // bytes still to be skipped
	between bool      // a separator between attempts
	stamps  bool      // the arrival time before each line
	json    bool      // each line as a JSON object
	tail    int       // only so many existing lines of each machine; -1: all
	since   time.Time // only lines that arrived at or after this time
}

// lines reports whether the output is sent in whole lines rather than as it arrives.
func (o *wanted) lines() bool { return o.node == everyNode || o.stamps || o.json }

// asked returns the output that a request selects. If the request is wrong, it answers it.
func (d *Service) asked(w http.ResponseWriter, r *http.Request) (o *output, ok bool) {
	o = &output{d: d, user: auth.CallerOf(r).User,
		at: map[int]int64{}, begun: map[int][]byte{}, from: map[int]int64{}, times: times{}}
	_, nodes, _ := d.parts(r.PathValue("id"))
	query := r.URL.Query()
	if wrong := o.read(query, nodes); wrong != nil {
		wrong.Answer(w)
		return nil, false
	}
	if plain := o.node != everyNode && !o.between && !o.lines() && o.tail < 0 && o.since.IsZero(); o.skip > 0 && !plain {
		reply.FieldProblem(w, http.StatusBadRequest, "offset", "offset counts bytes of the plain output of one machine",
			"leave it out, or ask for one node and nothing else", nil)
		return nil, false
	}
	return o, true
}

// read parses a request, or returns what is wrong with it.
func (o *wanted) read(q url.Values, nodes int) *reply.Refusal {
	bad := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusBadRequest, Field: field, Title: title, Fix: fix}
	}
	o.between, o.stamps, o.json = q.Get("attempts") != "", q.Get("timestamps") != "", q.Get("format") == "json"
	o.tail = -1
	var err error
	if text := q.Get("offset"); text != "" {
		if o.skip, err = strconv.ParseInt(text, 10, 64); err != nil || o.skip < 0 {
			return bad("offset", "offset is not a count of bytes",
				"give how many bytes you have already, or leave it out for all")
		}
	}
	if text := q.Get("tail"); text != "" {
		if o.tail, err = strconv.Atoi(text); err != nil || o.tail < 0 {
			return bad("tail", "tail is not a number of lines", "give one from 0 on, or leave it out for all")
		}
	}
	if text := q.Get("since"); text != "" {
		if o.since, err = time.Parse(time.RFC3339, text); err != nil {
			return bad("since", "since is not a time such as 2026-12-01T18:00:00Z", "leave it out for all")
		}
	}
	switch text := q.Get("node"); text {
	case "":
	case "all":
		o.node = everyNode
	default:
		if o.node, err = strconv.Atoi(text); err != nil || o.node < 0 || o.node >= nodes {
			no := bad("node", NoNode(text, nodes), "leave it out for node 0, or give all")
			no.Status = http.StatusNotFound
			return no
		}
	}
	return nil
}

// place identifies a rank of an attempt, by the attempt's index.
type place struct{ attempt, node int }

// begin finds the start of the selected output.
func (o *output) begin(ctx context.Context, parts []part) error {
	if o.tail < 0 && o.since.IsZero() || len(parts) == 0 {
		return nil
	}
	o.starts = map[place]int64{}
	first, most := len(parts)-1, 0
	for _, p := range parts {
		most = max(most, p.nodes)
	}
	for node := range most {
		if o.node != everyNode && o.node != node {
			continue
		}
		left := o.tail
		for n, p := range slices.Backward(parts) {
			if node >= p.nodes {
				continue
			}
			start, end, err := o.startOf(ctx, logfile.Name(p.attempt, node), &left)
			if err != nil {
				return err
			}
			o.starts[place{n, node}] = start
			if start < end {
				first = min(first, n)
			}
		}
	}
	o.n, o.said = first, first
	return nil
}

// startOf returns the start of a rank's selected output, and its present end; left is the number of lines still
// wanted.
func (o *output) startOf(ctx context.Context, name string, left *int) (start, end int64, err error) {
	if end, err = o.d.Log.LogEnd(ctx, name); err != nil {
		return 0, 0, err
	}
	if !o.since.IsZero() {
		if start, err = o.sinceStart(ctx, name, end); err != nil {
			return 0, 0, err
		}
	}
	if o.tail >= 0 {
		start, err = o.tailStart(ctx, name, start, end, left)
	}
	return start, end, err
}

// sinceStart returns the start of the first line that arrived at or after since. Output without known times counts
// as later.
func (o *output) sinceStart(ctx context.Context, name string, end int64) (int64, error) {
	times, err := o.d.Log.LogTimes(ctx, name, 0)
	if err != nil || len(times) == 0 {
		return 0, err
	}
	n := slices.IndexFunc(times, func(t logfile.Time) bool { return !t.At.Before(o.since) })
	if n < 0 {
		return end, nil
	}
	for at := times[n].Offset; at > 0; { // possibly within a line
		b, err := o.d.Log.ReadLog(ctx, name, at-1, blockSize)
		if err != nil || len(b) == 0 {
			return end, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return at + int64(i), nil
		}
		at += int64(len(b))
	}
	return 0, nil
}

// blockSize is the number of bytes read at once in the search for lines.
const blockSize = 64 << 10

// tailStart returns the start of the last left lines, not before start.
func (o *output) tailStart(ctx context.Context, name string, start, end int64, left *int) (int64, error) {
	for at := end; at > start; {
		from := max(start, at-blockSize)
		b, err := o.d.Log.ReadLog(ctx, name, from, int(at-from))
		if err != nil {
			return 0, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != '\n' && from+int64(i) != end-1 {
				continue
			}
			// a line ends here, and the next one starts behind it
			if *left == 0 {
				return from + int64(i) + 1, nil
			}
			*left--
		}
		at = from
	}
	return start, nil
}

// times holds the arrival times of output that were read so far, by rank of an attempt.
type times map[string][]logfile.Time

// arrived returns when the byte at an offset of a rank's output arrived; nil: unknown.
func (o *output) arrived(ctx context.Context, name string, offset int64) *time.Time {
	known := o.times[name]
	if len(known) == 0 || known[len(known)-1].Offset <= offset { // newer times may exist
		more, err := o.d.Log.LogTimes(ctx, name, len(known))
		if err != nil {
			return nil
		}
		known = append(known, more...)
		o.times[name] = known
	}
	n, _ := slices.BinarySearchFunc(known, offset, func(t logfile.Time, offset int64) int {
		if t.Offset <= offset {
			return -1
		}
		return 1
	})
	if n == 0 {
		return nil
	}
	return &known[n-1].At
}

// format returns whole lines of a node in the requested format.
func (o *output) format(ctx context.Context, node int, text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		var at *time.Time
		if o.stamps || o.json {
			at = o.arrived(ctx, logfile.Name(o.of, node), o.from[node])
		}
		o.from[node] += int64(len(line))
		line = bytes.TrimSuffix(line, []byte("\n"))
		if o.json {
			v, _ := json.Marshal(api.LogLine{Node: node, Attempt: o.n + 1, At: at, // marshaling it cannot fail
				Line: string(bytes.ToValidUTF8(line, []byte("\uFFFD")))})
			out = append(append(out, v...), '\n')
			continue
		}
		if o.stamps {
			out = append(append(out, stamp(at)...), ' ')
		}
		if o.node == everyNode {
			out = fmt.Appendf(out, "[%d] ", node)
		}
		out = append(append(out, line...), '\n')
	}
	return out
}

// stamp formats a time, or as many dashes if it is unknown.
func stamp(at *time.Time) string {
	if at == nil {
		return "--------------------"
	}
	return at.UTC().Format("2006-01-02T15:04:05Z")
}
