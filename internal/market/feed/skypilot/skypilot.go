// Package skypilot reads the tables of the SkyPilot catalogue.
package skypilot

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

var skyMemory = regexp.MustCompile(`'SizeInMiB': *([0-9.]+)`)

// skyColumns lists the required columns of a table.
var skyColumns = []string{"InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB",
	"Price", "Region"}

// Read reads a table of the SkyPilot catalogue. Its prices are in dollars and have no date; they are dated
// p.At, or undated if that is zero.
func Read(p intake.Page, text string) (catalog.Catalog, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true // the accelerators' column is a Python literal
	names, err := r.Read()
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("read SkyPilot table of %s: %w: %w", p.Source, intake.ErrForm, err)
	}
	col := map[string]int{}
	for i, n := range names {
		col[strings.TrimSpace(n)] = i
	}
	for _, need := range skyColumns {
		if _, ok := col[need]; !ok {
			return catalog.Catalog{}, fmt.Errorf("read SkyPilot table of %s: %w: no column %s", p.Source, intake.ErrForm, need)
		}
	}
	if p.Provider == "" {
		return catalog.Catalog{}, errors.New("read SkyPilot table: the file does not say whose prices they are: give " +
			"--provider")
	}
	s := skyTable{page: p, col: col, width: len(names), t: intake.Tally{Source: p.Source}}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return catalog.Catalog{}, fmt.Errorf("read SkyPilot table of %s: %w", p.Source, err)
		}
		s.row(cells)
	}
	s.join()
	c := catalog.New(p.Source, s.rows, s.t.Skips)
	if len(c.Listings) == 0 {
		return c, fmt.Errorf("read SkyPilot table of %s: no row has a price: %s", p.Source, intake.Summary(c.Skipped))
	}
	return c, nil
}

// skyTable is the state of reading a table of the SkyPilot catalogue.
type skyTable struct {
	page  intake.Page
	col   map[string]int
	width int
	t     intake.Tally
	rows  []catalog.Listing
	hosts []skyHost            // Google Cloud machines without their accelerators
	parts map[string][2]string // accelerators without a machine: on-demand and spot prices, by zone, count and kind
}

// row reads one machine type in one zone: its on-demand and its spot price.
func (s *skyTable) row(cells []string) {
	cell := func(name string) string {
		if i, ok := s.col[name]; ok && i < len(cells) {
			return strings.TrimSpace(cells[i])
		}
		return ""
	}
	machine := cmp.Or(cell("InstanceType"), cell("AcceleratorName")) // a TPU is its own machine type
	if len(cells) != s.width || machine == "" || cell("Region") == "" {
		s.t.Skip(catalog.BadRow, machine, "machine or region is missing, or the row is cut")
		return
	}
	if s.apart(machine, cell) {
		return
	}
	shape, ok := skyShape(s.page, machine, cell)
	if !ok {
		s.t.Skip(catalog.BadRow, machine, "processors, memory or accelerators are no numbers")
		return
	}
	for _, sale := range []struct {
		column   string
		capacity market.Capacity
	}{{"Price", market.OnDemand}, {"SpotPrice", market.Spot}} {
		text := cell(sale.column)
		if text == "" || strings.EqualFold(text, "nan") {
			if sale.capacity == market.OnDemand && cell("SpotPrice") == "" {
				s.t.Skip(catalog.NoPrice, machine, cell("Region"))
			}
			continue
		}
		rate, why := catalog.ParsePrice(text)
		if why != "" {
			s.t.Skip(why, machine, sale.column+" "+text)
			continue
		}
		q := market.Quote{Rate: rate, Priced: true, At: s.page.At, Source: s.page.Source}
		zone := cell("AvailabilityZone")
		s.rows = append(s.rows, catalog.Sell(shape, cell("Region"), zone, sale.capacity, q, money.USD))
	}
}

func skyShape(p intake.Page, machine string, cell func(string) string) (catalog.Listing, bool) {
	number := func(name string, most float64) (float64, bool) {
		if cell(name) == "" {
			return 0, true
		}
		v, err := strconv.ParseFloat(cell(name), 64)
		return v, err == nil && !math.IsNaN(v) && v >= 0 && v <= most
	}
	cpus, ok1 := number("vCPUs", 1e5)
	memory, ok2 := number("MemoryGiB", 1e6)
	count, ok3 := number("AcceleratorCount", 1e5)
	if !ok1 || !ok2 || !ok3 {
		return catalog.Listing{}, false
	}
	if l, ok := p.Shapes.Machine(p.Provider, machine); ok {
		return l, true
	}
	l := catalog.Listing{Offer: market.Offer{Provider: p.Provider, Machine: machine, CPUs: int(cpus),
		Memory: size.Bytes(memory * float64(size.GiB))}}
	kind := cell("AcceleratorName")
	if kind == "" {
		return l, true
	}
	l.AcceleratorMemory = skyInfo(cmp.Or(cell("GpuInfo"), cell("GPUInfo")))
	l.Offer.Accelerators = max(1, int(count))
	l.Offer.Accelerator = accelerator.Resolve(kind, machine, l.AcceleratorMemory)
	if count > 0 && count < 1 {
		l.Offer.Accelerator = kind + "-part"
	}
	return l, true
}

// skyInfo returns the accelerator memory in a Python literal, or 0 if it has none.
func skyInfo(literal string) size.Bytes {
	m := skyMemory.FindStringSubmatch(literal)
	if m == nil {
		return 0
	}
	v, err := strconv.ParseFloat(m[1], 64)
	switch {
	case err != nil || v <= 0 || v > 1e7:
		return 0
	case v >= 1000:
		return size.Bytes(v) * size.MiB
	}
	return size.Bytes(v) * size.GB // some tables have gigabytes there
}
