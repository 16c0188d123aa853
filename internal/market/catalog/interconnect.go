package catalog

import (
	_ "embed" // the facts are part of the program
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/figure"
	"scrimp/internal/market/table"
)

//go:embed interconnect.csv
var interconnectRows string

// Interconnect is the network speed of a machine type, and the link speed of its accelerators if it differs from their
// kind's: pairs of PCIe boards with a bridge.
type Interconnect struct {
	Network figure.Figure // Gbit/s per machine
	Link    figure.Figure // GB/s one way between its accelerators
	Source  string
	At      time.Time
}

var interconnects = mustInterconnects()

func mustInterconnects() map[string]Interconnect {
	m, err := parseInterconnects(interconnectRows)
	if err != nil {
		panic("catalog: " + err.Error()) // the rows are part of the program, and a test reads them
	}
	return m
}

func parseInterconnects(text string) (map[string]Interconnect, error) {
	rows, err := table.Read(text)
	if err != nil {
		return nil, err
	}
	all := map[string]Interconnect{}
	for _, r := range rows {
		key := r["provider"] + "/" + strings.ToLower(r["machine"])
		at, err := time.Parse(time.DateOnly, r["date"])
		x := Interconnect{Source: r["source"], At: at}
		for _, f := range []struct {
			name string
			to   *figure.Figure
		}{{"network_gbps", &x.Network}, {"link_gb_s", &x.Link}} {
			if r[f.name] == "" {
				continue
			}
			v, bad := strconv.ParseFloat(r[f.name], 64)
			if bad != nil || !(v > 0) || v > 1e5 {
				return nil, fmt.Errorf("interconnect of %s: %s is %q", key, f.name, r[f.name])
			}
			*f.to = figure.Known(v)
		}
		if _, twice := all[key]; twice || err != nil || x.Source == "" {
			return nil, fmt.Errorf("interconnect of %s stands twice, or without source or date", key)
		}
		all[key] = x
	}
	return all, nil
}

// joined fills the listing's unknown interconnect figures from the table.
func (l *Listing) joined() {
	x, ok := interconnects[l.Offer.Provider+"/"+strings.ToLower(l.Offer.Machine)]
	if ok && !l.Network.OK {
		l.Network = x.Network
	}
	if ok && !l.Link.OK {
		l.Link = x.Link
	}
}
