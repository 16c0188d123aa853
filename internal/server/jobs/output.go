package jobs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/server/reply"
)

// Output streams the output of all attempts, one after the other.
func (d *Desk) Output(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.job(w, r); !ok {
		return
	}
	id := r.PathValue("id")
	follow := r.URL.Query().Get("follow") != ""
	o := output{d: d}
	if text := r.URL.Query().Get("offset"); text != "" {
		var err error
		if o.skip, err = strconv.ParseInt(text, 10, 64); err != nil || o.skip < 0 {
			reply.FieldProblem(w, http.StatusBadRequest, "offset", "offset is not a count of bytes",
				"give how many bytes you have already, or leave it out for all", nil)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for {
		changed := d.Control.Changed()
		var attempts []string
		over := false
		d.Control.Job(id, func(_ *core.Machine, j *core.Job) {
			for _, a := range j.Attempts() {
				attempts = append(attempts, a.ID())
			}
			over = Closed(j)
		})
		if o.send(r.Context(), w, attempts) != nil || !follow || over {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// output is how far the output of a job was sent.
type output struct {
	d    *Desk
	skip int64 // bytes that are still to be left out
	n    int   // the attempt
	at   int64 // and how far in its output
}

// send sends what there is of the attempts' output.
func (o *output) send(ctx context.Context, w http.ResponseWriter, attempts []string) error {
	flush, _ := w.(http.Flusher)
	for o.n < len(attempts) {
		b, err := o.d.Log.ReadLog(ctx, attempts[o.n], o.at, 1<<20)
		if err != nil {
			return err
		}
		o.at += int64(len(b))
		cut := min(o.skip, int64(len(b)))
		o.skip -= cut
		switch b = b[cut:]; {
		case len(b) > 0:
			if _, err := w.Write(b); err != nil {
				return err
			}
			if flush != nil {
				flush.Flush()
			}
		case o.n == len(attempts)-1:
			return nil // it may grow
		default:
			o.n, o.at = o.n+1, 0
		}
	}
	return nil
}
