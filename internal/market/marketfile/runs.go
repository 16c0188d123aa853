package marketfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/market"
)

// runs reads the availability or the prices of spot, and their duration. All zones of a file have the same duration.
func (m Import) runs(text []byte) ([]market.TraceLine, time.Duration, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	head, err := r.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("line 1: %w", err)
	}
	t, err := m.table(head)
	if err != nil {
		return nil, 0, err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		if err := t.add(row); err != nil {
			line, _ := r.FieldPos(0)
			return nil, 0, fmt.Errorf("line %d: %w", line, err)
		}
	}
	return t.market()
}

// runTable is the state of reading a run-length coded file.
type runTable struct {
	Import
	column map[string]int
	value  int    // the column of prices, or of 0 and 1
	priced bool   // the value column holds prices
	window string // of the first row, if there are windows
	lines  []market.TraceLine
	at     map[string]int    // index of a zone in lines
	ends   map[string]int    // the tick up to which a zone is known
	ups    map[string][]bool // a zone's spot availability, tick by tick
}

// table reads the column names.
func (m Import) table(head []string) (*runTable, error) {
	t := &runTable{Import: m, column: map[string]int{}, at: map[string]int{}, ends: map[string]int{},
		ups: map[string][]bool{}}
	for i, h := range head {
		t.column[h] = i
	}
	if t.value, t.priced = t.column["usd_per_hour"]; !t.priced {
		t.value = t.column["available"]
	}
	for _, want := range []string{"zone", "start_tick", "ticks", "available"} {
		if _, ok := t.column[want]; !ok && (want != "available" || !t.priced) {
			return nil, fmt.Errorf("line 1: no column %s: the columns are zone,start_tick,ticks,available (or usd_per_hour)",
				want)
		}
	}
	if _, both := t.column["available"]; both && t.priced {
		return nil, errors.New("line 1: the columns available and usd_per_hour: give a file of each")
	}
	if m.Tick <= 0 {
		return nil, errors.New("ticks: the file does not say how long one is: give --tick, such as 10m")
	}
	return t, nil
}

// add adds a row, unless it belongs to another window.
func (t *runTable) add(row []string) error {
	if ok, err := t.inWindow(row); err != nil || !ok {
		return err
	}
	zone, start, ticks, err := t.run(row)
	if err != nil {
		return err
	}
	n, seen := t.at[zone]
	if !seen {
		n = len(t.lines)
		t.at[zone] = n
		t.lines = append(t.lines, market.TraceLine{Offer: t.offer(zone, "")})
	}
	t.ends[zone] += ticks
	if t.priced {
		usd, err := rate(row[t.value])
		if err != nil {
			return fmt.Errorf("usd_per_hour: %w", err)
		}
		if l := &t.lines[n]; len(l.Price) == 0 || l.Price[len(l.Price)-1].Rate != usd {
			l.Price = append(l.Price, market.Price{At: time.Duration(start) * t.Tick, Rate: usd})
		}
		return nil
	}
	if row[t.value] != "0" && row[t.value] != "1" {
		return fmt.Errorf("available: %q is neither 0 nor 1", row[t.value])
	}
	t.ups[zone] = append(t.ups[zone], slices.Repeat([]bool{row[t.value] == "1"}, ticks)...)
	return nil
}

// inWindow reports whether a row belongs to the selected window: the requested one, or else the file's only one.
func (t *runTable) inWindow(row []string) (bool, error) {
	column, windows := t.column["window"]
	if !windows {
		return true, nil
	}
	switch w := row[column]; {
	case t.Window != "" && w != t.Window:
		return false, nil
	case t.window == "":
		t.window = w
	case w != t.window:
		return false, fmt.Errorf("window: %q after %q, and a market is one of them: name it with --window", w, t.window)
	}
	return true, nil
}

// run returns the start and the length of a row's run.
func (t *runTable) run(row []string) (zone string, start, ticks int, err error) {
	zone = row[t.column["zone"]]
	start, err1 := strconv.Atoi(row[t.column["start_tick"]])
	ticks, err2 := strconv.Atoi(row[t.column["ticks"]])
	switch {
	case err1 != nil || err2 != nil || ticks <= 0 || ticks > 1<<24:
		err = fmt.Errorf("start_tick and ticks: %q and %q: give whole numbers, ticks above 0",
			row[t.column["start_tick"]], row[t.column["ticks"]])
	case start != t.ends[zone]:
		err = fmt.Errorf("start_tick: %d, but the row before of zone %s ends at %d: give the rows in order, without holes",
			start, zone, t.ends[zone])
	case ticks > int(longest/t.Tick)-start:
		err = fmt.Errorf("ticks: %d of %v from %d on are more than 100 years: cut it", ticks, t.Tick, start)
	}
	return zone, start, ticks, err
}

// market returns the market of all rows.
func (t *runTable) market() ([]market.TraceLine, time.Duration, error) {
	if len(t.lines) == 0 {
		if t.Window != "" {
			return nil, 0, fmt.Errorf("no rows of the window %q that --window names", t.Window)
		}
		return nil, 0, errors.New("no rows")
	}
	end := t.ends[t.lines[0].Offer.Zone]
	for i := range t.lines {
		zone := t.lines[i].Offer.Zone
		if t.ends[zone] != end {
			return nil, 0, fmt.Errorf("ticks: %s ends at tick %d and %s at %d: cut the longer one", zone, t.ends[zone],
				t.lines[0].Offer.Zone, end)
		}
		if !t.priced {
			t.lines[i].Available = spans(t.ups[zone], t.Tick, t.Notice)
		}
	}
	return t.lines, time.Duration(end) * t.Tick, nil
}
