package exports

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// object is an object of the bucket, as listed.
type object struct {
	key     string
	size    int64
	changed time.Time
	version string // differs for other content
}

// group is the objects of a billing period.
type group struct {
	month     string // such as 2026-10
	export    string // the folder of the export
	manifests []object
}

// billingPeriod matches the folder of a billing period: of Data Exports (CUR 2.0, FOCUS), BILLING_PERIOD=2026-10, and
// of legacy reports, 20261001-20261101. Source: docs.aws.amazon.com, AWS Data Exports user guide, "Understanding export
// delivery" and "Understanding your report versions", 2026-11.
var billingPeriod = regexp.MustCompile(`^(.*?)/?(?:(?:data|metadata)/)?` +
	`(?:BILLING_PERIOD=(\d{4}-\d{2})|(\d{4})(\d{2})\d{2}-\d{8})/`)

// groups finds the billing periods of the listed objects, newest first.
func groups(objects []object) (list []group) {
	of := map[[2]string]int{}
	for _, o := range objects {
		m := billingPeriod.FindStringSubmatch(o.key)
		if m == nil {
			continue
		}
		month := m[2]
		if month == "" {
			month = m[3] + "-" + m[4]
		}
		if _, err := time.Parse("2006-01", month); err != nil {
			continue
		}
		id := [2]string{month, m[1]}
		at, known := of[id]
		if !known {
			at = len(list)
			of[id], list = at, append(list, group{month: month, export: m[1]})
		}
		if strings.HasSuffix(strings.ToLower(path.Base(o.key)), "manifest.json") {
			list[at].manifests = append(list[at].manifests, o)
		}
	}
	slices.SortFunc(list, func(a, b group) int {
		if a.month != b.month {
			return strings.Compare(b.month, a.month)
		}
		return strings.Compare(a.export, b.export)
	})
	return list
}

// manifest returns the newest manifest. Of several from the same second, it is the one in the uppermost folder, which
// always describes the newest version of a report.
func (g *group) manifest() (newest object, ok bool) {
	for i, o := range g.manifests {
		switch newer := o.changed.Compare(newest.changed); {
		case i == 0, newer > 0,
			newer == 0 && strings.Count(o.key, "/") < strings.Count(newest.key, "/"):
			newest = o
		}
	}
	return newest, len(g.manifests) > 0
}

// Limits on a manifest.
const (
	mostManifest = 8 << 20 // bytes
	mostParts    = 200     // as in an import
)

// partsOf returns the keys of the files that a manifest names.
func partsOf(text []byte, bucket string) ([]string, error) {
	var m struct {
		Files  []string `json:"dataFiles"`  // of Data Exports: whole addresses
		Report []string `json:"reportKeys"` // of legacy reports: keys
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("it is not a manifest: %w", err)
	}
	keys := slices.Clone(m.Report)
	for _, file := range m.Files {
		key, ok := strings.CutPrefix(file, "s3://"+bucket+"/")
		if !ok {
			return nil, fmt.Errorf("it names %.200q, which is not in the bucket %s", file, bucket)
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	switch {
	case len(keys) == 0:
		return nil, errors.New("it names no files (dataFiles or reportKeys)")
	case len(keys) > mostParts:
		return nil, fmt.Errorf("it names %d files, and an import has at most %d", len(keys), mostParts)
	}
	return keys, nil
}
