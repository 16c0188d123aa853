// Package commit plans commitments: reserved machines, savings plans and committed use, which cost less than on-demand
// and are owed for their whole term regardless of use. It converts hourly demand to purchases by month.
package commit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
)

// Limits of a demand file. They make every cost fit a signed 64-bit count (see Window.Cost).
const (
	MaxUnits   = 1_000_000_000 // in one hour of one region
	MaxHours   = 100_000       // about eleven years
	MaxRegions = 1000
	MaxCells   = 10_000_000 // hours × regions
	maxLine    = 1 << 16    // bytes
)

// A Region is one column of a demand file.
type Region struct {
	Name  string
	Units []int64 // in use in each hour; one unit is one machine of any type
}

// A Demand holds the hours of all regions.
type Demand struct {
	Calendar Calendar
	Numbered bool // the file numbers its hours, so the caller set Calendar
	Hours    int
	Regions  []Region
	Empty    []string // regions of the file without any demand; Regions leaves them out
}

// A Calendar gives the time of hour 0, in UTC.
type Calendar struct{ Zero time.Time }

// Month returns the first hour of a month. Month 0 contains hour 0, so the result may be negative.
func (c Calendar) Month(i int) int {
	first := time.Date(c.Zero.Year(), c.Zero.Month()+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
	return int(first.Sub(c.Zero) / time.Hour)
}

// Name formats a month as 2024-03.
func (c Calendar) Name(i int) string {
	return c.Zero.AddDate(0, 0, 1-c.Zero.Day()).AddDate(0, i, 0).Format("2006-01")
}

// Months returns the months wholly within the given number of hours: first, and the end after the last.
func (c Calendar) Months(hours int) (first, end int) {
	if c.Month(0) < 0 {
		first = 1
	}
	end = first
	for c.Month(end+1) <= hours {
		end++
	}
	return first, end
}

// reader reads a demand file line by line.
type reader struct {
	file string
	line int
	d    Demand
}

func (r *reader) wrong(field, cause, fix string) error {
	at := fmt.Sprintf("%s: line %d: ", r.file, r.line)
	if field != "" {
		at += field + ": "
	}
	return errors.New(at + cause + ": " + fix)
}

// ReadDemand reads CSV with a header: hour, followed by one column per region. Hours are consecutive: either numbers
// from 0, where zero is the time of the first, or times in UTC. A problem names file, line, field and fix.
func ReadDemand(file string, in io.Reader, zero time.Time) (Demand, error) {
	r := &reader{file: file, d: Demand{Calendar: Calendar{zero.UTC()}}}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	for s.Scan() {
		r.line++
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), "\ufeff"))
		var err error
		switch fields := strings.Split(text, ","); {
		case r.line == 1:
			err = r.head(fields)
		case text == "":
			continue
		default:
			err = r.row(fields)
		}
		if err != nil {
			return Demand{}, err
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return Demand{}, r.wrong("", "is longer than 64 KiB", "give a CSV file with the columns hour,REGION,…")
	case err != nil:
		return Demand{}, fmt.Errorf("read %s: %w", file, err)
	case r.line == 0:
		r.line++
		return Demand{}, r.wrong("", "the file is empty", "give a CSV file with the columns hour,REGION,…")
	}
	return r.d, r.whole()
}

func (r *reader) head(fields []string) error {
	if plain(fields[0]) != "hour" {
		return r.wrong("", "the header does not begin with hour", "write hour,REGION,… and a line for each hour below it")
	}
	if len(fields) == 1 || len(fields) > MaxRegions+1 {
		return r.wrong("", "has "+draw.Count(len(fields)-1, "region"),
			fmt.Sprintf("give 1 to %d columns behind hour", MaxRegions))
	}
	seen := map[string]bool{}
	for i, f := range fields[1:] {
		name := plain(f)
		cause := ""
		switch {
		case name == "":
			cause = "the column has no name"
		case len(name) > 100:
			cause = "the name is longer than 100 bytes"
		case seen[name]:
			cause = fmt.Sprintf("two columns have the name %q", name)
		}
		if cause != "" {
			return r.wrong(fmt.Sprintf("column %d", i+2), cause, "give each region a different name of 1 to 100 bytes")
		}
		seen[name] = true
		r.d.Regions = append(r.d.Regions, Region{Name: name})
	}
	return nil
}

