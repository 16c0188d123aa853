package marketd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/fileid"
	"scrimp/internal/market"
)

// journalName is the file that survives the daemon. Each line is one change: a checksum and a
// record. docs/design/local-market.md describes it.
const journalName = "market.journal"

// opened is the first record: the market itself.
type opened struct {
	Trace  market.Trace `json:"trace"`
	At     time.Time    `json:"at"`            // market time when it opened
	Wall   time.Time    `json:"wall,omitzero"` // wall time when it opened; zero: equal to At
	Prefix string       `json:"prefix"`        // prefix of instance ids, so that no two folders share an id
	Place  string       `json:"place"`         // inode number and birth time of the folder, which a copy does not share
}

// begun returns the wall time when the market opened.
func (o opened) begun() time.Time {
	if o.Wall.IsZero() {
		return o.At
	}
	return o.Wall
}

// record is one line. It contains a machine's state from then on; a voided machine never existed.
// Machines rented together share one record, so that all of them exist or none.
type record struct {
	Opened   *opened    `json:"opened,omitempty"`
	Machine  *machine   `json:"machine,omitempty"`
	Machines []*machine `json:"machines,omitempty"`
	Void     string     `json:"void,omitempty"`  // a machine, in older journals
	Voids    []string   `json:"voids,omitempty"` // machines
}

// recordOf returns the record of machines that were rented together.
func recordOf(gang []*machine) record {
	if len(gang) == 1 {
		return record{Machine: gang[0]}
	}
	return record{Machines: gang}
}

// holds returns the machines in the record.
func (r *record) holds() []*machine {
	if r.Machine != nil {
		return append([]*machine{r.Machine}, r.Machines...)
	}
	return r.Machines
}

// voided returns the ids of voided machines.
func (r *record) voided() []string {
	if r.Void != "" {
		return append([]string{r.Void}, r.Voids...)
	}
	return r.Voids
}

// disk is the part of os.File that the journal uses.
type disk interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// journal appends records durably. Its caller holds the daemon's lock or is the only user.
type journal struct {
	f    disk
	size int64 // size of the complete records
	torn bool  // a partial record follows that could not be removed yet
}

var table = crc32.MakeTable(crc32.Castagnoli)

func encode(r record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s\n", checksum(b), b), nil
}

func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, table)) }

func decode(line []byte) (record, bool) {
	var r record
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	return r, ok && string(sum) == checksum(body) && json.Unmarshal(body, &r) == nil
}

// append writes records and returns after they are on disk. If it fails, it truncates the file
// again: the records are written completely or not at all.
func (j *journal) append(records ...record) error {
	var b []byte
	for _, r := range records {
		line, err := encode(r)
		if err != nil {
			return fmt.Errorf("write the market's journal: %w", err)
		}
		b = append(b, line...)
	}
	if j.torn {
		if err := j.f.Truncate(j.size); err != nil {
			return fmt.Errorf("write the market's journal: %w", err)
		}
		j.torn = false
	}
	_, err := j.f.Write(b)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		j.torn = j.f.Truncate(j.size) != nil
		return fmt.Errorf("write the market's journal: %w", err)
	}
	j.size += int64(len(b))
	return nil
}

// minRecord is a lower bound for the bytes of a machine's record.
const minRecord = 100

// story is the content of a journal.
type story struct {
	market   *opened
	machines []*machine // in order of launch
	lines    int        // number of valid lines
	damaged  int        // number of damaged lines
	size     int64      // end of the last valid line
	hidden   int        // most machines whose only record may be in damaged lines
	tail     bool       // only the last line is damaged: a torn write
}

