package nsight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/work/diagnose/profile"
)

// kernelTables lists the tables of a GPU's work. A name of a fixed text is that of nsys stats.
var kernelTables = []struct {
	table, fixed string
	ids          []string // columns with the id of the name, the best first
	kind         string   // column with the kind of a copy
}{
	{table: "CUPTI_ACTIVITY_KIND_KERNEL", ids: []string{"demangledName", "shortName", "mangledName"}},
	{table: "CUPTI_ACTIVITY_KIND_MEMCPY", kind: "copyKind"},
	{table: "CUPTI_ACTIVITY_KIND_MEMSET", fixed: "[CUDA memset]"},
	{table: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", fixed: "[CUDA graph]"},
}

// hostTables lists the tables of what threads do.
var hostTables = []struct {
	table string
	from  profile.Source
}{
	{"CUPTI_ACTIVITY_KIND_RUNTIME", profile.FromCUDA}, {"OSRT_API", profile.FromRuntime},
}

const (
	namesTable  = "StringIds"
	rangesTable = "NVTX_EVENTS"
)

// copies lists the kinds of copies by the numbers of CUPTI.
var copies = []string{"Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host",
	"Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
	"Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device"}

// latest is the last nanosecond that can be a time: a century after an epoch.
const latest = int64(100*365*24) * int64(time.Hour)

// span returns the times of a row, and notes them; false: it has none.
func (f *file) span(start, end any) (from, to int64, ok bool) {
	from, ok = start.(int64)
	to, known := end.(int64)
	if !ok || !known || from < 0 || to < from || to > latest {
		if end != nil { // a mark has no end
			f.odd++
		}
		return 0, 0, false
	}
	t := &f.timeline
	if !f.begun {
		f.begun, t.First, t.Last = true, from, to
	}
	t.First, t.Last = min(t.First, from), max(t.Last, to)
	return from, to, true
}

// readPurposes finds the names of calls and ranges that have a purpose.
func (f *file) readPurposes() error {
	for _, s := range []profile.Source{profile.FromRanges, profile.FromCUDA, profile.FromRuntime} {
		f.purposes[s] = map[int64]purpose{}
	}
	return f.each(namesTable, 2, []string{"id", "value"}, func(row []any) {
		id, ok := row[0].(int64)
		name, text := row[1].(string)
		if !ok || !text {
			f.odd++
			return
		}
		for s, by := range f.purposes {
			if part := profile.PurposeOf(s, name); part != "" && len(by) < mostNames {
				by[id] = purpose{short(name), part}
			}
		}
	})
}

// short copies the beginning of a name.
func short(name string) string {
	return strings.ToValidUTF8(strings.Clone(name[:min(len(name), 200)]), "")
}

// count counts an event of a thread.
func count(by map[int64]int64, thread int64) {
	if _, known := by[thread]; known || len(by) < mostThreads {
		by[thread]++
	}
}

// keep adds a range, unless there are too many.
func (f *file) keep(thread, from, to int64, p purpose) {
	if len(f.timeline.Ranges) >= mostRanges {
		f.over = true
		return
	}
	f.timeline.Ranges = append(f.timeline.Ranges, profile.Range{Thread: thread, Start: from, End: to, Name: p.name,
		Part: p.part})
}

// readRanges reads the ranges that the program has named.
func (f *file) readRanges() error {
	return f.each(rangesTable, 3, []string{"start", "end", "globalTid", "text", "textId"}, func(row []any) {
		from, to, ok := f.span(row[0], row[1])
		thread, known := row[2].(int64)
		if !ok || !known {
			return
		}
		count(f.named, thread)
		p := purpose{}
		if name, ok := row[3].(string); ok && name != "" { // older files have "" beside an id
			p = purpose{name, profile.PurposeOf(profile.FromRanges, name)}
			if p.part != "" {
				p.name = short(name)
			}
		} else if id, ok := row[4].(int64); ok {
			p = f.purposes[profile.FromRanges][id]
		}
		if p.part != "" {
			f.keep(thread, from, to, p)
		}
	})
}

// readCalls reads the calls of threads.
func (f *file) readCalls() error {
	for _, t := range hostTables {
		err := f.each(t.table, 4, []string{"start", "end", "globalTid", "nameId"}, func(row []any) {
			from, to, ok := f.span(row[0], row[1])
			thread, known := row[2].(int64)
			id, named := row[3].(int64)
			if !ok || !known || !named {
				return
			}
			if t.from == profile.FromCUDA {
				count(f.calls, thread)
			}
			if p := f.purposes[t.from][id]; p.part != "" {
				f.keep(thread, from, to, p)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readWork reads the work of GPUs.
func (f *file) readWork() error {
	for _, t := range kernelTables {
		id := ""
		for _, c := range slices.Backward(t.ids) {
			if slices.Contains(f.tables[t.table], c) {
				id = c
			}
		}
		err := f.each(t.table, 2, []string{"start", "end", "deviceId", cmp.Or(id, t.kind)}, func(row []any) {
			from, to, ok := f.span(row[0], row[1])
			if !ok {
				return
			}
			if gpu, _ := row[2].(int64); len(f.gpus) < mostThreads {
				f.gpus[gpu] = true
			}
			name := any(t.fixed)
			switch n, known := row[3].(int64); {
			case t.kind != "" && known && n > 0 && n < int64(len(copies)):
				name = "[CUDA memcpy " + copies[n] + "]"
			case t.kind != "":
				name = "[CUDA memcpy]"
			case t.fixed == "" && known:
				name = n
			case t.fixed == "":
				name = "(kernel without a name)"
			}
			f.add(name, to-from)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds work of a name, or of others if there are too many names.
func (f *file) add(name any, time int64) {
	w := f.work[name]
	if w == nil {
		if len(f.work) >= mostNames {
			name = "others"
		}
		if w = f.work[name]; w == nil {
			w = &work{}
			f.work[name] = w
		}
	}
	w.time, w.count = w.time+float64(time), w.count+1
}

// nameWork replaces the ids of names by the names.
func (f *file) nameWork() error {
	err := f.each(namesTable, 2, []string{"id", "value"}, func(row []any) {
		id, ok := row[0].(int64)
		name, text := row[1].(string)
		w := f.work[id]
		if !ok || !text || w == nil {
			return
		}
		delete(f.work, id)
		f.timeline.Work = append(f.timeline.Work, profile.Work{Name: short(name), Time: w.time, Count: w.count})
	})
	if err != nil {
		return err
	}
	for name, w := range f.work {
		text, ok := name.(string)
		if !ok {
			text = fmt.Sprintf("(kernel %v without a name)", name)
		}
		f.timeline.Work = append(f.timeline.Work, profile.Work{Name: text, Time: w.time, Count: w.count})
	}
	slices.SortFunc(f.timeline.Work, func(a, b profile.Work) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// process returns the process of a thread: the low 24 bits of a thread's number are its own.
func process(thread int64) int64 { return thread >> 24 }

// keepLaunching keeps the ranges of one thread of each process: of the one that calls CUDA most, or without such calls
// the one with the most ranges. What other threads wait for need not delay a GPU. It keeps none if there are too many
// ranges.
func (f *file) keepLaunching() {
	by := f.calls
	if len(by) == 0 {
		by = f.named
	}
	first := map[int64]int64{} // by process
	for _, thread := range slices.Sorted(maps.Keys(by)) {
		p := process(thread)
		if old, known := first[p]; !known || by[thread] > by[old] {
			first[p] = thread
		}
	}
	t := &f.timeline
	if f.over {
		t.Ranges = nil
	}
	t.Ranges = slices.DeleteFunc(t.Ranges, func(r profile.Range) bool {
		main, known := first[process(r.Thread)]
		return !known || main != r.Thread
	})
	t.Threads = len(first)
}
