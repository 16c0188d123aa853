package replay

import (
	"fmt"
	"strings"

	"scrimp/internal/work/tune"
	"scrimp/internal/work/tune/freeze"
	"scrimp/internal/work/tune/rungs"
)

// searchers lists the available searchers.
var searchers = []struct {
	name string
	make func(*tune.Search) tune.Searcher
}{
	{"random", rungs.Random},
	{"median-stop", rungs.MedianStop},
	{"asha-stop", rungs.AshaStop},
	{"asha-promo", rungs.AshaPromo},
	{"hyperband-async", rungs.HyperbandAsync},
	{"top-k", rungs.TopK},
	{"default", freeze.New},
}

// Names returns the names of all searchers.
func Names() (list []string) {
	for _, s := range searchers {
		list = append(list, s.name)
	}
	return list
}

// New returns the searcher with the given name.
func New(name string, search *tune.Search) (tune.Searcher, error) {
	for _, s := range searchers {
		switch {
		case s.name != name:
		case search.Stops() && name != "default": // which has the rule itself
			return freeze.Watch(s.make(search), search), nil
		default:
			return s.make(search), nil
		}
	}
	return nil, fmt.Errorf("no searcher %q: give one of %s", name, strings.Join(Names(), ", "))
}
