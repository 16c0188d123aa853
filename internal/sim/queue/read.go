// Package queue plays a trace of jobs on rented machines in virtual time, under the policies of decide/pack, by the
// rules of the public packing benchmark (Eva, EuroSys'25).
package queue

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/decide/pack"
	"scrimp/internal/lib/lines"
	"scrimp/internal/lib/money"
)

// Job is a job of one task.
type Job struct {
	ID       string
	Line     int // of the trace; 0: it is from no file
	Workload string
	Kind     int // index of the workload, by first appearance
	Arrival  int64
	Work     int64 // in billionths of a second at full rate
	Size     pack.Size
	// Durations of the phases in seconds, and the image that a machine keeps after building it.
	Init, Fetch, Build, Kill, Upload int64
	Image                            int
}

// Machine is a machine type of a catalogue.
type Machine struct {
	Name  string
	Size  pack.Size
	Price money.Rate
	// Durations of the phases in seconds.
	Instantiate, Run, Register, Terminate int64
}

// Bounds of the numbers in a file, so that sums and products stay exact.
const (
	mostSeconds = 1_000_000_000 // 31 years
	mostSize    = 1_000_000_000
	mostRows    = 1_000_000
)

// table reads a CSV file with a header; fields are addressed by column name.
type table struct {
	file   string
	in     *csv.Reader
	column map[string]int
	row    []string
	line   int
}

func newTable(file string, in io.Reader, columns ...string) (*table, error) {
	t := &table{file: file, in: csv.NewReader(lines.Reader(in)), column: map[string]int{}}
	head, err := t.in.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty: begin it with the line %s", file, strings.Join(columns, ","))
	}
	if err != nil {
		return nil, t.broken(err)
	}
	for i, name := range head {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, twice := t.column[name]; twice {
			return nil, fmt.Errorf("%s: line 1: the column %q is there twice: remove one", file, name)
		}
		t.column[name] = i
	}
	for _, name := range columns {
		if _, ok := t.column[name]; !ok {
			fix := "add it"
			if strings.HasPrefix(name, "arrival_") || strings.HasPrefix(name, "work_") {
				fix = "add it, or name another with --arrival-column or --work-column"
			}
			return nil, fmt.Errorf("%s: line 1: has no column %q: %s", file, name, fix)
		}
	}
	return t, nil
}

// next reads a row. It returns false at the end.
func (t *table) next() (bool, error) {
	row, err := t.in.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, t.broken(err)
	}
	t.row = row
	t.line, _ = t.in.FieldPos(0)
	return true, nil
}

// broken wraps an error of the CSV reader with the file and the line.
func (t *table) broken(err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: line %d: %w: write one value for each column of line 1", t.file, p.Line, p.Err)
	}
	return fmt.Errorf("read %s: %w", t.file, err)
}

func (t *table) text(name string) string { return strings.TrimSpace(t.row[t.column[name]]) }

// wrong returns an error that names a field's value and the fix.
func (t *table) wrong(name, fix string) error {
	return fmt.Errorf("%s: line %d: %s %q: %s", t.file, t.line, name, t.text(name), fix)
}

// number reads a decimal exactly, in units of 1/scale.
func (t *table) number(name string, scale, most int64) (int64, error) {
	text := t.text(name)
	fix := fmt.Sprintf("give a number from 0 to %d", most)
	if text == "" || len(text) > 40 || strings.ContainsAny(text, "/_xXpPnNiI") {
		return 0, t.wrong(name, fix)
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f < 0 || f > float64(most) {
		return 0, t.wrong(name, fix)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, t.wrong(name, fix)
	}
	if r.Mul(r, new(big.Rat).SetInt64(scale)); !r.IsInt() {
		return 0, t.wrong(name, fmt.Sprintf("give at most %d decimals", len(strconv.FormatInt(scale, 10))-1))
	}
	return r.Num().Int64(), nil
}

// seconds reads a whole number of seconds.
func (t *table) seconds(name string) (int64, error) {
	return t.number(name, 1, mostSeconds)
}

// fields reads several numbers and returns the first error.
func (t *table) fields(scale, most int64, names []string, into ...*int64) error {
	for i, name := range names {
		n, err := t.number(name, scale, most)
		if err != nil {
			return err
		}
		*into[i] = n
	}
	return nil
}

// Columns names the columns of a trace that a user may choose.
type Columns struct{ Arrival, Work string }

// DefaultColumns are the columns of the public trace.
var DefaultColumns = Columns{Arrival: "arrival_poisson20_s", Work: "work_gavel_s"}

var (
	sizeColumns  = []string{"gpu", "vcpu", "mem_gb"}
	phaseColumns = []string{"init_delay_s", "fetch_delay_s", "build_image_delay_s", "kill_delay_s", "upload_delay_s"}
)

// ReadTrace reads a trace of jobs in row order. With zero columns all jobs arrive at once and have a second of work.
func ReadTrace(file string, in io.Reader, c Columns) ([]Job, error) {
	columns := append([]string{"job_id", "workload", "image_id"}, sizeColumns...)
	timed := c != Columns{}
	if timed {
		columns = append(columns, c.Arrival, c.Work)
	}
	t, err := newTable(file, in, append(columns, phaseColumns...)...)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	kinds, ids, images := map[string]int{}, map[string]int{}, map[string]int{}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if len(jobs) == mostRows {
			return nil, fmt.Errorf("%s: line %d: a trace has at most %d jobs: cut it", file, t.line, mostRows)
		}
		j := Job{ID: t.text("job_id"), Line: t.line, Workload: t.text("workload")}
		if j.ID == "" {
			return nil, t.wrong("job_id", "name the job")
		}
		if first, twice := ids[j.ID]; twice {
			return nil, t.wrong("job_id", fmt.Sprintf("line %d has the same: give each job an id of its own", first))
		}
		ids[j.ID] = t.line
		if j.Workload == "" {
			return nil, t.wrong("workload", "name what the job runs, so that interference can be learned")
		}
		j.Kind, j.Image = number(kinds, j.Workload), number(images, t.text("image_id"))
		if j.Work = unit; timed {
			if err := t.times(c, &j); err != nil {
				return nil, err
			}
		}
		if err := t.fields(pack.Milli, mostSize, sizeColumns, &j.Size[0], &j.Size[1], &j.Size[2]); err != nil {
			return nil, err
		}
		err = t.fields(1, mostSeconds, phaseColumns, &j.Init, &j.Fetch, &j.Build, &j.Kill, &j.Upload)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: has no job: write a line for each job below the header", file)
	}
	return jobs, nil
}

