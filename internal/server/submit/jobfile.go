package submit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/terms"
	"scrimp/internal/wire/api"
)

// shellOf refuses what of the submitter's shell is missing, or is not to be there.
func shellOf(r *http.Request, b api.Submission, j spec.Job) *reply.Refusal {
	return jobs.Shell(auth.BySocket(r), b.Shell, j.Inherit)
}

// unsold refuses a job that is held to engines which are not there; and one whose accelerator nothing for sale
// has, whose model nothing holds, whose image nothing takes, or of whose machines nothing has so many at once,
// unless its sender accepts that it waits.
func (d *Desk) unsold(b api.Submission, j spec.Job) (no *reply.Refusal) {
	if no := d.nowhere(j); no != nil {
		return no
	}
	fewest := j.FewestNodes()
	if b.AcceptWait || j.Resources.Accelerator == "" && j.Image == "" && fewest == 1 && !j.Model.Named() {
		return nil
	}
	n := terms.Need(j)
	needs := []struct {
		met func(*market.Offer) bool
		no  *reply.Refusal // where nothing meets it
	}{
		{n.Accelerated, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "resources.accelerator",
			Title: "nothing for sale has the accelerator " + j.Resources.Accelerator,
			Fix: "leave it out, ask for one that scrimp market lists, or name an engine that sells it in engines.yaml; " +
				"with accept_wait (scrimp run --force) the job waits until something has it"}},
		{n.Holds, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "model",
			Title: "nothing for sale holds the model, which takes " + n.LeastFootprint().String() + " by its estimate",
			Fix: "say how it is divided (model.sharding), or trains in less (model.tuning, " +
				"model.activation_checkpointing); an exact resources.accelerator, such as A10G:1, goes before the " +
				"estimate, and resources.memory on machines without accelerators; " +
				"with accept_wait (scrimp run --force) the job waits until something holds it"}},
		{n.Imaged, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "image",
			Title: "nothing for sale runs a container image",
			Fix: "leave image out and put what it holds into setup, or name an engine whose machines are containers in " +
				"engines.yaml; with accept_wait (scrimp run --force) the job waits until something runs it"}},
	}
	d.Control.Read(func(m *core.Machine) {
		sale := m.State().Sale() // empty where the server has just begun: nobody knows yet
		for _, need := range needs {
			met := func(l *state.Listing) bool { return need.met(l.Offer()) }
			if len(sale) > 0 && !slices.ContainsFunc(sale, met) {
				no = need.no
				return
			}
		}
		if most, limited := atOnce(&n, sale); limited && most < fewest {
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "nodes",
				Title: fmt.Sprintf("nothing for sale has %d such machines at once: the most is %d", fewest, most),
				Fix: fmt.Sprintf("ask for nodes: %d, or for machines that are not reserved; with accept_wait "+
					"(scrimp run --force) the job waits until something has them", max(1, most))}
		}
	})
	return no
}

// nowhere refuses a job that is held to engines, or zones of them, that are not there. An engine that is made known
// later needs a server that is started anew, so that waiting for it is no way out.
func (d *Desk) nowhere(j spec.Job) *reply.Refusal {
	if !slices.ContainsFunc(j.AnyOf, func(v spec.Variant) bool { return v.Engine != "" }) {
		return nil
	}
	var engines []string
	for _, e := range d.Control.Engines() {
		if e.Configured {
			engines = append(engines, e.Name)
		}
	}
	var sold []market.Offer
	d.Control.Read(func(m *core.Machine) {
		for o := range m.Sale() {
			sold = append(sold, o)
		}
	})
	if list := terms.Unknown(j, engines, sold); len(list) > 0 {
		return notValid(list)
	}
	return nil
}

// atOnce is how many machines that do the work one offer has at most; false where one has no limit, or
// where none does it.
func atOnce(n *plan.Need, sale []*state.Listing) (most int, limited bool) {
	for _, l := range sale {
		if !n.Equipped(l.Plan()) {
			continue
		}
		count := l.Offer().Reserved.Count
		if count == 0 {
			return 0, false
		}
		most, limited = max(most, count), true
	}
	return most, limited
}

// keepsElsewhere refuses a job that names a store which the server is not to open, or its machines with its keys.
func (d *Desk) keepsElsewhere(c identity.Caller, j spec.Job) *reply.Refusal {
	if d.Kept.Stores.OfJob(c.User, j.Checkpoint.Store) {
		return nil
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "checkpoint.store",
		Title: "jobs of this server may not keep checkpoints there", Fix: d.Kept.Stores.Fix()}
}

// maxKey is how many bytes the key of a submission has at most.
const maxKey = 255

// wrongKey says what is wrong with the key of a submission, "" for nothing. A
// database keeps keys as text, and not every one takes every byte in it.
func wrongKey(key string) string {
	switch {
	case len(key) > maxKey:
		return fmt.Sprintf("the key is longer than %d bytes", maxKey)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return "the key holds bytes that are no text"
	}
	return ""
}
