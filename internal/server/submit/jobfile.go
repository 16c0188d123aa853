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
	"scrimp/internal/market/accelerator"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/server/terms"
	"scrimp/internal/wire/api"
)

// checkValues refuses a submission with missing or unexpected shell variables, or without the value of a secret.
func checkValues(r *http.Request, b api.Submission, j spec.Job) *reply.Refusal {
	if no := jobs.Shell(auth.BySocket(r), b.Shell, j.Inherit); no != nil {
		return no
	}
	return jobs.Secrets(b.Secrets, j.Secrets)
}

// checkOffers refuses a job that is restricted to unknown engines. Unless the caller accepts a wait, it also refuses a
// job that no present offer fits: accelerator, memory for its model, image, or the number of machines at once.
func (d *Service) checkOffers(b api.Submission, j spec.Job) (no *reply.Refusal) {
	if no := d.checkEngines(j); no != nil {
		return no
	}
	fewest := j.FewestNodes()
	if b.AcceptWait || j.Resources.Accelerator == "" && j.Image == "" && fewest == 1 && !j.Model.Named() &&
		j.Session == "" {
		return nil
	}
	defer func() {
		if no != nil && j.Session != "" { // scrimp shell has no flag for it
			no.Fix, _, _ = strings.Cut(no.Fix, "; with accept_wait")
		}
	}()
	n := terms.Need(j)
	needs := []struct {
		met func(*market.Offer) bool
		no  *reply.Refusal // the refusal if no offer fits
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
		{func(o *market.Offer) bool { return j.Session == "" || n.Large(o) }, &reply.Refusal{
			Status: http.StatusUnprocessableEntity, Field: "resources",
			Title: "nothing for sale has as many processors or as much memory",
			Fix: "ask for less with resources.cpus and resources.memory (--cpus, --memory): scrimp market lists what is " +
				"for sale; with accept_wait (scrimp run --force) the job waits until something has it"}},
		{n.Imaged, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "image",
			Title: "nothing for sale runs a container image",
			Fix: "leave image out and put what it holds into setup, or name an engine whose machines are containers in " +
				"engines.yaml; with accept_wait (scrimp run --force) the job waits until something runs it"}},
	}
	d.Control.Read(func(m *core.Machine) {
		sale := m.State().Sale() // empty if the server has just started and knows no offers yet
		for _, need := range needs {
			met := func(l *state.Listing) bool { return need.met(l.Offer()) }
			if len(sale) > 0 && !slices.ContainsFunc(sale, met) {
				if no = need.no; no.Field == "resources.accelerator" {
					kind := func(l *state.Listing) string { return l.Offer().Accelerator }
					no.Title += accelerator.Nearest(j.Resources.Accelerator, sale, kind)
				}
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

// checkEngines refuses a job that is restricted to unknown engines or zones. A new engine needs a restart of the
// server, so waiting would not help.
func (d *Service) checkEngines(j spec.Job) *reply.Refusal {
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
		return request.Invalid(list)
	}
	return nil
}

// atOnce returns the highest number of suitable machines that one offer has; false if one has no limit or none is
// suitable.
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

// checkStore refuses a job with a checkpoint store that the server, or its machines with the server's keys, may
// not open.
func (d *Service) checkStore(c identity.Caller, j spec.Job) *reply.Refusal {
	if d.Kept.Stores.OfJob(c.User, j.Checkpoint.Store) {
		return nil
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "checkpoint.store",
		Title: "jobs of this server may not keep checkpoints there", Fix: d.Kept.Stores.Fix()}
}

// maxKey bounds the key of a submission, in bytes.
const maxKey = 255

// wrongKey returns what is wrong with the key of a submission; "": nothing. Databases store keys as text, and some
// do not accept all bytes.
func wrongKey(key string) string {
	switch {
	case len(key) > maxKey:
		return fmt.Sprintf("the key is longer than %d bytes", maxKey)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return "the key contains bytes that are not text"
	}
	return ""
}
