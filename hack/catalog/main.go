// Command catalog writes the embedded catalogue from the facts in the data folder.
//
//	go run ./hack/catalog ../shared/data/estimate internal/market
package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: catalog FOLDER-OF-FACTS FOLDER-TO-WRITE")
		os.Exit(64)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog: "+err.Error())
		os.Exit(1)
	}
}

func run(from, to string) error {
	specs, err := read(filepath.Join(from, "gpu_specs.csv"))
	if err != nil {
		return err
	}
	if err := write(filepath.Join(to, "accelerator", "accelerators.csv"), specs); err != nil {
		return err
	}
	machines, err := read(filepath.Join(from, "instances.csv"))
	if err != nil {
		return err
	}
	out := [][]string{{"provider", "region", "zone", "machine", "capacity", "accelerator", "accelerators",
		"accelerator_memory_gb", "cpus", "memory_gib", "disk_gb", "network_gbps", "price", "currency", "at", "source",
		"risk_low", "risk_high", "term", "platform", "upfront", "hourly"}}
	col := columns(machines[0])
	for _, m := range machines[1:] {
		rows, err := listings(func(name string) string { return m[col[name]] })
		if err != nil {
			return err
		}
		out = append(out, rows...)
	}
	more, err := read("hack/catalog/more.csv")
	if err != nil {
		return err
	}
	if strings.Join(more[0], ",") != strings.Join(out[0], ",") {
		return fmt.Errorf("more.csv has other columns than the listings: %v", more[0])
	}
	for _, row := range more[1:] {
		if row[columns(more[0])["at"]] == "" || row[columns(more[0])["source"]] == "" {
			return fmt.Errorf("a row of more.csv has no date or no source: %v", row)
		}
	}
	return write(filepath.Join(to, "catalog", "listings.csv"), append(out, more[1:]...))
}

// listings returns the rows that offer a machine: for each region, one per capacity with a price. cell returns the
// machine's field in a column of instances.csv.
func listings(cell func(column string) string) (rows [][]string, err error) {
	kind := cell("gpu_spec")
	if kind == "" {
		kind = cell("accelerator")
	}
	count := cell("accel_count")
	if count == "0" && kind != "" { // a fraction of an accelerator, which no spec describes
		kind, count = kind+"-part", "1"
	}
	at, dated := cell("source_date"), cell("source")
	if strings.HasPrefix(at, "undated") {
		at, dated = "", dated+", "+at
	}
	if at == "" && strings.HasSuffix(dated, "pricing_aws.go") {
		return nil, fmt.Errorf("%s has no date", cell("instance_type"))
	}
	for _, region := range strings.Split(cell("region"), "/") {
		for _, sale := range [][2]string{{"on-demand", cell("on_demand_usd_h")}, {"spot", cell("spot_usd_h")}} {
			if sale[1] == "" {
				continue
			}
			row := []string{cell("provider"), region, "", cell("instance_type"), sale[0], kind, count,
				cell("accel_mem_gb_each"), cell("vcpu"), cell("ram_gib"), cell("local_nvme_gb"), cell("network_gbps"), sale[1],
				"USD", at, dated, "", "", "", "", "", ""}
			rows = append(rows, row)
			if cell("provider") == "gcp" && sale[0] == "spot" && !strings.HasPrefix(kind, "TPU") {
				rows = append(rows, preemptible(row))
			}
		}
	}
	return rows, nil
}

// preemptible copies a spot row of Google Cloud as its older kind, which has the same prices and ends after 24 h.
func preemptible(spot []string) []string {
	row := slices.Clone(spot)
	row[15] += "; preemptible machines have the prices of spot: docs.cloud.google.com/compute/docs/instances/" +
		"create-use-preemptible"
	row[18] = "preemptible"
	return row
}

func columns(head []string) map[string]int {
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	return at
}

func read(name string) ([][]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return csv.NewReader(f).ReadAll()
}

func write(name string, rows [][]string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	if err := w.WriteAll(rows); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
