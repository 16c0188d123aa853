package terms

import (
	"slices"
	"strings"

	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
)

// Reads returns the inputs that the job's machines read from a store whose region the job file states, with the fares
// of the catalogue. Files of the work folder travel with it and are none. kinds holds the driver by name of engine.
func Reads(j spec.Job, c catalog.Catalog, kinds map[string]string) (list []plan.Read) {
	for _, d := range j.Data {
		if d.Region == "" || !strings.Contains(d.Path, "://") {
			continue
		}
		r := plan.Read{Origin: egress.From(c, catalog.Store(d.Path), d.Region), Name: d.Name, Path: d.Path,
			Bytes: int64(d.Size)}
		for name, kind := range kinds {
			switch {
			case kind == r.Provider && name != kind:
				r.Sellers = append(r.Sellers, name)
			case kind != r.Provider && !slices.Contains(clouds, kind):
				r.Own = append(r.Own, name)
			}
		}
		slices.Sort(r.Sellers)
		slices.Sort(r.Own)
		list = append(list, r)
	}
	return list
}

// clouds lists the drivers whose regions are those of a provider.
var clouds = []string{"aws"}