// read parses a journal. It skips damaged lines and reads those after them.
func read(text []byte) story {
	var s story
	at := map[string]int{}
	for pos := 0; pos < len(text); {
		line := text[pos:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		pos += len(line)
		r, ok := decode(line)
		if !ok || line[len(line)-1] != '\n' { // a line without its newline may be incomplete
			s.damaged++
			s.hidden += 1 + len(line)/minRecord // if a newline is lost, one line may hold several records
			s.tail = true
			continue
		}
		if s.damaged > 0 {
			s.tail = false
		}
		s.lines++
		s.size = int64(pos)
		s.take(&r, at)
	}
	s.machines = slices.DeleteFunc(s.machines, func(m *machine) bool { return m == nil })
	if s.damaged != 1 {
		s.tail = false
	}
	return s
}

// take applies a record. at is the index of each machine in s.machines.
func (s *story) take(r *record, at map[string]int) {
	if r.Opened != nil {
		s.market = r.Opened
	}
	for _, m := range r.holds() {
		if n, known := at[m.ID]; known {
			s.machines[n] = m
			continue
		}
		at[m.ID] = len(s.machines)
		s.machines = append(s.machines, m)
	}
	for _, id := range r.voided() {
		if n, known := at[id]; known {
			s.machines[n] = nil
		}
	}
}

// isCopy reports whether the journal was copied to this place. Its running machines then belong to the other folder,
// whose market ends them, and the market takes a prefix of its own.
func (d *daemon) isCopy(place string) bool {
	copied := d.opened.Place != "" && place != d.opened.Place
	if copied {
		d.opened.Prefix = newPrefix()
	}
	d.opened.Place = place
	return copied
}

// setAside keeps a damaged journal, unless only its end is torn.
func (d *daemon) setAside(path string, text []byte, torn bool) error {
	if torn {
		return nil
	}
	return os.WriteFile(fmt.Sprintf("%s.damaged-%d", path, d.wall().Unix()), text, 0o600)
}

// restore adds a machine of the journal to the market.
func (d *daemon) restore(m *machine) {
	d.seq = max(d.seq, m.number(d.opened.Prefix))
	d.see(m.Launched)
	d.see(m.Ended)
	d.list = append(d.list, m)
	d.keys[m.Key] = append(d.keys[m.Key], m)
}

// load reads the journal, or opens a new market.
func (d *daemon) load() error {
	path := filepath.Join(d.opts.Dir, journalName)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the market's journal: %w", err)
	}
	s := read(text)
	switch {
	case s.market == nil && len(s.machines) > 0:
		return fmt.Errorf("read %s: its first line is damaged: move it away to open a new market", path)
	case s.market == nil: // nothing was rented yet
		return d.open(path)
	}
	d.opened = *s.market
	place, err := fileid.Of(d.opts.Dir)
	if err != nil {
		return err
	}
	copied := d.isCopy(place)
	for _, m := range s.machines {
		m.Foreign = m.Foreign || copied && m.State != engine.Ended
		d.restore(m)
	}
	d.forget()
	d.seq += s.hidden // do not reuse an id that a damaged line may contain
	if s.damaged > 0 {
		d.opts.Log.Error("the market's journal is damaged", "lines", s.damaged, "whole", s.lines, "torn_end", s.tail)
		if err := d.setAside(path, text, s.tail); err != nil {
			return fmt.Errorf("save the damaged journal: %w", err)
		}
	}
	if copied || s.damaged > 0 || s.lines > 2*len(d.list)+100 {
		return d.rewrite(path)
	}
	return d.reopen(path, s.size)
}

// open opens a new market that runs from now on.
func (d *daemon) open(path string) error {
	if err := d.opts.Trace.Validate(); err != nil {
		return fmt.Errorf("market %s: %w", d.opts.Trace.Name, err)
	}
	place, err := fileid.Of(d.opts.Dir)
	if err != nil {
		return err
	}
	trace := d.opts.Trace
	trace.Lines = slices.Clone(trace.Lines)
	for n := range trace.Lines {
		if o := &trace.Lines[n].Offer; d.opts.Name != "" && o.Provider != d.opts.Name {
			o.Provider = d.opts.Name
			o.ID = market.ID(*o)
		}
	}
	d.opened = opened{Trace: trace, At: d.wall(), Prefix: newPrefix(), Place: place}
	if d.opts.After.After(d.opened.At) {
		d.opened.At, d.opened.Wall = d.opts.After.UTC(), d.opened.At
	}
	return d.rewrite(path)
}

// rewrite replaces the journal by one with only the present state.
func (d *daemon) rewrite(path string) error {
	records := []record{{Opened: &d.opened}}
	for _, m := range d.list {
		records = append(records, record{Machine: m})
	}
	aside := path + ".new"
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the market's journal: %w", err)
	}
	j := journal{f: f}
	if err := errors.Join(j.append(records...), f.Close()); err != nil {
		_ = os.Remove(aside)
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return fmt.Errorf("write the market's journal: %w", err)
	}
	if err := syncFolder(d.opts.Dir); err != nil {
		return fmt.Errorf("write the market's journal: %w", err)
	}
	return d.reopen(path, j.size)
}

// reopen opens the journal, which is valid up to size, for appending.
func (d *daemon) reopen(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the market's journal: %w", err)
	}
	d.journal = journal{f: f, size: size}
	if d.opts.disk != nil {
		d.journal.f = d.opts.disk(f)
	}
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
