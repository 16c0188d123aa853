package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/work/waste"
)

// google is a recommendation of Google Cloud's Recommender.
type google struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Subtype     string `json:"recommenderSubtype"`
	State       struct {
		State string `json:"state"`
	} `json:"stateInfo"`
	Impact *struct {
		Category   string `json:"category"`
		Projection struct {
			Cost *struct {
				Currency string      `json:"currencyCode"`
				Units    json.Number `json:"units"`
				Nanos    json.Number `json:"nanos"`
			} `json:"cost"`
			Duration string `json:"duration"`
		} `json:"costProjection"`
	} `json:"primaryImpact"`
	Content struct {
		Groups []struct {
			Operations []struct {
				Resource string          `json:"resource"`
				Path     string          `json:"path"`
				Value    json.RawMessage `json:"value"`
			} `json:"operations"`
		} `json:"operationGroups"`
	} `json:"content"`
	Targets []string `json:"targetResources"`
}

// readGoogle reads a JSON list, or an object with one under recommendations.
func readGoogle(in io.Reader) (list []Recommendation, err error) {
	d := json.NewDecoder(in)
	open, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	for open == json.Delim('{') {
		key, err := d.Token()
		if err != nil || key != "recommendations" {
			return nil, errors.Join(errors.New("it has no list of recommendations: write it with gcloud recommender "+
				"recommendations list --format=json"), err)
		}
		if open, err = d.Token(); err != nil || open != json.Delim('[') {
			return nil, errors.Join(errors.New("recommendations is no list"), err)
		}
	}
	for n := 1; d.More(); n++ {
		var g google
		if err := d.Decode(&g); err != nil {
			return nil, fmt.Errorf("recommendation %d: %w", n, err)
		}
		if g.Impact == nil || g.Name == "" {
			return nil, fmt.Errorf("recommendation %d has no name or no primaryImpact: it is none of Google Cloud's Recommender",
				n)
		}
		one, ok, err := g.recommendation()
		switch {
		case err != nil:
			return nil, fmt.Errorf("recommendation %d: %w", n, err)
		case len(list) >= mostRows:
			return nil, errMany
		case ok:
			list = append(list, one)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the list does not end: %w", err)
	}
	return list, nil
}

// recommendation converts a recommendation about cost that nobody has carried out or dismissed.
func (g *google) recommendation() (r Recommendation, ok bool, err error) {
	if g.Impact.Category != "" && g.Impact.Category != "COST" || g.State.State != "" && g.State.State != "ACTIVE" {
		return r, false, nil
	}
	target, size := "", ""
	for _, group := range g.Content.Groups {
		for _, o := range group.Operations {
			if target == "" {
				target = o.Resource
			}
			if o.Path == "/machineType" {
				_ = json.Unmarshal(o.Value, &size) // another type names no machine
			}
		}
	}
	if target == "" && len(g.Targets) > 0 {
		target = g.Targets[0]
	}
	r = Recommendation{Source: "Google Cloud Recommender", Resource: clip(Last(target)), Advice: clip(g.Description),
		Action: waste.Keep}
	if r.Advice == "" {
		r.Advice = clip(g.Subtype)
	}
	if cost := g.Impact.Projection.Cost; cost != nil {
		err := r.googleSaves(cost.Units.String(), cost.Nanos.String(), cost.Currency, g.Impact.Projection.Duration)
		if err != nil {
			return r, false, err
		}
	}
	r.google(g, target, Last(size))
	return r, true, nil
}

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), mostText)], "") }

// googleSaves reads a cost, which is negative if the recommendation saves, over a span such as 2592000s.
func (r *Recommendation) googleSaves(units, nanos, currency, span string) error {
	if units == "" {
		units = "0"
	}
	if nanos == "" {
		nanos = "0"
	}
	whole, err := decimal.Parse(units)
	if err != nil {
		return fmt.Errorf("units %.40q is not a number", units)
	}
	part, err := decimal.Parse(nanos + "e-9")
	if err != nil {
		return fmt.Errorf("nanos %.40q is not a number", nanos)
	}
	d := waste.Month
	if span != "" {
		if d, err = time.ParseDuration(span); err != nil || d <= 0 {
			return fmt.Errorf("the duration %.40q is not a span such as 2592000s", span)
		}
	}
	return r.savesAmount(whole.Add(part).Neg(), currency, d)
}

// google sets the action and the commands. gcloud has no dry run, so the check shows the resource.
func (r *Recommendation) google(g *google, target, size string) {
	parts := map[string]string{}
	fields := strings.Split(strings.TrimPrefix(target, "//compute.googleapis.com/"), "/")
	for i := 0; i+1 < len(fields); i += 2 {
		parts[fields[i]] = fields[i+1]
	}
	at := " --zone " + parts["zones"]
	if parts["zones"] == "" {
		at = " --region " + parts["regions"]
	}
	place := parts["zones"] + parts["regions"]
	words := []string{parts["projects"], place, r.Resource}
	kind, verb, more := "instances", "", ""
	switch subtype := g.Subtype; {
	case strings.Contains(g.Name, "UsageCommitmentRecommender") || strings.Contains(subtype, "COMMITMENT"):
		r.Type = "commitment"
		r.buys()
		return
	case subtype == "STOP_VM":
		r.Action, verb = waste.Stop, "stop"
	case subtype == "CHANGE_MACHINE_TYPE":
		r.Action, verb, more = waste.Shrink, "set-machine-type", " --machine-type "+size
		words = append(words, size)
	case strings.HasSuffix(subtype, "DELETE_DISK"):
		r.Action, kind, verb = waste.Delete, "disks", "delete"
	case subtype == "DELETE_ADDRESS":
		r.Action, kind, verb = waste.Delete, "addresses", "delete"
	}
	r.Type = "compute " + kind
	if verb == "" {
		r.Type = ""
		r.byHand()
		return
	}
	tail := " " + r.Resource + at + " --project " + parts["projects"]
	r.does("gcloud compute "+kind+" describe"+tail, "gcloud compute "+kind+" "+verb+tail+more, words...)
}
