package retention

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/lib/size"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/limits"
)

// maxKeep bounds the jobs that a request may name.
const maxKeep = 10_000

// longestDetail bounds the detail in the audit trail, in bytes.
const longestDetail = 200

// wish describes what a request removes, for the audit trail.
func wish(b client.GC) string {
	text := "what is due"
	if b.Fit != nil {
		return "outputs of stages beyond " + size.Bytes(*b.Fit).String()
	}
	if b.OlderThan > 0 {
		text = "older than " + formatSpan(b.OlderThan)
	}
	if len(b.Only) > 0 {
		text += ", only " + strings.Join(b.Only, ", ")
	}
	if b.NewestCheckpoints {
		text += ", newest checkpoints too"
	}
	return text
}

// GC removes old files, or lists them.
func (d *Service) GC(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.GC](w, r)
	if !ok {
		return
	}
	for _, kind := range b.Only {
		if !slices.Contains(Kinds, kind) {
			reply.FieldProblem(w, http.StatusUnprocessableEntity, "only", fmt.Sprintf("%.40q cannot be removed",
				kind), "write some of "+strings.Join(Kinds, ", "), nil)
			return
		}
	}
	if b.OlderThan < 0 || len(b.Keep) > maxKeep {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "older_than_ns", "the request is not valid",
			fmt.Sprintf("write a span of 0 or more, and at most %d jobs to keep", maxKeep), nil)
		return
	}
	if b.Fit != nil && (*b.Fit < 0 || b.OlderThan > 0 || len(b.Only) > 0 || b.NewestCheckpoints) {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "fit", "the request is not valid",
			"write the bytes that outputs of stages may take, 0 or more, and neither older_than_ns, only nor "+
				"newest_checkpoints", nil)
		return
	}
	if b.DryRun {
		auth.CallOf(r).Written = true // nothing changes
	} else if err := d.Gate.ProposeWith(r, "", limits.Cut(wish(b), longestDetail)); err != nil && d.Control.Full() == nil {
		// Recorded before the removal, unless only the removal makes room for the record.
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	done, err := d.remove(r.Context(), d.asked(b))
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, fmt.Sprintf("not everything was checked; %d things were removed",
			len(done.Items)), "ask again; the detail says what is wrong", err)
		return
	}
	reply.JSON(w, done)
}
