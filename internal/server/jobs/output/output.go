// Package output sends the output of jobs.
package output

import (
	"bytes"

	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/server/jobs/watchers"
	"scrimp/internal/server/reply"
	"scrimp/internal/store/logfile"
)

// Log has the output of programs.
type Log interface {
	ReadLog(ctx context.Context, attempt string, offset int64, limit int) ([]byte, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	LogTimes(ctx context.Context, attempt string, skip int) ([]logfile.Time, error)
}

// Service answers requests for output.
type Service struct {
	Control *control.Control
	Log     Log
	Share   watchers.Share
	// Removed returns which of a job's files were removed to make room.
	Removed func(ctx context.Context, job string) (client.Removed, error)
}

// everyNode selects the output of all machines of a gang.
const everyNode = -1

// Output streams the output of all attempts, one after the other: of one machine of a gang, or of all with the rank
// before each line.
func (d *Service) Output(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !d.Control.Job(id, func(*core.Machine, *core.Job) {}) {
		reply.UnknownJob(w, "", id)
		return
	}
	follow := r.URL.Query().Get("follow") != ""
	o, ok := d.asked(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if o.json {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	d.sayRemoved(r.Context(), w, id, o)
	for first := true; ; first = false {
		changed := d.Control.Changed()
		parts, _, over := d.parts(id)
		if first && o.begin(r.Context(), parts) != nil {
			return
		}
		if o.send(r.Context(), w, parts) != nil {
			return
		}
		if !follow || over {
			_ = o.rest(r.Context(), w) // fails if the client has left
			return
		}
		if d.Share.Next(r, changed, 300*time.Millisecond, 0) != nil {
			return
		}
	}
}

// sayRemoved writes a line that says which output was removed.
func (d *Service) sayRemoved(ctx context.Context, w http.ResponseWriter, id string, o *output) {
	if is, err := d.Removed(ctx, id); err == nil && is.Logs != nil && o.skip == 0 && !o.json {
		_, _ = fmt.Fprintf(w, "scrimp: the output until %s was removed then to make room\n", // w keeps its error
			is.Logs.Format("2006-01-02 15:04 MST"))
	}
}

// NoNode says that a job has no such node.
func NoNode(text string, nodes int) string {
	if nodes == 1 {
		return fmt.Sprintf("the job has no node %.20q: it runs on one machine, which is node 0", text)
	}
	return fmt.Sprintf("the job has no node %.20q: it runs on %d machines, which are nodes 0 to %d", text, nodes, nodes-1)
}

// part is an attempt whose output is sent.
type part struct {
	attempt string
	nodes   int
	began   string // separator line: how the previous attempt ended and where this one runs
}

// parts returns the attempts of a job, the highest number of machines it has at once, and whether it has ended.
func (d *Service) parts(id string) (parts []part, nodes int, over bool) {
	d.Control.Job(id, func(_ *core.Machine, j *core.Job) {
		nodes = max(1, j.Terms().Nodes)
		for i, a := range j.Attempts() {
			parts = append(parts, part{attempt: a.ID(), nodes: control.Nodes(a)})
			if i > 0 {
				parts[i].began = between(i+1, j.Attempts()[i-1], a)
			}
			nodes = max(nodes, control.Nodes(a))
		}
		over = j.Priced()
	})
	return parts, nodes, over
}

// between returns the separator between the output of two attempts.
func between(number int, before, a *core.Attempt) string {
	text := fmt.Sprintf("--- attempt %d", number)
	if offer := string(a.Offer()); offer != "" {
		text += " on " + offer
	}
	if a.First() > 0 {
		text += fmt.Sprintf(" from step %d", a.First())
	}
	return text + ": " + receipt.WhyNext(fmt.Sprintf("attempt %d", number-1), before.End()) + " ---"
}

// output is the position in the output of a job, with the requested selection and format.
type output struct {
	wanted
	d      *Service
	user   string
	n      int             // index of the attempt
	of     string          // id of the attempt
	nodes  int             // number of machines whose output is sent
	starts map[place]int64 // start of the selection; nil: the beginning
	at     map[int]int64   // offset in the output, by node
	begun  map[int][]byte  // by node: an incomplete line, which is sent once it is complete
	from   map[int]int64   // offset of that line
	said   int             // last attempt whose separator was sent
	open   bool            // the last byte sent was not a line end
	times  times
}

// send sends the available output of the attempts.
func (o *output) send(ctx context.Context, w http.ResponseWriter, parts []part) error {
	for o.n < len(parts) {
		o.of, o.nodes = parts[o.n].attempt, 1
		if o.node == everyNode {
			o.nodes = max(1, parts[o.n].nodes)
		}
		if err := o.tell(w, parts); err != nil {
			return err
		}
		news := false
		for node := range parts[o.n].nodes {
			if o.node != everyNode && o.node != node {
				continue
			}
			if _, begun := o.at[node]; !begun {
				o.at[node], o.from[node] = o.starts[place{o.n, node}], o.starts[place{o.n, node}]
			}
			b, err := o.d.Log.ReadLog(ctx, logfile.Name(o.of, node), o.at[node], 1<<20)
			if err == nil && len(b) > 0 {
				news = true
				o.at[node] += int64(len(b))
				if err = o.write(ctx, w, node, b); err == nil {
					err = o.d.Share.Pay(ctx, o.user, len(b)/watchers.LogPart)
				}
			}
			if err != nil {
				return err
			}
		}
		switch {
		case news:
		case o.n == len(parts)-1:
			return nil // it may grow
		default:
			if err := o.rest(ctx, w); err != nil {
				return err
			}
			o.n++
			clear(o.at)
			clear(o.from)
			clear(o.times)
		}
	}
	return nil
}

// tell sends the separator before the attempt.
func (o *output) tell(w http.ResponseWriter, parts []part) error {
	if !o.between || o.json || o.said >= o.n || parts[o.n].began == "" {
		return nil
	}
	o.said = o.n
	line := parts[o.n].began + "\n"
	if o.open { // the previous program ended within a line
		line = "\n" + line
	}
	o.open = false
	return reply.Flush(w, []byte(line))
}

// Limits on incomplete lines in memory: of one machine, and of all machines of a gang together, since a thousand
// programs may each print a line without end.
const (
	longestLine  = 1 << 20
	longestLines = 4 << 20
)

// write sends new output of a node.
func (o *output) write(ctx context.Context, w http.ResponseWriter, node int, b []byte) error {
	if o.lines() {
		b = append(o.begun[node], b...)
		whole := bytes.LastIndexByte(b, '\n') + 1
		if whole == 0 && len(b) > min(longestLine, longestLines/o.nodes) {
			whole = len(b)
		}
		o.begun[node] = bytes.Clone(b[whole:])
		b = o.format(ctx, node, b[:whole])
	}
	cut := min(o.skip, int64(len(b)))
	o.skip -= cut
	if len(b) > 0 {
		o.open = b[len(b)-1] != '\n'
	}
	return reply.Flush(w, b[cut:])
}

// rest sends incomplete lines at the end of an attempt.
func (o *output) rest(ctx context.Context, w http.ResponseWriter) error {
	for _, node := range slices.Sorted(maps.Keys(o.begun)) {
		if err := reply.Flush(w, o.format(ctx, node, o.begun[node])); err != nil {
			return err
		}
	}
	clear(o.begun)
	return nil
}