// plain returns a field without surrounding blanks and quotes.
func plain(field string) string { return strings.Trim(strings.TrimSpace(field), `"`) }

func (r *reader) row(fields []string) error {
	regions := r.d.Regions
	if len(fields) != len(regions)+1 {
		return r.wrong("", fmt.Sprintf("has %s, and the header %d", draw.Count(len(fields), "field"), len(regions)+1),
			"write one whole number for each region")
	}
	if r.d.Hours >= MaxHours || r.d.Hours*len(regions) >= MaxCells {
		return r.wrong("", fmt.Sprintf("is beyond %d hours or %d values", MaxHours, MaxCells),
			"give fewer years, or fewer regions in one file")
	}
	if err := r.hour(plain(fields[0])); err != nil {
		return err
	}
	for i := range regions {
		n, err := strconv.ParseInt(plain(fields[i+1]), 10, 64)
		if err != nil || n < 0 || n > MaxUnits {
			return r.wrong(regions[i].Name, fmt.Sprintf("%.40q is no demand", plain(fields[i+1])),
				fmt.Sprintf("write a whole number from 0 to %d; an hour without machines is 0", MaxUnits))
		}
		regions[i].Units = append(regions[i].Units, n)
	}
	r.d.Hours++
	return nil
}

// forms lists the time formats of an hour.
var forms = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"}

// hour checks that the hour follows the previous one. The first hour determines whether hours are numbers or times.
func (r *reader) hour(text string) error {
	n, err := strconv.Atoi(text)
	numbered := err == nil
	if r.d.Hours == 0 {
		r.d.Numbered = numbered
	}
	if !numbered {
		at, ok := moment(text)
		if !ok || numbered != r.d.Numbered {
			return r.wrong("hour", fmt.Sprintf("%.40q is no hour", text),
				"number all hours from 0, or write each as 2024-03-01T13:00:00Z")
		}
		if r.d.Hours == 0 {
			r.d.Calendar.Zero = at
		}
		n = int(at.Sub(r.d.Calendar.Zero) / time.Hour)
	} else if !r.d.Numbered {
		return r.wrong("hour", text+" is a number, and the hours before are times", "write all hours in one way")
	}
	switch {
	case n > r.d.Hours:
		missing := "1 hour is missing"
		if n > r.d.Hours+1 {
			missing = fmt.Sprintf("%d hours are missing", n-r.d.Hours)
		}
		return r.wrong("hour", fmt.Sprintf("%s stands where hour %d is expected, so %s", text, r.d.Hours,
			missing), "write each hour; one without machines is 0")
	case n < r.d.Hours:
		return r.wrong("hour", fmt.Sprintf("%s stands where hour %d is expected", text, r.d.Hours),
			"sort the file by hour, and write each hour once")
	}
	return nil
}

// moment parses a full hour between the years 1970 and 9999.
func moment(text string) (time.Time, bool) {
	for _, form := range forms {
		if at, err := time.Parse(form, text); err == nil {
			at = at.UTC()
			return at, at.Equal(at.Truncate(time.Hour)) && at.Year() >= 1970 && at.Year() < 9999
		}
	}
	return time.Time{}, false
}

// whole checks what only the whole file shows.
func (r *reader) whole() error {
	if r.d.Hours == 0 {
		return r.wrong("", "no hour stands below the header", "write a line for each hour")
	}
	r.d.Regions = slices.DeleteFunc(r.d.Regions, func(region Region) bool {
		none := sum(region.Units) == 0
		if none {
			r.d.Empty = append(r.d.Empty, region.Name)
		}
		return none
	})
	if len(r.d.Regions) == 0 {
		return fmt.Errorf("%s: the demand is zero in every hour, so there is nothing to commit to: give a file with demand",
			r.file)
	}
	return nil
}

// sum adds up at most MaxHours values of at most MaxUnits.
func sum(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}
