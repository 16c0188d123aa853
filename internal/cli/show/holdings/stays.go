package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/work/storage"
)

// phrases complete "3 files" for each reason to stay.
var phrases = map[storage.Reason]string{
	storage.NoRule: "match no rule", storage.KeepRule: "under a keep rule", storage.TooYoung: "used too recently",
	storage.Needed:        "that live jobs, open groups or --keep name",
	storage.Newest:        "of newest checkpoints",
	storage.Chosen:        "of checkpoints with names such as best or final",
	storage.OwnStore:      "in a store of scrimp",
	storage.ServerData:    "in the data folder of a server",
	storage.HardLink:      "with several hard links",
	storage.OddName:       "with names that are not UTF-8",
	storage.LeastDuration: "within the minimum duration of their class",
	storage.PriceUnknown:  "without the prices that the rule needs",
	storage.CostsMore:     "that cost more in the other class",
	storage.TooSmall:      "that are too small for the other class",
	storage.AlreadyThere:  "in the class already",
	storage.NoClasses:     "in folders, which have no storage classes",
	storage.PlanFull:      "beyond the limit of one plan",
}

func (v Scan) stays(b *strings.Builder, p show.Place) {
	var parts []string
	for _, s := range v.Stays {
		phrase := cmp.Or(phrases[storage.Reason(s.Reason)], show.Words(s.Reason))
		if s.Files == 1 && s.Reason == string(storage.NoRule) {
			phrase = "matches no rule"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", draw.Count(int(s.Files), "file"), phrase, show.Bytes(s.Bytes)))
	}
	if len(parts) > 0 {
		b.WriteString(draw.Wrap("", "What stays: "+strings.Join(parts, ", ")+".", p.Columns()))
	}
	for _, text := range v.Remarks {
		b.WriteString(draw.Wrap("", show.Clean(text), p.Columns()))
	}
}

// remarks names the tier rules that can do nothing in one of the places, and why.
func remarks(places []storage.Place, rules []storage.Rule, prices storage.Prices) []string {
	list := []string{}
	buckets := slices.ContainsFunc(places, func(p storage.Place) bool { return p.Store != storage.Local })
	for i, r := range rules {
		had := map[string]bool{}
		for _, p := range places {
			if r.Action != storage.Tier || had[p.Store] {
				continue
			}
			had[p.Store] = true
			if p.Store == storage.Local && buckets {
				continue // the rule is about them
			} else if p.Store == storage.Local {
				list = append(list, fmt.Sprintf("Rule %d moves nothing in a folder: only buckets have storage classes.", i+1))
			} else if x, ok := prices.Of(p.Store, r.Class); !ok || x.Month == nil {
				list = append(list, fmt.Sprintf("Rule %d moves nothing in a bucket of %s: no price of the class %s is known. "+
					"Check its name, or give its price with --price.", i+1, p.Store, r.Class))
			}
		}
	}
	return list
}