// times reads when a job comes and how long it works.
func (t *table) times(c Columns, j *Job) (err error) {
	if j.Arrival, err = t.seconds(c.Arrival); err != nil {
		return err
	}
	if j.Work, err = t.number(c.Work, unit, mostSeconds); err != nil {
		return err
	}
	if j.Work == 0 {
		return t.wrong(c.Work, "give more than 0 seconds of work")
	}
	return nil
}

// number returns the index of a name, in order of first appearance.
func number(of map[string]int, name string) int {
	n, known := of[name]
	if !known {
		n = len(of)
		of[name] = n
	}
	return n
}

// ReadCatalog reads the machine types.
func ReadCatalog(file string, in io.Reader) ([]Machine, error) {
	phases := []string{"instantiate_s", "run_worker_s", "register_s", "terminate_s"}
	t, err := newTable(file, in, append(append([]string{"name", "usd_per_hour"}, sizeColumns...), phases...)...)
	if err != nil {
		return nil, err
	}
	var types []Machine
	names := map[string]int{}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		m := Machine{Name: t.text("name")}
		if m.Name == "" {
			return nil, t.wrong("name", "name the machine type")
		}
		if first, twice := names[m.Name]; twice {
			return nil, t.wrong("name", fmt.Sprintf("line %d has the same: list each machine type once", first))
		}
		names[m.Name] = t.line
		if m.Price, err = money.ParseRate(t.text("usd_per_hour")); err != nil {
			return nil, t.wrong("usd_per_hour", "give the price of an hour in dollars, such as 3.06")
		}
		if m.Price == 0 {
			return nil, t.wrong("usd_per_hour", "a machine that costs nothing takes every job: give its price, or remove it")
		}
		if err := t.fields(pack.Milli, mostSize, sizeColumns, &m.Size[0], &m.Size[1], &m.Size[2]); err != nil {
			return nil, err
		}
		if err := t.fields(1, mostSeconds, phases, &m.Instantiate, &m.Run, &m.Register, &m.Terminate); err != nil {
			return nil, err
		}
		types = append(types, m)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("%s: has no machine type: write a line for each below the header", file)
	}
	return types, nil
}

// Check returns an error for the first job that fits no machine type.
func Check(trace string, jobs []Job, catalog string, types []Machine) error {
	for _, j := range jobs {
		if !fitsAny(j.Size, types) {
			return fmt.Errorf("%s: line %d: job %s needs %s, and no machine type in %s is that large: lower gpu, vcpu or "+
				"mem_gb, or add a larger type", trace, j.Line, j.ID, sizeText(j.Size), catalog)
		}
	}
	return nil
}

func fitsAny(s pack.Size, types []Machine) bool {
	return slices.ContainsFunc(types, func(t Machine) bool { return s.Fits(t.Size) })
}

// sizeText formats a size with the names of its columns.
func sizeText(s pack.Size) string {
	n := func(i int) string { return strconv.FormatFloat(float64(s[i])/pack.Milli, 'f', -1, 64) }
	return fmt.Sprintf("gpu %s, vcpu %s, mem_gb %s", n(pack.GPU), n(pack.CPU), n(pack.Memory))
}
