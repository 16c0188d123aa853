package profile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// mean averages a column.
type mean struct {
	sum float64
	n   int64
}

func (m *mean) add(v float64, known bool) {
	if known {
		m.sum, m.n = m.sum+v, m.n+1
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}

// share parses a number with or without a unit as a share, multiplied by unit; false if it is none.
func share(text string, unit float64) (float64, bool) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	v *= unit
	return v, err == nil && v >= 0 && v <= 1.0001
}

func plain(text string) (float64, bool) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v >= 0 && v < 1e15
}

// column returns the index of the first column whose name contains one of names, or -1.
func column(header []string, names ...string) int {
	for i, h := range header {
		for _, n := range names {
			if strings.Contains(strings.ToLower(h), n) {
				return i
			}
		}
	}
	return -1
}

func cell(row []string, at int) string {
	if at < 0 || at >= len(row) {
		return ""
	}
	return row[at]
}

// readGPUTable reads the output of nvidia-smi --query-gpu=… --format=csv, and CSV with DCGM field names.
func readGPUTable(r *bufio.Reader) (Profile, error) {
	var header []string
	var use, memory, tensor mean
	var at struct{ use, used, total, active, tensor, free, time int }
	var from, until time.Time
	err := eachLine(r, func(line string) error {
		row, err := oneRow(line)
		if err != nil || len(row) == 0 {
			return nil // an incomplete line
		}
		if header == nil {
			header = row
			at.use, at.used = column(row, "utilization.gpu", "dcgm_fi_dev_gpu_util"), column(row, "memory.used", "fb_used")
			at.total, at.free = column(row, "memory.total", "fb_total"), column(row, "fb_free")
			at.time = column(row, "timestamp")
			at.active, at.tensor = column(row, "prof_sm_active", "gr_engine_active"), column(row, "tensor_active")
			return nil
		}
		if now, err := time.Parse("2006/01/02 15:04:05", cell(row, at.time)); err == nil {
			if from.IsZero() {
				from = now
			}
			until = now
		}
		if v, ok := share(cell(row, at.active), 1); ok {
			use.add(v, ok)
		} else {
			use.add(share(cell(row, at.use), 0.01))
		}
		used, known := plain(cell(row, at.used))
		total, ok := plain(cell(row, at.total))
		if free, has := plain(cell(row, at.free)); has && !ok {
			total, ok = used+free, true
		}
		memory.add(used/max(total, 1), known && ok && total > 0)
		tensor.add(share(cell(row, at.tensor), 1))
		return nil
	})
	if err != nil {
		return Profile{}, err
	}
	if use.n == 0 {
		return Profile{}, errors.New("no line has the use of a GPU: ask for utilization.gpu and memory.used,memory.total")
	}
	tool := "nvidia-smi"
	if column(header, "dcgm_fi_") >= 0 {
		tool = "DCGM"
	}
	p := Profile{Tool: tool, OnGPU: true, GPUBusy: use.value(), Memory: memory.value(), Tensor: tensor.value()}
	if !from.IsZero() {
		p.Seconds = max(1, until.Sub(from).Seconds()) // one sample lasts a second
	}
	return p, nil
}

func oneRow(line string) ([]string, error) {
	c := csv.NewReader(strings.NewReader(line))
	c.TrimLeadingSpace, c.FieldsPerRecord, c.LazyQuotes = true, -1, true
	row, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("read a line: %w", err)
	}
	return row, nil
}

// readDmon reads the output of dcgmi dmon: columns separated by blanks, with a repeated header.
func readDmon(r *bufio.Reader) (Profile, error) {
	var use, tensor mean
	var names []string
	err := eachLine(r, func(line string) error {
		f := strings.Fields(strings.TrimPrefix(line, "#"))
		switch {
		case strings.HasPrefix(line, "#"):
			if len(f) > 1 && strings.EqualFold(f[0], "entity") {
				names = f[1:]
			}
		case len(f) > 2 && strings.EqualFold(f[0], "GPU"):
			values := f[2:]
			unit := 1.0
			at := column(names, "smact", "gract")
			if at < 0 {
				at, unit = column(names, "gputl"), 0.01
			}
			use.add(share(cell(values, at), unit))
			tensor.add(share(cell(values, column(names, "tenso")), 1))
		}
		return nil
	})
	if err != nil {
		return Profile{}, err
	}
	if use.n == 0 {
		return Profile{}, errors.New("no line has the use of a GPU: record dcgmi dmon -e 203,1002,1004")
	}
	return Profile{Tool: "DCGM", OnGPU: true, GPUBusy: use.value(), Tensor: tensor.value()}, nil
}

// readNsys reads the tables of nsys stats --format csv, one or several in sequence.
func readNsys(r *bufio.Reader) (Profile, error) {
	t := newTally()
	var header []string
	err := eachLine(r, func(line string) error {
		row, err := oneRow(line)
		if errors.Is(err, io.EOF) || len(row) < 3 {
			header = nil // between two tables
			return nil
		}
		if err != nil {
			return nil // an incomplete line
		}
		if column(row, "total time (ns)") >= 0 {
			header = row
			if column(row, "num calls", "range") >= 0 { // calls and ranges of threads are no work of a GPU
				header = nil
			}
			return nil
		}
		if header == nil {
			return nil
		}
		name := cell(row, column(header, "name", "operation", "range"))
		took, ok := plain(cell(row, column(header, "total time (ns)")))
		count, _ := plain(cell(row, column(header, "instances", "count", "num calls")))
		if ok && name != "" {
			t.add(name, PartOf(name), took/1e9, int64(count))
		}
		return nil
	})
	if err != nil {
		return Profile{}, err
	}
	if t.total == 0 {
		return Profile{}, errors.New("it has no table of a GPU's work: write it with nsys stats --format csv --report " +
			"cuda_gpu_kern_sum,cuda_gpu_mem_time_sum FILE, or give the SQLite file of nsys export --type sqlite")
	}
	return Profile{Tool: "Nsight Systems", OnGPU: true, OfBusy: true, Operators: t.list(), Shares: t.shares(t.total)}, nil
}
