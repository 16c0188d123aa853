package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
)

// The API requires the same proof as scrimp run: a long job that may use spot is refused until a run of its name has
// resumed from a checkpoint, or the user accepts the risk.
func TestProven_RefusesLongSpotRunsWithoutProof(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	long := costing("long", "", `,"work":{"time":"3h"},"checkpoint":{"dir":"ck"}`)
	for path, body := range map[string]string{"/v1/jobs": long, "/v1/jobs/batch": "[" + long + "]"} {
		rec, p := w.ask("POST", path, auth.OwnerName, body)
		if rec.Code != http.StatusUnprocessableEntity || !strings.HasSuffix(p.Field, "accept_unproven") || p.Detail == "" {
			t.Errorf("%s: %d %+v", path, rec.Code, p)
		}
	}
	for what, body := range map[string]string{
		"short":     costing("long", "", `,"work":{"time":"2h"},"checkpoint":{"dir":"ck"}`),
		"on-demand": costing("long", "", `,"work":{"time":"3h"},"resources":{"capacity":["on-demand"]}`),
		"accepted":  strings.Replace(long, "{", `{"accept_unproven":true,`, 1),
	} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %+v", what, rec.Code, p)
		}
	}
	first := w.booting(3)[0]
	j, _, _ := strings.Cut(first, ".")
	w.event(core.AttemptStarted{Attempt: first, Message: 1, Restored: "m", Step: 5}, time.Minute)
	w.event(core.Progressed{Attempt: first, Message: 2, Step: 9}, time.Minute)
	if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, long); rec.Code == http.StatusOK {
		t.Error("one that runs still proves nothing")
	}
	w.event(core.AttemptEnded{Attempt: first, Message: 3, Reason: "completed", Step: 9}, time.Minute)
	w.event(core.InstanceEnded{Instance: w.instance(first), Until: w.control.Now(), Cause: "terminated"}, time.Minute)
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, long); rec.Code != http.StatusOK {
		t.Errorf("after %s went on from a checkpoint: %d %+v", j, rec.Code, p)
	}
}
